"""The shipped policies answer every recorded review in both phases, through the whole server."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.rows import all_rows
from tests.server.asgi import Running
from webhook.apimachinery.attributes import Phase
from webhook.logs.structured import Log
from webhook.patch.jsonpatch import apply_operations
from webhook.server.served_state import ServedState
from webhook.settings.shared import ReportSettings

REVIEWS = sorted((Path(__file__).parents[1] / "data" / "reviews").glob("*.json"))


@pytest.fixture(scope="module")
def running() -> Running:
    held = ServedState.make(ReportSettings(), connection=None, log=Log())
    return Running(held.review)


@all_rows("phase", list(Phase))
@all_rows("path", REVIEWS, ids=lambda path: path.name)
def test_the_answer_to_a_recorded_review_is_valid_for_an_api_server(running: Running, path: Path, phase: Phase) -> None:
    request = json.loads(path.read_text())["request"]
    answer = running.post(f"/{phase}?timeout=10s", path.read_bytes())
    assert answer.status_code == 200, answer.text
    review = answer.json()
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = review["response"]
    assert response["uid"] == request["uid"]
    assert response["allowed"] is True, response
    assert response.keys() <= {"uid", "allowed", "warnings", "patch", "patchType", "auditAnnotations"}
    assert ("patch" in response) == ("patchType" in response)
    assert phase is Phase.MUTATE or "patch" not in response
    if "patch" in response:
        assert request["operation"] != "DELETE"
        apply_operations(request["object"], json.loads(base64.b64decode(response["patch"])))


def test_a_recorded_pod_with_portable_gpu_is_changed(running: Running) -> None:
    review = json.loads((REVIEWS[0].parent / "pod-claims-create.mutating.json").read_text())
    (container, *_) = review["request"]["object"]["spec"]["containers"]
    container["resources"] = {**container.get("resources", {}), "limits": {"gpu": "2"}}
    response = running.post("/mutate", review).json()["response"]
    changed = apply_operations(review["request"]["object"], json.loads(base64.b64decode(response["patch"])))
    assert changed["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
