"""Explains why one object of a cluster does not run, with the statements of the objects that were created for it.

The first statement decides. Pods with the same problem have one statement. Events and claims of only one of these pods
are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.cluster.naming import group_kind
from webhook.status import gangs, kueue, ray, workloads
from webhook.status.owned_objects import MOST_OBJECTS, OwnedObjects, owned_objects
from webhook.status.pods import explain_pod, is_ready, read_pod, read_volume_claim, without_replaced_pods
from webhook.status.sources import ClusterReading
from webhook.status.statement import ObjectName, Standing, Statement, Turn, items_at, name_of, text_at
from webhook.text.wording import counted

State: TypeAlias = Literal["failed", "stuck", "waits", "starting", "running", "done", "unknown"]
STATES: Final[Mapping[State, str]] = {
    "failed": "failed",
    "stuck": "does not start",
    "waits": "waits",
    "starting": "is starting",
    "running": "runs",
    "done": "is done",
    "unknown": "does not run",
}
"""The headline for each state of an object."""
_IN_PART: Final = "runs in part"
"""The headline for an object with ready pods and with pods that do not start."""
_ReadObject: TypeAlias = Callable[[JSON, ClusterReading], Iterator[Statement]]
_TRAINING: Final = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "MXJob", "JAXJob")
_READERS: Final[Mapping[tuple[str, str], _ReadObject]] = {
    ("apps", "DaemonSet"): workloads.read_pods_of_set,
    ("apps", "Deployment"): workloads.read_deployment,
    ("apps", "ReplicaSet"): workloads.read_pods_of_set,
    ("apps", "StatefulSet"): workloads.read_pods_of_set,
    ("batch", "Job"): workloads.read_job,
    ("batch.volcano.sh", "Job"): gangs.read_volcano_job,
    ("jobset.x-k8s.io", "JobSet"): workloads.read_job_set,
    ("kueue.x-k8s.io", "Workload"): kueue.read_workload,
    ("ray.io", "RayCluster"): ray.read_ray_cluster,
    ("ray.io", "RayJob"): ray.read_ray_job,
    ("ray.io", "RayService"): ray.read_ray_service,
    ("scheduling.run.ai", "PodGroup"): gangs.read_kai_group,
    ("scheduling.volcano.sh", "PodGroup"): gangs.read_volcano_group,
    ("scheduling.x-k8s.io", "PodGroup"): gangs.read_plugin_group,
    ("trainer.kubeflow.org", "TrainJob"): workloads.read_train_job,
    **{("kubeflow.org", kind): workloads.read_training_job for kind in _TRAINING},
}
_MOST_KINDS_OF_PODS: Final = 20
"""The maximum number of different statements about pods. For each statement, one pod is examined."""


class Explanation(Struct, frozen=True, kw_only=True):
    """Why an object does not run.

    Args:
        about: the name of the object.
        made_by: the owners of the object, the nearest first.
        state: the state of the object.
        statements: the statements about the object and the objects that were created for it. The first statement
            decides `state`.
        made: the number of objects of each kind that controllers created for the object.
        pods: the number of pods, without replaced pods, and how many of them are ready or succeeded.
        unknown: sentences about objects that could not be read.
    """

    about: ObjectName
    made_by: tuple[ObjectName, ...]
    state: State
    statements: tuple[Statement, ...]
    made: Mapping[str, int]
    pods: tuple[int, int]
    unknown: tuple[str, ...]

    @property
    def headline(self) -> str:
        """Return a sentence with the state of the object and its cause. A failed job also says how a pod failed."""
        count, ready = self.pods
        state = _IN_PART if self.state == "stuck" and ready else STATES[self.state]
        if self.statements and self.state not in ("running", "done"):
            first, *others = self.statements
            cause = next(filter(_is_cause_of_end, others), None) if first.turn is Turn.ENDED else None
            return f"{state}: {first.sentence}{f'; {cause.sentence}' if cause else ''}"
        if self.state == "running":
            return f"{state}: {ready} of {counted(count, 'pod')} {'is' if ready == 1 else 'are'} ready"
        return f"{state}, and nothing that was read says why" if self.state == "unknown" else state


def _is_cause_of_end(statement: Statement) -> bool:
    """Return whether a statement says how a pod failed. The statement of a failed job does not say this."""
    is_pod = statement.about.kind == "Pod"
    return is_pod and statement.turn is Turn.CONTAINER and statement.standing in ("failed", "stuck")


def explain(root: JSON, reading: ClusterReading) -> tuple[Explanation, OwnedObjects]:
    """Return why an object does not run, and the objects that were created for it."""
    tree = owned_objects(root, reading)
    pods = [each for each in (root, *tree.objects) if group_kind(each) == ("", "Pod")]
    current, replaced = without_replaced_pods(pods, tree)
    others = [each for each in (*tree.owners, root, *tree.objects) if group_kind(each) != ("", "Pod")]
    statements = [
        *(statement for each in others for statement in _statements_of_object(each, reading)),
        *_statements_of_pods(current, reading),
        *(replace(each, turn=Turn.SILENCE) for each in _statements_of_pods(replaced, reading)),
    ]
    ordered = _statements_in_deciding_order(root, statements, tree)
    created = Counter(text_at(each, ("kind",)) for each in tree.objects)
    cut = (f"only {MOST_OBJECTS} of the objects that controllers created for it are read",) if tree.is_cut else ()
    pods_ready = len(current), sum(map(is_ready, current))
    explanation = Explanation(
        about=name_of(root),
        made_by=tuple(map(name_of, tree.owners)),
        state=_state(ordered, pods_ready),
        statements=tuple(ordered),
        made=dict(sorted(created.items())),
        pods=pods_ready,
        unknown=(*reading.missing, *cut),
    )
    return explanation, tree


def _statements_of_object(obj: JSON, reading: ClusterReading) -> Iterator[Statement]:
    kind = group_kind(obj)
    if kind == ("", "PersistentVolumeClaim"):
        if statement := read_volume_claim(obj, reading):
            yield statement
    elif kind == ("resource.k8s.io", "ResourceClaim"):
        yield from _statements_of_claim(obj)
    else:
        yield from _READERS.get(kind, workloads.read_conditions_of_server)(obj, reading)


def _statements_of_claim(claim: JSON) -> Iterator[Statement]:
    """Yield a statement if no devices are allocated to a ResourceClaim."""
    status = claim.get("status")
    if isinstance(status, dict) and "allocation" in status:
        return
    classes = dict.fromkeys(
        text_at(request, ("exactly", "deviceClassName")) or text_at(request, ("deviceClassName",))
        for request in items_at(claim, ("spec", "devices", "requests"))
    )
    of_class = ", ".join(filter(None, classes))
    yield Statement(
        about=name_of(claim),
        standing="waits",
        turn=Turn.SILENCE,
        sentence=f"no devices are allocated to its claim{f' of class {of_class}' if of_class else ''}",
        fix="compare the selectors of the claim and of its class with the devices in ResourceSlices",
    )


def _statements_of_pods(pods: Sequence[JSON], reading: ClusterReading) -> Iterator[Statement]:
    """Yield each statement about pods once, with the number of other pods that have the same statement."""
    groups: dict[tuple[Standing, Turn, str], list[tuple[JSON, Statement]]] = {}
    for pod in pods:
        if statement := read_pod(pod):
            key = statement.standing, statement.turn, statement.sentence
            groups.setdefault(key, []).append((pod, statement))
    for same_pods in sorted(groups.values(), key=len, reverse=True)[:_MOST_KINDS_OF_PODS]:
        pod, statement = same_pods[0]
        for each in explain_pod(pod, statement, reading):
            yield replace(each, alike=len(same_pods) - 1) if each.about == statement.about else each


def _statements_in_deciding_order(root: JSON, statements: Sequence[Statement], tree: OwnedObjects) -> list[Statement]:
    """Return the statements in the order in which they decide. Old and redundant statements are left out."""
    root_name = name_of(root)
    above = {root_name, *map(name_of, tree.owners)}
    has_workload = any(text_at(each, ("kind",)) == "Workload" for each in tree.objects)
    newest = _newest_objects(tree)
    by_text: dict[tuple[ObjectName, str], Statement] = {}
    for each in statements:
        if each.turn is Turn.SUSPENDED and (each.about not in above or has_workload):
            continue
        if each.standing == "done" and each.about != root_name:
            continue
        if each.last_seen and each.last_seen < newest.get(each.about, ""):
            continue  # out of date, because the controller created an object after this event
        is_part = each.turn is Turn.ENDED and each.about not in above
        by_text[each.about, each.sentence] = replace(each, turn=Turn.CONTAINER) if is_part else each
    return sorted(by_text.values(), key=lambda each: (each.turn, each.about.kind == "Pod"))


def _newest_objects(tree: OwnedObjects) -> Mapping[ObjectName, str]:
    """Return the creation time of the newest object of each owner, in RFC 3339."""
    owners = {text_at(each, ("metadata", "uid")): name_of(each) for each in (*tree.owners, tree.root, *tree.objects)}
    newest: dict[ObjectName, str] = {}
    for obj in tree.objects:
        created = text_at(obj, ("metadata", "creationTimestamp"))
        for reference in items_at(obj, ("metadata", "ownerReferences")):
            owner = owners.get(text_at(reference, ("uid",)))
            if owner is not None:
                newest[owner] = max(newest.get(owner, ""), created)
    return newest


def _state(statements: Sequence[Statement], pods: tuple[int, int]) -> State:
    if not statements:
        return "running" if pods[0] and pods[0] == pods[1] else "unknown"
    first = statements[0]
    if first.turn is Turn.SILENCE and pods[0] and pods[0] == pods[1]:
        return "running"
    return first.standing
