"""What Kueue's webhooks refuse of kinds that serve: Deployment, StatefulSet, LeaderWorkerSet.

Kueue counts their pods once, and cannot suspend them: what it counts stays as it is while a queue is named. Source:
kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/{deployment,statefulset,leaderworkerset}, pkg/util/pod/pod.go
SpecShape and pkg/controller/jobframework/validation.go ValidateImmutablePodGroupPodSpec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.kueue.configuration import configuration
from webhook.facts.kueue.feature_gates import GROUP_SIZE, is_on
from webhook.facts.kueue.job_validation import (
    fixed,
    labels_of,
    problem,
    validate_gates_update,
    validate_priority_update,
)
from webhook.facts.kueue.managed import SERVING, Managed
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath, get
from webhook.problem import Problem
from webhook.wording import change

_DEPLOYMENT, _STATEFUL_SET, _LEADER_WORKER_SET = SERVING
_GROUP: Final[FieldPath] = ("spec", "leaderWorkerTemplate")
_REPLICAS: Final[FieldPath] = ("spec", "replicas")
_MOST_REPLICAS: Final = 1_000_000
_STOP: Final = "scale the object to 0 first"
_SHAPE: Final = (
    *("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints"),
    "resourceClaims",
)
"""What makes up the shape of a pod, besides its amounts and the ports of its containers."""


def validate_serving(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As ValidateCreate and ValidateUpdate of the three webhooks."""
    if how.framework not in SERVING:
        return
    if how.framework == _LEADER_WORKER_SET:
        yield from _validate_replicas(subject)
    if subject.old_object is not None:
        yield from _validate_update(subject)
        if how.queue or subject.once(configuration).manages_all:
            yield from _validate_pods(subject, how)


def _validate_replicas(subject: Subject) -> Iterator[Problem]:
    """As validateReplicasField."""
    replicas = _whole(subject.object, _REPLICAS)
    if not 0 <= replicas <= _MOST_REPLICAS:
        message = f"must be 0 to {_MOST_REPLICAS} because Kueue makes a Workload for each group"
        fix = f"set at most {_MOST_REPLICAS}" if replicas > 0 else "set 0 or more"
        yield problem("group-replicas", _REPLICAS, message, fix, replicas)


def _validate_update(subject: Subject) -> Iterator[Problem]:
    """The queue stays while a pod is ready, and is never removed."""
    is_waiting = _whole(subject.old_object, ("status", "readyReplicas"), 0) == 0
    was, now = (text(labels_of(each).get(QUEUE_NAME)) for each in (subject.old_object, subject.object))
    if was != now and not is_waiting:
        yield fixed(QUEUE_NAME, subject, _STOP)
    elif was and not now:
        message = f"cannot be removed (it was `{was}`)"
        yield problem("immutable", ("metadata", "labels", QUEUE_NAME), message, f"set `{was}` or another queue")
    yield from validate_priority_update(subject, _STOP, is_waiting=is_waiting)
    yield from validate_gates_update(subject)


def _validate_pods(subject: Subject, how: Managed) -> Iterator[Problem]:
    """What Kueue has counted stays."""
    if how.framework == _STATEFUL_SET:
        yield from _validate_shape(("spec", "template"), subject)
        yield from _validate_scale(subject)
    elif how.framework == _LEADER_WORKER_SET:
        yield from _validate_leader(subject)
        yield from _validate_shape((*_GROUP, "workerTemplate"), subject)
        old, new = (_whole(each, (*_GROUP, "size")) for each in (subject.old_object, subject.object))
        if old != new and is_on(GROUP_SIZE, subject):
            message = f"{change(old, new)} because Kueue counted {old} pods for each group"
            yield problem(
                "group-size", (*_GROUP, "size"), message, f"set {old} again, or create another LeaderWorkerSet"
            )


def _validate_scale(subject: Subject) -> Iterator[Problem]:
    """All replicas or none."""
    old, new = (_whole(each, _REPLICAS) for each in (subject.old_object, subject.object))
    if old and new and old != new:
        message = f"{change(old, new)} because Kueue admits all pods of a StatefulSet together"
        yield problem("scale", _REPLICAS, message, f"scale to 0 first, and then to {new}")
    elif new and not old and _whole(subject.object, ("status", "replicas"), 0) > 0:
        message = f"{change(old, new)} while the pods from before are still there"
        yield problem("scale", _REPLICAS, message, "wait until status.replicas is 0")


def _validate_leader(subject: Subject) -> Iterator[Problem]:
    path = (*_GROUP, "leaderTemplate")
    was, now = (get(each, path) is not None for each in (subject.old_object, subject.object))
    if was and now:
        yield from _validate_shape(path, subject)
    elif was or now:
        message = "cannot be added or removed because Kueue counted the pods of each group"
        yield problem("pod-shape", path, message, "undo the change, or create another LeaderWorkerSet")


def _validate_shape(path: FieldPath, subject: Subject) -> Iterator[Problem]:
    """As ValidateImmutablePodGroupPodSpec."""
    at = (*path, "spec")
    before, after = (mapping(get(each, at)) for each in (subject.old_object, subject.object))
    if before == after:
        return
    for name in ("containers", "initContainers"):
        old, new = items(before.get(name)), items(after.get(name))
        if len(old) != len(new):
            yield _reshaped((*at, name))
            continue
        for index, (one, other) in enumerate(zip(subject.deadline.each(old), new, strict=True)):
            if _plain(mapping(one).get("ports")) != _plain(mapping(other).get("ports")):
                yield _reshaped((*at, name, index, "ports"))
            if _requests(one) != _requests(other):
                yield _reshaped((*at, name, index, "resources", "requests"))
    for name in _SHAPE:
        if _plain(before.get(name)) != _plain(after.get(name)):
            yield _reshaped((*at, name))
    if _amounts(before.get("overhead")) != _amounts(after.get("overhead")):
        yield _reshaped((*at, "overhead"))
    if _requests(before) != _requests(after):
        yield _reshaped((*at, "resources", "requests"))


def _reshaped(path: FieldPath) -> Problem:
    message = "cannot change because Kueue admitted the pods with the old value"
    fix = "restore the old value, or create another object"
    return problem("pod-shape", path, message, fix)


def _requests(of: JSON) -> Mapping[str, JSON]:
    return _amounts(get(of, ("resources", "requests")))


def _amounts(given: JSON) -> Mapping[str, JSON]:
    """Amounts that compare by what they are worth."""
    read = ((name, value, quantity.read(value)) for name, value in mapping(given).items())
    return {name: value if amount is None else amount for name, value, amount in read}


def _plain(value: JSON) -> JSON:
    """A value without what is empty, which is as good as absent."""
    return None if value in (None, "", [], {}) else value


def _whole(obj: JSON, path: FieldPath, default: int = 1) -> int:
    value = get(obj, path)
    return value if isinstance(value, int) else default
