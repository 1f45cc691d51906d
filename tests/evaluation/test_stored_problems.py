"""Which problems of an update the stored object has as well, and what is said of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.literals import TABLE, shipped_policies
from webhook.admission import fixtures
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Operation, Phase
from webhook.cluster.files import FilesCluster
from webhook.rules.decisions import Verdict

POLICIES = shipped_policies("gpu-limits")
HALF = {"limits": {"nvidia.com/gpu": "500m"}}
SAID = "the stored object has this problem already, so it does not stop the update"


def deployment(*containers: JSON, replicas: int = 1) -> JSON:
    pod = {"containers": [{"image": "x", **each} for each in containers]}
    labels = {"app": "x"}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {**spec, "template": template},
    }


def update(old: JSON, new: JSON) -> Verdict:
    created = fixtures.attributes_of_object(deepcopy(new), TABLE.row)
    created.operation, created.old_object = Operation.UPDATE, deepcopy(old)
    return answer_request(created, POLICIES, FilesCluster(), phase=Phase.VALIDATE)


BAD: Any = {"name": "a", "resources": HALF}
GOOD: Any = {"name": "b"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([BAD], [{**BAD, "image": "y"}], id="another image"),
        pytest.param([BAD], [GOOD, BAD], id="a container before it"),
        pytest.param([BAD, GOOD], [GOOD, BAD], id="another order"),
    ],
)
def test_what_was_stored_warns(old: list[JSON], new: list[JSON]) -> None:
    verdict = update(deployment(*old), deployment(*new))
    assert verdict.allowed
    (warning,) = verdict.warnings
    assert "`500m` must be a whole number" in warning
    assert SAID in warning


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([GOOD], [BAD], id="it was right"),
        pytest.param([BAD], [{**BAD, "resources": {"limits": {"nvidia.com/gpu": "700m"}}}], id="another wrong value"),
        pytest.param([BAD], [BAD, {**BAD, "name": "c"}], id="the same mistake once more"),
    ],
)
def test_what_is_new_is_denied(old: list[JSON], new: list[JSON]) -> None:
    verdict = update(deployment(*old), deployment(*new))
    assert not verdict.allowed
    assert verdict.status is not None
    assert SAID not in verdict.status.message


def test_a_new_problem_denies_and_the_old_one_warns_beside_it() -> None:
    verdict = update(deployment(BAD, GOOD), deployment(BAD, {**GOOD, "resources": HALF}))
    assert verdict.status is not None
    assert "containers[1]" in verdict.status.message
    assert "containers[0]" not in verdict.status.message
    assert [SAID in each and "containers[0]" in each for each in verdict.warnings] == [True]


def test_nobody_is_asked_twice_about_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the old object was reviewed")

    monkeypatch.setattr("webhook.evaluation.stored_problems._context_of_old_object", never)
    assert update(deployment(GOOD), deployment({**GOOD, "image": "y"})).allowed
