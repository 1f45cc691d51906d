"""Objects with the answers of the real Kueue (tests/data/kueue), and the cluster in which it ran."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.literals import TABLE, shipped_policies
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.facts.kueue.assignment import PodSetQuotaRequest
from webhook.facts.kueue.fact import predict_admission
from webhook.facts.kueue.never import JobInClusterQueue
from webhook.facts.kueue.workload import build_workload
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.decisions import Verdict
from webhook.schema import decode_object

DATA = Path(__file__).parents[2] / "data" / "kueue" / "observed.jsonl"
CONFIGURATION = """
integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset, pod, deployment, statefulset]}
resources:
  deviceClassMappings:
  - {name: whole-gpus, deviceClassNames: [gpu.example.com]}
  - {name: mig-slices, deviceClassNames: [mig.example.com, mig-small.example.com]}
"""
WORLD: list[JSON] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": CONFIGURATION},
    },
]
"""The other objects of every cluster: a complete view"""


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in DATA.read_text().splitlines()]


def judged(row: dict[str, Any]) -> Verdict:
    objects = [*WORLD, *deepcopy(row.get("context") or [])]
    for each in row.get("before") or []:
        settle(each, objects)
        objects += [each] * (each["kind"] == "Pod")
    attributes = attributes_of_object(deepcopy(row["object"]), TABLE.row)
    if row.get("oldObject"):
        attributes = with_old(attributes, deepcopy(row["oldObject"]))
    cluster = ClusterWithAssumedNamespaces(FilesCluster(objects, is_whole=True))
    return answer_request(attributes, shipped_policies(), cluster, phase=Phase.VALIDATE)


def with_old(attributes: Any, old: JSON) -> Any:
    return replace(attributes, operation="UPDATE", old_object=old)


def settle(job: JSON, objects: list[JSON]) -> None:
    """Admit a job as Kueue did, or leave it pending, and write the status of its ClusterQueue."""
    attributes = attributes_of_object(deepcopy(job), TABLE.row)
    obj = decode_object(attributes.object, attributes.kind).value
    view = ClusterView(ClusterWithAssumedNamespaces(FilesCluster(objects, is_whole=True)), attributes.namespace)
    subject = Subject(object=obj, old_object=None, attributes=attributes, cluster=view, table=TABLE)
    found = subject.once(predict_admission)
    place = found.place
    if place is None or place.queue is None or place.tree is None or place.node is None:
        return
    status = status_of(place.queue.name, objects)
    if found.verdict != "possible":
        status["pendingWorkloads"] += 1
        return
    fitting = JobInClusterQueue(subject, place, place.queue, place.tree, place.node)
    for pod_set in subject.once(build_workload).pod_sets:
        for wanted in fitting.quota_requests_of_groups(pod_set):
            reserve(wanted, fitting, status)


def status_of(name: str, objects: list[JSON]) -> JSON:
    """Return the status of a ClusterQueue. It is in a new object, because objects of a view never change."""
    index = next(
        at for at, each in enumerate(objects) if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == name
    )
    objects[index] = deepcopy(objects[index])
    empty: JSON = {"flavorsReservation": [], "pendingWorkloads": 0}
    return objects[index].setdefault("status", empty)


def reserve(wanted: PodSetQuotaRequest, fitting: JobInClusterQueue, status: JSON) -> None:
    """Add the requests to the usage of the first flavor that has enough free quota."""
    free = wanted.flavors_with_capacity(lambda pair: fitting.tree.available_quota(fitting.node, pair))
    resources = [
        {"name": name, "total": f"{value}m" if name == "cpu" else str(value)} for name, value in wanted.requests.items()
    ]
    status["flavorsReservation"].append({"name": free[0], "resources": resources})
