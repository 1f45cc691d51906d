"""Which pods count as members of a PodGroup, and when this is not known."""

from __future__ import annotations

from collections.abc import Sequence

from tests.literals import TABLE
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.errors import LookupFailed
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano.pod_group import check_pod_group, pods_of_group


class Watched(FilesCluster):
    """A view that, like a live view, has PodGroups and queues and no pods."""

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        if gvk.group in ("", "batch", "apps"):
            raise LookupFailed(f"{gvk.kind} list: not watched")
        return super().list(gvk, namespace, labels)


REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": True}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "controller": True}


def pod(name: str, group: JSON, **spec: JSON) -> JSON:
    annotations = {"scheduling.k8s.io/group-name": group}
    metadata = {"name": name, "namespace": "team", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": "volcano", **spec}}


def made(kind: str, replicas: JSON) -> JSON:
    api = "batch.volcano.sh/v1alpha1" if kind == "VolcanoJob" else "apps/v1"
    template = {key: value for key, value in pod("", "gang").items() if key in ("metadata", "spec")}
    tasks = {"tasks": [{"name": "a", "replicas": replicas, "template": template}]}
    spec = tasks if kind == "VolcanoJob" else {"replicas": replicas, "template": template}
    metadata = {"name": "m", "namespace": "team"}
    return {"apiVersion": api, "kind": kind.removeprefix("Volcano"), "metadata": metadata, "spec": spec}


def subject(least: int, view: FilesCluster, **metadata: JSON) -> Subject:
    own = {"name": "gang", "namespace": "team", **metadata}
    obj = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": own}
    attributes = attributes_of_object({**obj, "spec": {"minMember": least}}, TABLE.row)
    cluster = ClusterView(view, "team")
    return Subject(object=attributes.object, old_object=None, attributes=attributes, cluster=cluster, table=TABLE)


def told(least: int, *objects: JSON, **metadata: JSON) -> list[str]:
    problems = check_pod_group(subject(least, FilesCluster(objects), **metadata))
    return [each.code.partition("/")[2] + "?" * bool(each.missing) for each in problems if each.path.endswith("Member")]


def test_pods_are_counted_wherever_they_are_made() -> None:
    rows = {
        "as many as needed": (told(3, pod("a", "gang"), made("Deployment", 2)), []),
        "one too few": (told(4, pod("a", "gang"), made("Deployment", 2)), ["members"]),
        "a DaemonSet with an unknown number of pods": (told(9, pod("a", "gang"), made("DaemonSet", 1)), []),
        "a group name that is not a string": (told(2, pod("a", 7), pod("b", None)), ["members?"]),
        "a job of Volcano, which gets its own group": (told(2, made("VolcanoJob", 4)), ["members?"]),
        "a command that is not a string": (told(1, pod("a", "gang", containers=[{"command": [1], "env": [None]}])), []),
        "a group of one pod": (told(1), []),
        "a group that a controller made": (told(4, ownerReferences=[REPLICA_SET]), []),
        "a group with an owner that creates no pods": (told(4, ownerReferences=[CONFIG_MAP]), ["members?"]),
        "a name that is filled in later": (told(4, name="${GROUP}"), []),
    }
    assert {name: pair for name, pair in rows.items() if pair[0] != pair[1]} == {}


def test_a_view_without_pods_knows_nothing() -> None:
    known, missing = pods_of_group(subject(4, Watched([pod("a", "gang")])), "gang")
    assert not known
    assert [str(each) for each in missing] == ["Pod not looked up: Pod list: not watched"]
