"""`claimgate audit --live --publish` on a real API server: every object is read, and owns its report."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import claimgate

pytestmark = pytest.mark.e2e

DEFINITIONS = Path(__file__).parents[1] / "data" / "reports" / "crds"
JOBS = 260
"""More than one page"""
APIS = {
    "openreports": ("reports.openreports.io", "clusterreports.openreports.io"),
    "policyreport": ("policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io"),
}


def job(name: str, **resources: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": resources}
    spec = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "audited"},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("audited")) as server:
        server.kubectl("create", "-f", str(DEFINITIONS))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        end = time.monotonic() + apiserver.PATIENCE_S
        while not _are_served(server):
            assert time.monotonic() < end
            time.sleep(0.2)
        server.kubectl("create", "namespace", "audited")
        portable = job("portable", limits={"nvidia.com/gpu": 1, "amd.com/gpu": 1})
        listed = [portable, *(job(f"plain-{number}") for number in range(JOBS))]
        server.kubectl("create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}))
        yield server


def _are_served(server: ApiServer) -> bool:
    """Return whether the API server serves all new kinds, which takes a moment."""
    names = [name for pair in APIS.values() for name in pair]
    return all(server.kubectl("get", name, "-A", code=None).returncode == 0 for name in names)


def audit(cluster: ApiServer, *arguments: str, code: int = 1) -> Any:
    return json.loads(
        claimgate(
            "audit", "--kubeconfig", str(cluster.kubeconfig), "-n", "audited", "-o", "json", *arguments, code=code
        )
    )


def test_every_object_is_audited(cluster: ApiServer) -> None:
    told = audit(cluster)
    assert told["summary"]["objects"] >= JOBS + 1
    warned = {each["rule"]: each["file"] for each in told["findings"] if each["result"] in ("warn", "fail")}
    assert warned["gpu-requests/vendors"] == "audited/jobs/portable"


@pytest.mark.parametrize("api", list(APIS))
def test_reports_are_stored_and_go_with_their_objects(cluster: ApiServer, api: str) -> None:
    reports = APIS[api][0]
    audit(cluster, "--publish", api, "--fails-only")
    uid = cluster.kubectl("get", "job", "-n", "audited", "portable", "-o", "jsonpath={.metadata.uid}").stdout
    stored = json.loads(cluster.kubectl("get", reports, "-n", "audited", uid, "-o", "json").stdout)
    assert "gpu-requests/vendors" in [each["rule"] for each in stored["results"]]
    assert [each["uid"] for each in stored["metadata"]["ownerReferences"]] == [uid]
    before = stored["metadata"]["resourceVersion"]
    audit(cluster, "--publish", api, "--fails-only")
    version = cluster.kubectl("get", reports, "-n", "audited", uid, "-o", "jsonpath={.metadata.resourceVersion}").stdout
    assert version == before
    audit(cluster, "--publish", api, "--fails-only", "--skip", "gpu-requests/vendors", code=0)
    assert cluster.kubectl("get", reports, "-n", "audited", "-o", "name").stdout == ""


def test_a_namespace_in_deletion_does_not_stop_other_reports(cluster: ApiServer) -> None:
    reports = APIS["openreports"][0]
    cluster.kubectl("create", "namespace", "a-leaving")  # by name, this namespace comes before the other
    leaving = job("portable", limits={"nvidia.com/gpu": 1, "amd.com/gpu": 1})
    leaving["metadata"]["namespace"] = "a-leaving"
    cluster.kubectl("create", "-f", "-", given=json.dumps(leaving))
    cluster.kubectl("delete", "namespace", "a-leaving", "--wait=false")
    command = [sys.executable, "-m", "webhook", "audit", "--kubeconfig", str(cluster.kubeconfig), "--fails-only"]
    command += ["-n", "a-leaving", "-n", "audited", "--publish", "openreports"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=apiserver.PATIENCE_S, check=False)
    assert done.returncode == 2, done.stderr
    assert "because it is being terminated" in done.stderr
    assert "1 refused" in done.stderr
    uid = cluster.kubectl("get", "job", "-n", "audited", "portable", "-o", "jsonpath={.metadata.uid}").stdout
    assert cluster.kubectl("get", reports, "-n", "audited", uid, "-o", "name").stdout
