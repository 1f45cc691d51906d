"""The objects that controllers created for one object, found by owner references, and the owners above it.

For a kind that is not listed here, the kinds are searched that most controllers create. An owner reference with a uid
means only the object with this uid.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON, POD, GroupVersionKind
from webhook.cluster.naming import group_kind
from webhook.status.sources import ClusterReading
from webhook.status.statement import items_at, map_at, name_of, number_at, text_at

JOB: Final = GroupVersionKind("batch", "v1", "Job")
JOB_SET: Final = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
WORKLOAD: Final = GroupVersionKind("kueue.x-k8s.io", "v1beta2", "Workload")
VOLCANO_GROUP: Final = GroupVersionKind("scheduling.volcano.sh", "v1beta1", "PodGroup")
PLUGIN_GROUP: Final = GroupVersionKind("scheduling.x-k8s.io", "v1alpha1", "PodGroup")
KAI_GROUP: Final = GroupVersionKind("scheduling.run.ai", "v2alpha2", "PodGroup")
VOLCANO_JOB: Final = GroupVersionKind("batch.volcano.sh", "v1alpha1", "Job")
RAY_CLUSTER: Final = GroupVersionKind("ray.io", "v1", "RayCluster")
REPLICA_SET: Final = GroupVersionKind("apps", "v1", "ReplicaSet")
DEPLOYMENT: Final = GroupVersionKind("apps", "v1", "Deployment")
STATEFUL_SET: Final = GroupVersionKind("apps", "v1", "StatefulSet")
LWS: Final = GroupVersionKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
RESOURCE_CLAIM: Final = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")

_GROUPS: Final = (VOLCANO_GROUP, PLUGIN_GROUP, KAI_GROUP)
_OF_KIND: Final[Mapping[tuple[str, str], tuple[GroupVersionKind, ...]]] = {
    ("", "Pod"): (WORKLOAD, *_GROUPS, RESOURCE_CLAIM, STATEFUL_SET),
    ("", "ReplicationController"): (POD,),
    ("apps", "Deployment"): (REPLICA_SET, WORKLOAD),
    ("apps", "ReplicaSet"): (POD,),
    ("apps", "StatefulSet"): (POD, WORKLOAD, *_GROUPS),
    ("apps", "DaemonSet"): (POD,),
    ("batch", "Job"): (POD, WORKLOAD, *_GROUPS),
    ("batch", "CronJob"): (JOB,),
    ("batch.volcano.sh", "Job"): (POD, VOLCANO_GROUP),
    ("batch.volcano.sh", "CronJob"): (VOLCANO_JOB,),
    ("jobset.x-k8s.io", "JobSet"): (JOB, WORKLOAD),
    ("trainer.kubeflow.org", "TrainJob"): (JOB_SET, WORKLOAD, VOLCANO_GROUP, PLUGIN_GROUP),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (STATEFUL_SET, WORKLOAD, VOLCANO_GROUP),
    ("ray.io", "RayJob"): (RAY_CLUSTER, JOB, WORKLOAD),
    ("ray.io", "RayService"): (RAY_CLUSTER,),
    ("ray.io", "RayCluster"): (POD, WORKLOAD, VOLCANO_GROUP),
    ("kubeflow.org", "MPIJob"): (JOB, POD, WORKLOAD, VOLCANO_GROUP, PLUGIN_GROUP),
    ("kueue.x-k8s.io", "Workload"): (),
    **{(each.group, each.kind): () for each in _GROUPS},
    ("resource.k8s.io", "ResourceClaim"): (),
}
"""The kinds that the controller of a kind creates, and the kinds that Kueue and gang schedulers create for it."""
_OF_OTHERS: Final = (
    *(DEPLOYMENT, STATEFUL_SET, REPLICA_SET, JOB, JOB_SET, LWS, RAY_CLUSTER, POD),
    *(WORKLOAD, VOLCANO_GROUP, PLUGIN_GROUP, KAI_GROUP),
)
_ABOUT_OWNERS: Final = (WORKLOAD, *_GROUPS)
"""Kinds with objects that report on an owner what its objects wait for."""
_SELECTING: Final = frozenset(
    (("batch", "Job"), *(("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")))
)
"""Kinds whose controllers own only pods and ReplicaSets that spec.selector selects."""
_NAME_LABELS: Final[Mapping[tuple[str, str], str]] = {
    ("ray.io", "RayCluster"): "ray.io/cluster",
    ("batch.volcano.sh", "Job"): "volcano.sh/job-name",
    ("serving.kserve.io", "InferenceService"): "serving.kserve.io/inferenceservice",
}
"""The label with the name of the owner that controllers give to its pods."""
_MOST_LISTS: Final = 30
"""How many lists are read before one list of all objects of a kind replaces further lists."""
MOST_OBJECTS: Final = 10_000
MOST_LEVELS: Final = 8


class OwnedObjects(Struct, kw_only=True):
    """One object with its owners and with the objects that controllers created for it.

    Args:
        root: the object.
        owners: the nearest one first.
        objects: the created objects, level by level; of the owners only their Workloads and PodGroups.
        is_cut: whether there are more objects than are read.
    """

    root: JSON
    owners: Sequence[JSON]
    objects: list[JSON] = field(default_factory=list)
    is_cut: bool = False


def owned_objects(root: JSON, reading: ClusterReading) -> OwnedObjects:
    """Return the objects that controllers created for an object, up to MOST_OBJECTS and MOST_LEVELS.

    Args:
        root: the object.
        reading: where other objects are read.
    """
    tree = OwnedObjects(root=root, owners=_owners(root, reading))
    namespace = name_of(root).namespace
    indexes = _Indexes(reading, namespace)
    seen = {id(root)}
    waiting = deque[tuple[JSON, Sequence[GroupVersionKind], int]]()
    waiting.extend((owner, _ABOUT_OWNERS, MOST_LEVELS) for owner in tree.owners)
    waiting.append((root, _kinds_made_of(root), 1))
    while waiting:
        owner, kinds, level = waiting.popleft()
        for kind in kinds:
            for made in indexes.owned(kind, owner):
                if id(made) in seen or _is_replaced(made):
                    continue
                if len(tree.objects) >= MOST_OBJECTS:
                    tree.is_cut = True
                    return tree
                seen.add(id(made))
                tree.objects.append(made)
                if level < MOST_LEVELS:
                    waiting.append((made, _kinds_made_of(made), level + 1))
    return tree


class _Indexes:
    """The objects of a namespace by the uid, or the kind and name, of each owner.

    A namespace may have thousands of pods, so the pods of an owner are listed by the labels that its controller
    selects. After some such lists one list of all objects is cheaper.
    """

    def __init__(self, reading: ClusterReading, namespace: str) -> None:
        self._reading = reading
        self._namespace = namespace
        self._by_owner: dict[tuple[GroupVersionKind, str], dict[object, list[JSON]]] = {}

    def owned(self, kind: GroupVersionKind, owner: JSON) -> Sequence[JSON]:
        """Return the objects of a kind that an object owns."""
        by_owner = self._index(kind, _selector_of(owner) if kind in (POD, REPLICA_SET) else "")
        uid, named = text_at(owner, ("metadata", "uid")), (text_at(owner, ("kind",)), name_of(owner).name)
        return (*by_owner.get(uid, ()), *by_owner.get(named, ())) if uid else by_owner.get(named, ())

    def _index(self, kind: GroupVersionKind, selector: str) -> Mapping[object, list[JSON]]:
        has_all, is_new = (kind, "") in self._by_owner, (kind, selector) not in self._by_owner
        if has_all or (is_new and len(self._by_owner) >= _MOST_LISTS):
            selector = ""
        if (kind, selector) not in self._by_owner:
            index: dict[object, list[JSON]] = {}
            for obj in self._reading.list(kind, self._namespace, selector):
                for reference in items_at(obj, ("metadata", "ownerReferences")):
                    index.setdefault(_key_of_reference(reference), []).append(obj)
            self._by_owner[kind, selector] = index
        return self._by_owner[kind, selector]


def _selector_of(owner: JSON) -> str:
    """Return labels that all pods of an owner have, "" if they are not known."""
    if name := _NAME_LABELS.get(group_kind(owner)):
        return f"{name}={name_of(owner).name}"
    labels = map_at(owner, ("spec", "selector", "matchLabels"))
    return ",".join(f"{key}={value}" for key, value in labels.items() if group_kind(owner) in _SELECTING)


def _key_of_reference(reference: Mapping[str, JSON]) -> object:
    uid = text_at(reference, ("uid",))
    return uid or (text_at(reference, ("kind",)), text_at(reference, ("name",)))


def _owners(root: JSON, reading: ClusterReading) -> Sequence[JSON]:
    """Return the controllers above an object."""
    owners: list[JSON] = []
    below, namespace = root, name_of(root).namespace
    while len(owners) < MOST_LEVELS:
        references = list(items_at(below, ("metadata", "ownerReferences")))
        reference = next((each for each in references if each.get("controller") is True), None)
        reference = reference or next(iter(references), None)
        if reference is None:
            break
        group, _, version = text_at(reference, ("apiVersion",)).rpartition("/")
        kind = GroupVersionKind(group, version, text_at(reference, ("kind",)))
        owner = reading.get(kind, namespace, text_at(reference, ("name",)))
        uids = text_at(reference, ("uid",)), text_at(owner, ("metadata", "uid"))
        if not isinstance(owner, dict) or (all(uids) and uids[0] != uids[1]):
            break
        owners.append(owner)
        below = owner
    return owners


def _kinds_made_of(obj: JSON) -> Sequence[GroupVersionKind]:
    return _OF_KIND.get(group_kind(obj), _OF_OTHERS)


def _is_replaced(obj: JSON) -> bool:
    """Return whether an object is what a Deployment keeps of an earlier template."""
    return group_kind(obj) == ("apps", "ReplicaSet") and number_at(obj, ("spec", "replicas")) == 0
