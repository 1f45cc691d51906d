"""`claimgate simulate --kubeconfig` asks a real API server for the queues, and creates nothing in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import claimgate

pytestmark = pytest.mark.e2e

QUEUES = """
apiVersion: v1
kind: Namespace
metadata: {name: simulated}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: simulated}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: simulated}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: simulated, resources: [{name: nvidia.com/gpu, nominalQuota: "8"}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: simulated}
spec: {clusterQueue: simulated}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: simulated, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: GPUS}}}]
"""


CLUSTER_SCOPED = (
    *("ResourceFlavor", "ClusterQueue", "Cohort", "WorkloadPriorityClass"),
    *("Topology:topologies", "AdmissionCheck"),
)
KINDS = {**dict.fromkeys(CLUSTER_SCOPED, "Cluster"), "LocalQueue": "Namespaced", "Workload": "Namespaced"}


def definition(kind: str, scope: str) -> dict[str, Any]:
    """Return a CustomResourceDefinition that accepts any field. `KIND:PLURAL` names an irregular plural."""
    kind, _, plural = kind.partition(":")
    plural, schema = (
        plural or f"{kind.lower()}{'es' if kind.endswith('s') else 's'}",
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )
    version = {"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.kueue.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/kueue"},
        },
        "spec": {"group": "kueue.x-k8s.io", "names": names, "scope": scope, "versions": [version]},
    }


@pytest.fixture(scope="module")
def queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run an API server with Kueue's kinds and a queue for eight GPUs. No webhook is registered."""
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("simulated")) as server:
        listed = {"apiVersion": "v1", "kind": "List", "items": [definition(*each) for each in KINDS.items()]}
        server.kubectl("create", "-f", "-", given=json.dumps(listed))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        server.kubectl("apply", "-f", "-", given=QUEUES)
        yield server


@pytest.mark.parametrize(
    ("gpus", "code", "answer", "rules"),
    [(8, 0, "nothing-found", []), (16, 1, "never", ["kueue-never/exceeds-max-quota"])],
)
def test_the_quota_of_a_live_queue(
    gpus: int, code: int, answer: str, rules: list[str], queues: ApiServer, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("GPUS", f'"{gpus}"'))
    [told] = json.loads(
        claimgate("simulate", str(file), "--kubeconfig", str(queues.kubeconfig), "-o", "json", code=code)
    )
    assert (told["answer"], [each["rule"] for each in told["aspects"]["quota"]]) == (answer, rules)
    assert told["queue"]["clusterQueue"] == "simulated"
    assert "LocalQueue simulated/team" in told["lookedAt"]
    assert queues.kubectl("get", "jobs", "-n", "simulated", "-o", "name").stdout == ""
