"""Rules of Kueue's webhooks for kinds that serve: Deployment, StatefulSet and LeaderWorkerSet.

Kueue cannot suspend these kinds, and counts their pods only once. So the number and the shape of the pods must not
change while the object names a queue.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/{deployment,statefulset,leaderworkerset}, pkg/util/pod/pod.go
SpecShape and pkg/controller/jobframework/validation.go ValidateImmutablePodGroupPodSpec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue.configuration import IMMUTABLE_GROUP_SIZE_GATE, is_gate_on, read_kueue_configuration
from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.job import (
    immutable_field_problem,
    immutable_label_problem,
    validate_gates_update,
    validate_priority_update,
)
from webhook.facts.kueue.job_types import ServingWorkload
from webhook.facts.kueue.managed import SERVING_FRAMEWORKS, KueueManagement
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import change
from webhook.typed.cluster_objects import StatefulSet
from webhook.typed.fields import Amount
from webhook.typed.pods import Container, PodSpec, PodTemplate
from webhook.typed.worker_sets import LeaderWorkerSet, LeaderWorkerTemplate

POD_SHAPE: Final = KUEUE_JOB.rule(
    "kueue-job/pod-shape",
    title="The shape of the pods of a StatefulSet or LeaderWorkerSet with a queue was changed",
    why=(
        "The shape of pods is their containers with requests and ports, and their settings for placement. Kueue counts "
        "the pods once, so changed pods would run without quota."
    ),
    function="ValidateImmutablePodGroupPodSpec",
)
SCALE: Final = KUEUE_JOB.rule(
    "kueue-job/scale",
    title="The size of a StatefulSet with a queue was changed while it has pods",
    why="Kueue admits all pods of a StatefulSet together, and counts the pods again only when all pods are gone.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/statefulset/statefulset_webhook.go",
    function="ValidateUpdate",
)
KUEUE_JOB_GROUP_SIZE: Final = KUEUE_JOB.rule(
    "kueue-job/group-size",
    title="The group size of a LeaderWorkerSet with a queue was changed",
    why="Kueue counts the pods of a group once, so more pods would run without quota. Kueue checks this since 0.19.2.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go",
    function="ValidateUpdate",
)
GROUP_REPLICAS: Final = KUEUE_JOB.rule(
    "kueue-job/group-replicas",
    title="The LeaderWorkerSet has a negative number of groups or more than 1000000",
    why="Kueue creates one Workload for each group and limits the number of groups.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go",
    function="validateReplicasField",
)
_SHAPE: Final = (
    *("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints"),
    "resourceClaims",
)
"""The fields of a pod's shape, in addition to its requests and the ports of its containers."""
_DEPLOYMENT, _STATEFUL_SET, _LEADER_WORKER_SET = SERVING_FRAMEWORKS
_MOST_REPLICAS: Final = 1_000_000
_STOP: Final = "scale the object to 0 first"


def validate_serving(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that ValidateCreate and ValidateUpdate of the three webhooks would report."""
    if how.framework not in SERVING_FRAMEWORKS:
        return
    if how.framework == _LEADER_WORKER_SET:
        yield from _check_group_replicas(subject.typed(LeaderWorkerSet))
    if subject.typed_old(ServingWorkload):
        yield from _validate_queue_update(subject)
        if how.queue or subject.once(read_kueue_configuration).manages_all:
            yield from _validate_pod_changes(subject, how)


def _check_group_replicas(groups: LeaderWorkerSet) -> Iterator[Problem]:
    """Yield the problems that validateReplicasField would report."""
    replicas = groups.spec.replicas
    if not 0 <= replicas <= _MOST_REPLICAS:
        message = f"must be 0 to {_MOST_REPLICAS} because Kueue makes a Workload for each group"
        fix = f"set at most {_MOST_REPLICAS}" if replicas > 0 else "set 0 or more"
        yield GROUP_REPLICAS.problem(groups.spec.path("replicas"), message, fix, replicas)


def _validate_queue_update(subject: Subject) -> Iterator[Problem]:
    """Report changes of the queue while a pod is ready, and removal of the queue."""
    old, new = subject.typed_old(ServingWorkload), subject.typed(ServingWorkload)
    is_waiting = old.status.ready_replicas == 0
    old_queue, new_queue = old.labels.get(QUEUE_NAME, ""), new.labels.get(QUEUE_NAME, "")
    if old_queue != new_queue and not is_waiting:
        yield immutable_label_problem(QUEUE_NAME, subject, _STOP)
    elif old_queue and not new_queue:
        message = f"cannot be removed (it was `{old_queue}`)"
        yield immutable_field_problem(
            new.metadata.path("labels", QUEUE_NAME), message, f"set `{old_queue}` or another queue"
        )
    yield from validate_priority_update(subject, _STOP, is_waiting=is_waiting)
    yield from validate_gates_update(subject)


def _validate_pod_changes(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Report changes of the pod templates and numbers of pods that Kueue has counted."""
    if how.framework == _STATEFUL_SET:
        before, after = subject.typed_old(StatefulSet), subject.typed(StatefulSet)
        yield from validate_unchanged_pod_shape(before.spec.template, after.spec.template)
        yield from _validate_scale_change(before, after)
    elif how.framework == _LEADER_WORKER_SET:
        old = subject.typed_old(LeaderWorkerSet).spec.leader_worker_template
        new = subject.typed(LeaderWorkerSet).spec.leader_worker_template
        yield from validate_leader_template_change(old.leader_template, new.leader_template)
        yield from validate_unchanged_pod_shape(old.worker_template, new.worker_template)
        if is_gate_on(IMMUTABLE_GROUP_SIZE_GATE, subject):
            yield from _check_group_size(old, new)


def _check_group_size(old: LeaderWorkerTemplate, new: LeaderWorkerTemplate) -> Iterator[Problem]:
    if old.size != new.size:
        message = f"{change(old.size, new.size)} because Kueue counted {old.size} pods for each group"
        fix = f"set {old.size} again, or create another LeaderWorkerSet"
        yield KUEUE_JOB_GROUP_SIZE.problem(new.path("size"), message, fix)


def _validate_scale_change(before: StatefulSet, after: StatefulSet) -> Iterator[Problem]:
    """Report a change of a StatefulSet's size.

    A change to 0 is always allowed. A change from 0 is allowed when the old pods are gone.
    """
    old, new = before.spec.replicas, after.spec.replicas
    if old and new and old != new:
        message = f"{change(old, new)} because Kueue admits all pods of a StatefulSet together"
        yield SCALE.problem(
            after.spec.path("replicas"),
            message,
            f"scale to 0 first, wait until the pods are gone, and then scale to {new}",
        )
    elif new and not old and after.status.replicas > 0:
        message = f"{change(old, new)} while the old pods still exist"
        yield SCALE.problem(after.spec.path("replicas"), message, "wait until status.replicas is 0")


def validate_leader_template_change(old: PodTemplate, new: PodTemplate) -> Iterator[Problem]:
    """Report a leaderTemplate that was added or removed, or that changes the shape of its pods."""
    if old and new:
        yield from validate_unchanged_pod_shape(old, new)
    elif old or new:
        yield _pod_shape_problem(new.at, is_template=True)


def validate_unchanged_pod_shape(before: PodTemplate, after: PodTemplate) -> Iterator[Problem]:
    """Yield the problems that ValidateImmutablePodGroupPodSpec would report."""
    old, new = before.spec, after.spec
    if not new.differs(old):
        return
    for name, containers, others in (
        ("containers", old.containers, new.containers),
        ("initContainers", old.init_containers, new.init_containers),
    ):
        if len(containers) != len(others):
            yield _pod_shape_problem(new.path(name))
            continue
        for container, other in zip(containers, others, strict=True):
            yield from _validate_container(container, other)
    yield from _validate_pod(old, new)


def _validate_container(old: Container, new: Container) -> Iterator[Problem]:
    if _value_or_none_if_empty(old.json.get("ports")) != _value_or_none_if_empty(new.json.get("ports")):
        yield _pod_shape_problem(new.path("ports"))
    if _amounts_as_quantities(old.resources.requests) != _amounts_as_quantities(new.resources.requests):
        yield _pod_shape_problem(new.resources.path("requests"))


def _validate_pod(old: PodSpec, new: PodSpec) -> Iterator[Problem]:
    for name in _SHAPE:
        if _value_or_none_if_empty(old.json.get(name)) != _value_or_none_if_empty(new.json.get(name)):
            yield _pod_shape_problem(new.path(name))
    if _amounts_as_quantities(old.overhead) != _amounts_as_quantities(new.overhead):
        yield _pod_shape_problem(new.path("overhead"))
    if _amounts_as_quantities(old.resources.requests) != _amounts_as_quantities(new.resources.requests):
        yield _pod_shape_problem(new.resources.path("requests"))


def _pod_shape_problem(path: FieldPath, *, is_template: bool = False) -> Problem:
    """Return the problem of a changed field or, with `is_template`, of a leaderTemplate that was added or removed."""
    message = "cannot change because Kueue admitted the pods with the old value"
    fix = "restore the old value, or create another object"
    if is_template:
        message = "cannot be added or removed because Kueue counted the pods of each group"
        fix = "undo the change, or create another LeaderWorkerSet"
    return POD_SHAPE.problem(path, message, fix)


def _amounts_as_quantities(given: Mapping[str, Amount]) -> Mapping[str, JSON]:
    """Return amounts as quantities, so that equal amounts in different notations are equal."""
    read = ((name, value, quantity.read_quantity_or_none(value)) for name, value in given.items())
    return {name: value if amount is None else amount for name, value, amount in read}


def _value_or_none_if_empty(value: JSON) -> JSON:
    """Return the value, or None if it is empty, because an empty value counts as not set."""
    return None if value in (None, "", [], {}) else value
