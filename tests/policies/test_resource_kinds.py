"""Kinds with only their resources known, such as NVIDIA's NIMService, in each form of a row."""

from __future__ import annotations

import pytest

from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.workloads.rows import PodSetRule, ResourceRule, Row
from webhook.workloads.table import Table

NAMES = {"group": "apps.nvidia.com", "versions": ("v1alpha1",), "kind": "NIMService", "resource": "nimservices"}
ROWS = {
    "only resources": Row(**NAMES, resources=(ResourceRule(path="spec.resources"),)),
    "resources of a pod set": Row(**NAMES, resources=(ResourceRule(path="spec.resources", podSet="main"),)),
    "a spec that is nearly a PodSpec": Row(**NAMES, podSets=(PodSetRule(template="spec", embeds="podSpec"),)),
}


def review(row: Row, gpus: JSON) -> PhasesOutcome:
    spec = {"image": {"repository": "nvcr.io/nim/meta/llama"}, "resources": {"limits": gpus}}
    obj = {"apiVersion": "apps.nvidia.com/v1alpha1", "kind": "NIMService", "metadata": {"name": "n"}, "spec": spec}
    table = Table((row,))
    policies = load_policy_set([shipped.policies_folder()], Options(table=table))
    attributes = fixtures.attributes_of_object(obj, table.row)
    return run_phases(
        attributes, "auto", LocalAnswerer(policies=policies, cluster=ClusterWithAssumedNamespaces(FilesCluster()))
    )


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in ROWS.items()])
def test_the_portable_name_is_translated(row: Row) -> None:
    outcome = review(row, {"gpu": 1})
    assert outcome.verdict.allowed, outcome.verdict.status
    assert outcome.patched_object["spec"]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in ROWS.items()])
def test_whole_devices_are_allowed_and_parts_of_them_denied(row: Row) -> None:
    assert review(row, {"nvidia.com/gpu": 2, "memory": "16Gi"}).verdict.allowed
    status = review(row, {"nvidia.com/gpu": "1.5"}).verdict.status
    assert status is not None
    assert status.message.startswith('spec.resources.limits["nvidia.com/gpu"]: `1.5` must be a whole number')
