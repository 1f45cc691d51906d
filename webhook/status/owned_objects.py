"""Finds an object by `KIND/NAME`, as kubectl does, and its owners and created objects by owner references.

For a kind that is not listed here, the search covers the kinds that most controllers create. If an owner reference has
a uid, the owner must have this uid.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON, POD, GroupVersionKind, plural_of_kind
from webhook.cluster.naming import group_kind
from webhook.errors import ConfigurationError
from webhook.status.sources import ClusterReading
from webhook.status.statement import items_at, map_at, name_of, number_at, text_at
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean, named
from webhook.workloads.table import Table

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
"""For each kind, the kinds that its controller, Kueue or a gang scheduler creates for an object."""
_OF_OTHERS: Final = (
    *(DEPLOYMENT, STATEFUL_SET, REPLICA_SET, JOB, JOB_SET, LWS, RAY_CLUSTER, POD),
    *(WORKLOAD, VOLCANO_GROUP, PLUGIN_GROUP, KAI_GROUP),
)
_ABOUT_OWNERS: Final = (WORKLOAD, *_GROUPS)
"""Objects of these kinds say why the other objects of their owner wait."""
_SELECTING: Final = frozenset(
    (("batch", "Job"), *(("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")))
)
"""Controllers of these kinds own only objects with the labels of spec.selector."""
_NAME_LABELS: Final[Mapping[tuple[str, str], str]] = {
    ("ray.io", "RayCluster"): "ray.io/cluster",
    ("batch.volcano.sh", "Job"): "volcano.sh/job-name",
    ("serving.kserve.io", "InferenceService"): "serving.kserve.io/inferenceservice",
}
"""For each kind of owner, the label of pods with the owner's name."""
_MOST_LISTS: Final = 30
"""The maximum number of lists with a label selector. Then one list of all objects of the kind is read instead."""
MOST_OBJECTS: Final = 10_000
MOST_LEVELS: Final = 8


class OwnedObjects(Struct, kw_only=True):
    """An object with its owners and with the objects that controllers created for it.

    Args:
        root: the object.
        owners: the owners, the nearest first.
        objects: the created objects, level by level. Of the objects of owners, only Workloads and PodGroups are
            included.
        is_cut: whether more objects exist, which were not read.
    """

    root: JSON
    owners: Sequence[JSON]
    objects: list[JSON] = field(default_factory=list)
    is_cut: bool = False


def owned_objects(root: JSON, reading: ClusterReading) -> OwnedObjects:
    """Return an object with its owners and created objects, up to MOST_OBJECTS and MOST_LEVELS."""
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
            for created in indexes.owned(kind, owner):
                if id(created) in seen or _is_old_replica_set(created):
                    continue
                if len(tree.objects) >= MOST_OBJECTS:
                    tree.is_cut = True
                    return tree
                seen.add(id(created))
                tree.objects.append(created)
                if level < MOST_LEVELS:
                    waiting.append((created, _kinds_made_of(created), level + 1))
    return tree


class _Indexes:
    """Finds the objects in a namespace by the uid, or by the kind and name, of their owner.

    A namespace may have thousands of pods, so pods are first listed by labels of their owner. After many such lists,
    one list of all objects is cheaper.
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
    """Return a selector for labels that all pods of an owner have; "" if unknown."""
    if name := _NAME_LABELS.get(group_kind(owner)):
        return f"{name}={name_of(owner).name}"
    labels = map_at(owner, ("spec", "selector", "matchLabels"))
    return ",".join(f"{key}={value}" for key, value in labels.items() if group_kind(owner) in _SELECTING)


def _key_of_reference(reference: Mapping[str, JSON]) -> object:
    uid = text_at(reference, ("uid",))
    return uid or (text_at(reference, ("kind",)), text_at(reference, ("name",)))


def _owners(root: JSON, reading: ClusterReading) -> Sequence[JSON]:
    """Return the controllers of an object, the nearest first. Without a controller, the first owner counts."""
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


def _is_old_replica_set(obj: JSON) -> bool:
    """Return whether an object is a ReplicaSet with 0 replicas, such as the ReplicaSet of an earlier template."""
    return group_kind(obj) == ("apps", "ReplicaSet") and number_at(obj, ("spec", "replicas")) == 0


_SHORT_NAMES: Final[Mapping[str, str]] = {
    "po": "pod",
    "deploy": "deployment",
    "rs": "replicaset",
    "rc": "replicationcontroller",
    "sts": "statefulset",
    "ds": "daemonset",
    "cj": "cronjob",
    "lws": "leaderworkerset",
    "vcjob": "job.batch.volcano.sh",
    "vj": "job.batch.volcano.sh",
    "isvc": "inferenceservice",
    "wl": "workload",
    "pg": "podgroup",
    "pvc": "persistentvolumeclaim",
    "nb": "notebook",
}
"""The short names that Kubernetes or CustomResourceDefinitions declare for some kinds."""
_OTHERS: Final = (
    WORKLOAD,
    VOLCANO_GROUP,
    PLUGIN_GROUP,
    KAI_GROUP,
    RESOURCE_CLAIM,
    GroupVersionKind("", "v1", "PersistentVolumeClaim"),
)
"""Kinds without pods. Their objects say why other objects wait."""
_ENDS_OF_FILES: Final = (".yaml", ".yml", ".json")


def split_object_name(text: str) -> tuple[str, str]:
    """Return the kind and the name of `KIND/NAME`.

    Raises:
        ConfigurationError: the text has another form.
    """
    kind, slash, name = text.partition("/")
    if text.endswith(_ENDS_OF_FILES):
        raise ConfigurationError(
            f"why: `{text}` is a file, and not an object of the cluster: `claimgate simulate FILE` says whether the "
            "job of a file can start"
        )
    if not slash or not name or "/" in name or not kind:
        raise ConfigurationError(f"why: `{text}` does not name an object: write KIND/NAME, such as job/train")
    return kind, name


def find_named_object(text: str, namespace: str, reading: ClusterReading, table: Table) -> JSON:
    """Return the object that a user names as `KIND/NAME`. The kind may have its group.

    Raises:
        ConfigurationError: the text has another form, or the object does not exist.
    """
    kind_text, name = split_object_name(text)
    kinds = list(_kinds_of_text(kind_text.lower(), table))
    if not kinds:
        similar = nearest_name(kind_text.lower(), {each.kind.lower() for each in _known_kinds(table)}) or ""
        fix = did_you_mean(similar, "name a kind that makes pods, or a kind that Kueue or a scheduler creates")
        raise ConfigurationError(f"why: kind `{kind_text}` is not known: {fix}")
    for kind in kinds:
        obj = reading.get(kind, namespace, name)
        if isinstance(obj, dict):
            return obj
    if reading.missing:
        raise ConfigurationError("\n".join(f"why: {each}" for each in reading.missing))
    tried = named([f"{plural_of_kind(each.kind)}.{each.group}".rstrip(".") for each in kinds], "resource")
    raise ConfigurationError(f"why: {name} does not exist in namespace {namespace} ({tried}): name another with -n")


def _kinds_of_text(text: str, table: Table) -> Iterator[GroupVersionKind]:
    """Yield the kinds that a text may mean. As in kubectl, kinds of Kubernetes come first."""
    text = _SHORT_NAMES.get(text, text)
    name, _, group = text.partition(".")
    kinds = [each for each in _known_kinds(table) if name in (each.kind.lower(), plural_of_kind(each.kind))]
    of_group = [each for each in kinds if not group or each.group == group or each.group.startswith(f"{group}.")]
    yield from sorted(of_group, key=lambda each: "." in each.group)


def _known_kinds(table: Table) -> Iterator[GroupVersionKind]:
    for row in table.rows:
        yield GroupVersionKind(row.group, row.versions[0], row.kind)
    yield from _OTHERS
