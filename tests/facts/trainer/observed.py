"""TrainJobs with the answers of the real Trainer (tests/data/trainer), and the forms in which JobSets are compared."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from tests.literals import TABLE, shipped_policies
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import Phase
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.view import ClusterView
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.schema import decode_object

DATA = Path(__file__).parents[2] / "data" / "trainer"
RUNS = ("ok", "external")
MANAGER = "kubeflow-trainer-controller-manager"
TRAINER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": MANAGER, "namespace": "kubeflow-system"},
    "spec": {
        "selector": {"matchLabels": {"app": MANAGER}},
        "template": {
            "metadata": {"labels": {"app": MANAGER}},
            "spec": {
                "containers": [
                    {"name": "manager", "image": "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0"}
                ]
            },
        },
    },
}
"""The Trainer that gave the answers."""


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


@cache
def cluster() -> Cluster:
    return ClusterWithAssumedNamespaces(FilesCluster([*rows("context"), TRAINER], is_whole=True))


@cache
def policies() -> PolicySet:
    return shipped_policies()


def said(trainjob: dict[str, Any]) -> str:
    """Return `deny`, `warn` or `none`: claimgate's strictest verdict on a TrainJob."""
    attributes = attributes_of_object(deepcopy(trainjob), TABLE.row)
    return spoken(
        *(answer_request(attributes, policies(), cluster(), phase=phase) for phase in (Phase.VALIDATE, Phase.MUTATE))
    )


def spoken(*verdicts: Verdict) -> str:
    """Return the strictest of some verdicts: `deny`, `warn` or `none`."""
    if not all(verdict.allowed for verdict in verdicts):
        return "deny"
    return "warn" if any(verdict.warnings for verdict in verdicts) else "none"


def predicted(trainjob: dict[str, Any]) -> MergedTrainJob:
    attributes = attributes_of_object(deepcopy(trainjob), TABLE.row)
    obj = decode_object(attributes.object, attributes.kind).value
    view = ClusterView(cluster(), attributes.namespace)
    return merge_train_job(Subject(object=obj, old_object=None, attributes=attributes, cluster=view, table=TABLE))


def normal(job_set: dict[str, Any], *, suspend: bool = False) -> Any:
    """Return a JobSet with the defaults of its CustomResourceDefinition and its webhook, so that two JobSets can be
    compared.
    """
    spec = deepcopy(job_set)
    spec["network"] = {"enableDNSHostnames": True, "publishNotReadyAddresses": True, **spec.get("network", {})}
    spec["startupPolicy"] = {"startupPolicyOrder": "AnyOrder", **spec.get("startupPolicy", {})}
    spec["successPolicy"] = {"operator": "All", **spec.get("successPolicy", {})}
    spec.setdefault("suspend", suspend)
    for policy in spec.get("volumeClaimPolicies", []):
        policy["retentionPolicy"] = {"whenDeleted": "Delete", **policy.get("retentionPolicy", {})}
    for job in spec.get("replicatedJobs", []):
        _default_job(job)
    return _shown(spec)


def _default_job(job: dict[str, Any]) -> None:
    job.setdefault("groupName", "default")
    job.setdefault("replicas", 1)
    job["template"]["spec"].setdefault("completionMode", "Indexed")
    pod = job["template"]["spec"]["template"]["spec"]
    pod.setdefault("restartPolicy", "OnFailure")
    for container in (*pod.get("containers", []), *pod.get("initContainers", [])):
        if "env" in container:
            container["env"] = {each["name"]: each for each in container["env"]}
        for port in container.get("ports", []):
            port.setdefault("protocol", "TCP")
        for side in ("limits", "requests"):
            amounts = container.get("resources", {}).get(side, {})
            for name, amount in amounts.items():
                read = quantity.read_quantity_or_none(amount)
                amounts[name] = str(amount) if read is None else read.milli_value()


def _shown(value: Any) -> Any:
    """Return a value without empty values, which Go omits. An empty volume stays, because it is a volume."""
    if isinstance(value, dict):
        made = {name: _shown(held) for name, held in value.items()}
        return {name: held for name, held in made.items() if name == "emptyDir" or held not in ({}, [], None, "")}
    return [_shown(each) for each in value] if isinstance(value, list) else value
