"""Rules of Kueue's webhooks for the topology annotations of pod templates.

These webhooks do not check whether a level exists. Kueue checks the levels later, when Kueue places the job.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import qualified_name_errors, qualified_name_fault
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue import configuration
from webhook.facts.kueue.configuration import is_gate_on
from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.job_types import pod_templates
from webhook.facts.kueue.objects import BOOLEANS
from webhook.facts.kueue.topology import (
    LAYERS,
    POD_SET_GROUP,
    PREFERRED,
    REQUIRED,
    SLICE_REQUIRED,
    SLICE_SIZE,
    UNCONSTRAINED,
)
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted, either, shown
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

TOPOLOGY_ONE: Final = KUEUE_JOB.rule(
    "kueue-job/topology-one",
    title="The pod set asks for more than one kind of topology",
    why="Required, preferred and unconstrained topologies cannot be combined.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go",
    function="ValidateTASPodSetRequest",
)
TOPOLOGY_LEVEL: Final = KUEUE_JOB.rule(
    "kueue-job/topology-level",
    title="The topology annotation does not name a node label",
    why="The levels of a Topology are keys of node labels, so any other text is not a level.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go",
    function="validateTopologyRequest",
)
TOPOLOGY_BOOLEAN: Final = KUEUE_JOB.rule(
    "kueue-job/topology-boolean",
    title="The topology annotation is neither true nor false",
    why="Kueue accepts only true and false here.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go",
    function="validateTASUnconstrained",
)
TOPOLOGY_SLICE: Final = KUEUE_JOB.rule(
    "kueue-job/topology-slice",
    title="Only one of the two slice annotations is set, or the slice size is invalid",
    why="Kueue places the pods in slices, and needs the level and the size of a slice.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go",
    function="validateSliceSizeAnnotation",
)
TOPOLOGY_GROUP: Final = KUEUE_JOB.rule(
    "kueue-job/topology-group",
    title="The annotation podset-group-name does not make a valid group",
    why=(
        "Kueue places the two pod sets of a group in the same domain. One of them has a single pod, and both ask for "
        "the same topology."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go",
    function="validatePodSetGroupNameAnnotation",
)
TOPOLOGY_LAYERS: Final = KUEUE_JOB.rule(
    "kueue-job/topology-layers",
    title="The slice layers are not a JSON array, or a size does not divide the size before it",
    why=(
        "Kueue divides each slice of a layer into slices of the next layer, so each size must divide the size of the "
        "layer before it."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go",
    function="validateSliceRequiredTopologyConstraints",
)

_AT: Final[FieldPath] = ("metadata", "annotations")
_TOPOLOGIES: Final = (REQUIRED, PREFERRED, UNCONSTRAINED)
_LARGEST: Final = 2**31 - 1
_MOST_LAYERS: Final = 3
_LONGEST_LAYERS: Final = 10_000
"""The longest annotation that is parsed, in characters. An annotation with three layers has about a thousand."""


class _AnnotatedPodSet(Struct, frozen=True):
    """A pod set with the annotations of its template."""

    pod_set: PodSet
    annotations: Mapping[str, str]

    def path_of_annotation(self, key: str) -> FieldPath:
        """Return the path of an annotation in the object."""
        return self.pod_set.locate((*_AT, key))


def validate_topology(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateTASPodSetRequest and ValidatePodSetGroupingTopology would report."""
    pairs = zip(subject.once(pod_sets).all, subject.once(pod_templates), strict=True)
    listed = [_AnnotatedPodSet(pod_set, template.metadata.annotations) for pod_set, template in pairs]
    for pods in listed:
        if pods.annotations and not any(map(is_placeholder, pods.annotations.values())):
            yield from _validate_annotations(pods, subject)
    yield from _validate_pod_set_groups(listed)


def _validate_annotations(pods: _AnnotatedPodSet, subject: Subject) -> Iterator[Problem]:
    annotations = pods.annotations
    given = [key for key in _TOPOLOGIES if key in annotations]
    if len(given) > 1:
        message = "must not have several annotations that choose a topology"
        yield TOPOLOGY_ONE.problem(pods.pod_set.locate(_AT), message, f"keep {either(given)}")
    for key in (REQUIRED, PREFERRED, SLICE_REQUIRED):
        if key in annotations and qualified_name_errors(annotations[key]):
            message = f"must be the key of a node label, but {qualified_name_fault(annotations[key])}"
            fix = "write a level of the Topology, such as kubernetes.io/hostname"
            yield TOPOLOGY_LEVEL.problem(pods.path_of_annotation(key), message, fix, annotations[key])
    if UNCONSTRAINED in annotations and annotations[UNCONSTRAINED] not in BOOLEANS:
        path = pods.path_of_annotation(UNCONSTRAINED)
        yield TOPOLOGY_BOOLEAN.problem(path, "must be true or false", "set one of these", annotations[UNCONSTRAINED])
    yield from _check_topology_slice(pods)
    yield from _validate_group_name_annotation(pods)
    if LAYERS in annotations and is_gate_on(configuration.MULTI_LAYER_TOPOLOGY_GATE, subject):
        yield from _validate_slice_layers(pods)


def _check_topology_slice(pods: _AnnotatedPodSet) -> Iterator[Problem]:
    """Yield the problems that validateSliceSizeAnnotation and validateSliceRequiredTopologyAnnotation would report."""
    annotations, path, count = pods.annotations, pods.path_of_annotation(SLICE_SIZE), pods.pod_set.count
    if SLICE_SIZE not in annotations:
        if SLICE_REQUIRED in annotations:
            message = f"is not set, but {SLICE_REQUIRED} is"
            yield TOPOLOGY_SLICE.problem(path, message, "set the number of pods of a slice")
        return
    given = annotations[SLICE_SIZE]
    size = _parse_whole_number(given)
    if SLICE_REQUIRED not in annotations:
        message = f"must not be set without {SLICE_REQUIRED}"
        yield TOPOLOGY_SLICE.problem(path, message, "set both annotations or none", given)
    if size is None or size < 1:
        yield TOPOLOGY_SLICE.problem(path, "must be a whole number of pods, at least 1", "set 1 or more", given)
    elif count is not None and size > count:
        message = f"must not be above {count}, the number of pods of this template"
        yield TOPOLOGY_SLICE.problem(path, message, f"set at most {count}", given)


def _validate_group_name_annotation(pods: _AnnotatedPodSet) -> Iterator[Problem]:
    """Yield the problems that validatePodSetGroupNameAnnotation would report."""
    annotations = pods.annotations
    if POD_SET_GROUP not in annotations:
        return
    if _parse_whole_number(annotations[POD_SET_GROUP]) is not None:
        yield _topology_group_problem(pods, "must not be a number", "use a name", annotations[POD_SET_GROUP])
    if any(key in annotations for key in (SLICE_REQUIRED, SLICE_SIZE)):
        slices = [key for key in (SLICE_REQUIRED, SLICE_SIZE) if key in annotations]
        message = f"must not be set with {' and '.join(slices)}"
        fix = f"remove this annotation, or {' and '.join(slices)}"
        yield _topology_group_problem(pods, message, fix)
    if REQUIRED not in annotations and PREFERRED not in annotations:
        message = "must not be set without a topology for the pods of the group"
        yield _topology_group_problem(pods, message, f"set {REQUIRED} or {PREFERRED}")


def _topology_group_problem(pods: _AnnotatedPodSet, message: str, fix: str, value: str | None = None) -> Problem:
    return TOPOLOGY_GROUP.problem(pods.path_of_annotation(POD_SET_GROUP), message, fix, value)


def _validate_slice_layers(pods: _AnnotatedPodSet) -> Iterator[Problem]:
    """Yield the problem of slice layers that are not a JSON array, or in which a size does not divide the previous
    size.
    """
    given = pods.annotations[LAYERS]
    if len(given) > _LONGEST_LAYERS:
        return  # an annotation that is not parsed may be valid
    layers = _sizes_of_layers(given)
    if not 1 <= len(layers) <= _MOST_LAYERS:
        message = f"must be a JSON array of 1 to {_MOST_LAYERS} layers"
        yield TOPOLOGY_LAYERS.problem(pods.path_of_annotation(LAYERS), message, "write objects with topology and size")
        return
    above = 0
    for index, size in enumerate(layers):
        wrong = _fault_of_layer_size(size, above)
        if wrong:
            message = f"has `{shown(size)}` as the size of the layer at index {index}, which must be {wrong}"
            yield TOPOLOGY_LAYERS.problem(pods.path_of_annotation(LAYERS), message, "write sizes such as 8, 4 and 2")
            return
        above = size


def _sizes_of_layers(given: str) -> list[JSON]:
    """Return the sizes of the layers as written; [] if the text is not a JSON array.

    At most one layer more than Kueue allows is returned.
    """
    try:
        layers = json.loads(given)
    except (ValueError, RecursionError):
        return []
    if not isinstance(layers, list):
        return []
    return [layer.get("size") if isinstance(layer, dict) else None for layer in layers[: _MOST_LAYERS + 1]]


def _fault_of_layer_size(size: JSON, above: int) -> str:
    """Return what the size of a layer must be; "" if it is valid."""
    if not isinstance(size, int) or size < 1:
        return "a whole number of at least 1"
    return f"a divisor of {above}, the size of the layer before it" if above % size else ""


def _validate_pod_set_groups(listed: Sequence[_AnnotatedPodSet]) -> Iterator[Problem]:
    """Yield the problems that ValidatePodSetGroupingTopology would report. A group must have two pod sets with equal
    topology requests. One of the two pod sets must have a single pod.
    """
    groups: dict[str, list[_AnnotatedPodSet]] = {}
    for pods in listed:
        name = pods.annotations.get(POD_SET_GROUP, "")
        if name and not is_placeholder(name):
            groups.setdefault(name, []).append(pods)
    for name, members in groups.items():
        yield from _validate_group_members(name, members, is_only=len(listed) == 1)


def _validate_group_members(name: str, members: Sequence[_AnnotatedPodSet], *, is_only: bool) -> Iterator[Problem]:
    counts = [member.pod_set.count for member in members]
    if len(members) != 2:
        given = counted(len(members), "pod template")
        message = f"is a group of {given}, but a group must have 2, one with a single pod and one with its workers"
        fix = "set the annotation on exactly two pod templates"
        if is_only:
            fix = "remove the annotation because this object has only one pod template"
        yield _topology_group_problem(members[0], message, fix, name)
    elif None not in counts and 1 not in counts:
        message = "is a group of two pod templates with several pods each, but one of them must have a single pod"
        yield _topology_group_problem(members[0], message, "put the leading pod and its workers into one group", name)
    elif _requested_topologies(members[0]) != _requested_topologies(members[1]):
        message = "is a group of two pod templates with different topologies, but both must ask for the same topology"
        fix = "set the same topology annotation with the same level on both"
        yield _topology_group_problem(members[0], message, fix, name)


def _requested_topologies(pods: _AnnotatedPodSet) -> tuple[str | None, str | None]:
    return pods.annotations.get(REQUIRED), pods.annotations.get(PREFERRED)


def _parse_whole_number(given: str) -> int | None:
    try:
        number = int(given) if len(given) < 12 and given.isascii() and "_" not in given else None
    except ValueError:
        return None
    return number if number is not None and abs(number) <= _LARGEST else None
