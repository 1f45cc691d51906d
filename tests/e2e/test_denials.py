"""The text of a denial with many problems in kubectl apply, in server-side apply, in events, and in a program.

docs/denials.md shows the first text. docs/decisions/0012-how-denials-read.md has the reasons for the form.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e.apiserver import trust
from tests.e2e.conftest import Cluster

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
JOB = ROOT / "tests" / "data" / "commands" / "denials" / "ten-mistakes.yaml"
PAGE = ROOT / "docs" / "denials.md"
HEAD = (
    'Error from server (BadRequest): error when creating "ten-mistakes.yaml": admission webhook '
    '"mutate.claimgate.dev" denied the request: 10 problems (9 of them from checks that run later):'
)


def without_gpu() -> dict[str, Any]:
    """Return the job with `gpu: 1`. No mutating policy denies it, so the validating phase denies it, with the reason
    Invalid.
    """
    job: dict[str, Any] = yaml.safe_load(JOB.read_text().replace("gpu: all", "gpu: 1"))
    return job


def answered(cluster: Cluster) -> Any:
    """Return the metav1.Status that a program gets. The error of client-go has the message of the Status as text."""
    (user,) = yaml.safe_load(cluster.server.kubeconfig.read_text())["users"]
    headers = {"authorization": f"Bearer {user['user']['token']}"}
    with httpx.Client(verify=trust(cluster.server), headers=headers, base_url=cluster.server.url) as client:
        job = yaml.safe_load(JOB.read_text())
        return client.post("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs", json=job).json()


def shown(cluster: Cluster, *arguments: str) -> list[str]:
    text = cluster.server.kubectl(*arguments, code=1).stderr
    return text.replace(str(JOB), JOB.name).rstrip("\n").split("\n")


def test_kubectl_apply_shows_ten_problems_a_line_each_and_the_page_shows_the_same(cluster: Cluster) -> None:
    head, *problems = shown(cluster, "apply", "-f", str(JOB))
    assert head == HEAD
    assert len(problems) == 10
    assert all(re.fullmatch(r"\* spec\.\S+: .+ \([a-z-]+/[a-z-]+\)", problem) for problem in problems)
    assert "\n".join((head, *problems)) in PAGE.read_text()


def test_server_side_apply_shows_the_problems_too(cluster: Cluster) -> None:
    head, *problems = shown(cluster, "apply", "--server-side", "-f", str(JOB))
    assert head.startswith("Error from server (BadRequest): ")
    assert len(problems) == 10


def test_kubectl_shows_the_causes_of_reason_invalid(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    job = without_gpu()
    job["spec"]["pytorchReplicaSpecs"]["Master"]["restartPolicy"] = "Never"  # the CRD accepts the value Never
    file.write_text(yaml.safe_dump(job))
    head, *problems = shown(cluster, "apply", "-f", str(file))
    assert head == 'The PyTorchJob "ten-mistakes" is invalid: '
    assert len(problems) == 8
    assert all(re.fullmatch(r"\* spec\.\S+: .+ \(claimgate: [a-z-]+/[a-z-]+\)", problem) for problem in problems)


def test_a_client_receives_message_and_causes(cluster: Cluster) -> None:
    status = answered(cluster)
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    details = status["details"]
    assert (details["group"], details["kind"], details["name"]) == ("kubeflow.org", "PyTorchJob", "ten-mistakes")
    assert len(details["causes"]) == 10
    first = details["causes"][0]
    assert first["field"] == "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].resources.limits.gpu"
    assert first["reason"] == "gpu-portable/all"
    for cause, line in zip(details["causes"], status["message"].split("\n* ")[1:], strict=True):
        assert line.startswith(cause["field"])
        assert json.dumps(cause["reason"])[1:-1] in line


def test_a_table_of_events_shows_the_first_line_of_a_message(cluster: Cluster) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "denied", "namespace": "default"},
        "involvedObject": {"kind": "Job", "name": "j", "namespace": "default"},
        "reason": "FailedCreate",
        "type": "Warning",
        "message": answered(cluster)["message"],
    }
    cluster.server.apply(event)
    table = cluster.server.kubectl("get", "event", "denied").stdout
    assert "denied the request: 10 problems (9 of them from" in table
    assert "gpu-portable/all" not in table
    assert "gpu-portable/all" in cluster.server.kubectl("describe", "event", "denied").stdout
