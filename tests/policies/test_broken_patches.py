"""Patches of a TrainJob that cannot be merged break a rule, and never cause an internal error."""

from __future__ import annotations

import pytest

from webhook.admission.fixtures import attributes_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.workloads.table import load_table

GROUP = "trainer.kubeflow.org/v1alpha1"
NODE = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "x"}]}}}}}
RUNTIME = {
    "apiVersion": GROUP,
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "r"},
    "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [NODE]}}},
}


@pytest.mark.parametrize(
    ("container", "reason"),
    [({"image": "a"}, "cannot be merged"), ({"name": []}, "must be a string"), ({"name": {}}, "must be a string")],
    ids=["no merge key", "a list as key", "a map as key"],
)
def test_a_patch_that_cannot_be_merged_denies_with_its_reason(container, reason):
    table = load_table()
    spec = {"template": {"spec": {"containers": [container]}}}
    patch = {"replicatedJobs": [{"name": "node", "template": {"spec": spec}}]}
    patches = [{"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": patch}}}]
    job = {
        "apiVersion": GROUP,
        "kind": "TrainJob",
        "metadata": {"name": "j", "namespace": "n"},
        "spec": {"runtimeRef": {"name": "r"}, "runtimePatches": patches},
    }
    attributes = attributes_of_object(job, table.row)
    policies = load_policy_set([shipped.policies_folder()], Options(table=table, lazy=True))
    verdict = answer_request(attributes, policies, FilesCluster([RUNTIME]), phase=Phase.VALIDATE)
    assert not verdict.allowed
    assert any(reason in decision.message for decision in verdict.decisions)
