"""Checks that the pods of a StatefulSet or LeaderWorkerSet with a queue keep the shape that Kueue counted.

Source: kubernetes-sigs/kueue@ff69552e pkg/util/pod/pod.go SpecShape and pkg/controller/jobframework/validation.go
ValidateImmutablePodGroupPodSpec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.fields import Amount
from webhook.typed.pods import Container, PodSpec, PodTemplate

POD_SHAPE: Final = KUEUE_JOB.rule(
    "kueue-job/pod-shape",
    title="A StatefulSet or LeaderWorkerSet with a queue keeps what its pods ask for.",
    why="Kueue counts the pods once and admits them so; other pods would run without quota.",
    function="ValidateImmutablePodGroupPodSpec",
)
_SHAPE: Final = (
    *("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints"),
    "resourceClaims",
)
"""The fields of a pod's shape, in addition to its amounts and the ports of its containers."""


def validate_leader_template_change(old: PodTemplate, new: PodTemplate) -> Iterator[Problem]:
    """Yield the problems of the leaders' template of a LeaderWorkerSet, which must not be added or removed."""
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
    """Return the problem of a field that changed, or of a leaders' template that was added or removed."""
    message = "cannot change because Kueue admitted the pods with the old value"
    fix = "restore the old value, or create another object"
    if is_template:
        message = "cannot be added or removed because Kueue counted the pods of each group"
        fix = "undo the change, or create another LeaderWorkerSet"
    return POD_SHAPE.problem(path, message, fix)


def _amounts_as_quantities(given: Mapping[str, Amount]) -> Mapping[str, JSON]:
    """Return amounts as quantities, so that equal amounts compare equal however they are written."""
    read = ((name, value, quantity.read_quantity_or_none(value)) for name, value in given.items())
    return {name: value if amount is None else amount for name, value, amount in read}


def _value_or_none_if_empty(value: JSON) -> JSON:
    """Return the value, or None if it is empty, because empty counts as not set."""
    return None if value in (None, "", [], {}) else value
