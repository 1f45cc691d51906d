"""What Kueue's webhooks refuse of the topology annotations of pod templates.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/tas_validation.go; functions are named like those
there. That a level exists is asked only when the job is placed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.kueue import feature_gates
from webhook.facts.kueue.feature_gates import is_on
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
from webhook.facts.subject import Subject
from webhook.facts.values import mapping, text
from webhook.name_faults import key_fault
from webhook.names import qualified_name
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted, either, shown
from webhook.workloads.podsets import PodSet

problem: Final = Group("kueue-job").problem
_AT: Final[FieldPath] = ("metadata", "annotations")
_TOPOLOGIES: Final = (REQUIRED, PREFERRED, UNCONSTRAINED)
_LARGEST: Final = 2**31 - 1
_MOST_LAYERS: Final = 3


def validate_topology_request(pod_set: PodSet, subject: Subject) -> Iterator[Problem]:
    """As ValidateTASPodSetRequest."""
    notes = {key: text(value) for key, value in mapping(get(pod_set.template, _AT)).items()}
    if not notes or any(map(is_placeholder, notes.values())):
        return
    given = [key for key in _TOPOLOGIES if key in notes]
    if len(given) > 1:
        message = "must not have several annotations that choose a topology"
        yield problem("topology-one", pod_set.locate(_AT), message, f"keep {either(given)}")
    for key in (REQUIRED, PREFERRED, SLICE_REQUIRED):
        if key in notes and qualified_name(notes[key]):
            message = f"must be the key of a node label, but {key_fault(notes[key])}"
            fix = "write a level of the Topology, such as kubernetes.io/hostname"
            yield problem("topology-level", pod_set.locate((*_AT, key)), message, fix, notes[key])
    if UNCONSTRAINED in notes and notes[UNCONSTRAINED] not in BOOLEANS:
        path = pod_set.locate((*_AT, UNCONSTRAINED))
        yield problem("topology-boolean", path, "must be true or false", "set one of these", notes[UNCONSTRAINED])
    yield from _validate_slices(notes, pod_set)
    yield from _validate_group(notes, pod_set)
    if LAYERS in notes and is_on(feature_gates.LAYERS, subject):
        yield from _validate_layers(notes, pod_set)


def _validate_slices(notes: Mapping[str, str], pod_set: PodSet) -> Iterator[Problem]:
    """As validateSliceSizeAnnotation and validateSliceRequiredTopologyAnnotation."""
    at = pod_set.locate((*_AT, SLICE_SIZE))
    if SLICE_REQUIRED in notes and SLICE_SIZE not in notes:
        message = f"must be set because {SLICE_REQUIRED} is set"
        yield problem("topology-slice", at, message, "set the number of pods of a slice")
    elif SLICE_SIZE in notes:
        if SLICE_REQUIRED not in notes:
            message = f"must not be set without {SLICE_REQUIRED}"
            yield problem("topology-slice", at, message, "set both annotations or none", notes[SLICE_SIZE])
        size = _whole(notes[SLICE_SIZE])
        if size is None or size < 1:
            message = "must be a whole number of pods, at least 1"
            yield problem("topology-slice", at, message, "set 1 or more", notes[SLICE_SIZE])
        elif pod_set.count is not None and size > pod_set.count:
            message = f"must not be above {pod_set.count}, the number of pods of this template"
            yield problem("topology-slice", at, message, f"set at most {pod_set.count}", notes[SLICE_SIZE])


def _validate_group(notes: Mapping[str, str], pod_set: PodSet) -> Iterator[Problem]:
    """As validatePodSetGroupNameAnnotation."""
    if POD_SET_GROUP not in notes:
        return
    at = pod_set.locate((*_AT, POD_SET_GROUP))
    if _whole(notes[POD_SET_GROUP]) is not None:
        yield problem("topology-group", at, "must not be a number", "use a name", notes[POD_SET_GROUP])
    if any(key in notes for key in (SLICE_REQUIRED, SLICE_SIZE)):
        yield problem(
            "topology-group", at, "must not be set with annotations for slices", "remove one of the two annotations"
        )
    if REQUIRED not in notes and PREFERRED not in notes:
        message = "must not be set without a required or a preferred topology, which the group has in common"
        yield problem("topology-group", at, message, f"set {REQUIRED} or {PREFERRED}")


def _validate_layers(notes: Mapping[str, str], pod_set: PodSet) -> Iterator[Problem]:
    """Layers of slices: a JSON array, each size a divisor of the one above."""
    at = pod_set.locate((*_AT, LAYERS))
    try:
        layers = json.loads(notes[LAYERS])
    except (ValueError, RecursionError):
        layers = None
    if not isinstance(layers, list) or not 1 <= len(layers) <= _MOST_LAYERS:
        message = f"must be a JSON array of 1 to {_MOST_LAYERS} layers"
        yield problem("topology-layers", at, message, "write objects with topology and size")
        return
    above = 0
    for index, layer in enumerate(map(mapping, layers)):
        size: JSON = layer.get("size")
        wrong = "a whole number of at least 1" if not isinstance(size, int) or size < 1 else ""
        if wrong or (above and above % size):
            wrong = wrong or f"a divisor of {above}, the size of the layer before it"
            message = f"has `{shown(size)}` as the size of the layer at index {index}, which must be {wrong}"
            yield problem("topology-layers", at, message, "write sizes such as 8, 4 and 2")
            return
        above = size


def validate_pod_set_groups(pod_sets: Sequence[PodSet], subject: Subject) -> Iterator[Problem]:
    """As ValidatePodSetGroupingTopology: two pod sets, one of a single pod, with the same topology."""
    groups: dict[str, list[PodSet]] = {}
    for each in subject.deadline.paced(pod_sets):
        name = text(get(each.template, (*_AT, POD_SET_GROUP)))
        if name and not is_placeholder(name):
            groups.setdefault(name, []).append(each)
    for name, members in groups.items():
        path = members[0].locate((*_AT, POD_SET_GROUP))
        if len(members) != 2:
            given = counted(len(members), "pod template")
            message = f"is a group of {given}, but a group must have 2, one of a single pod and one of its workers"
            fix = "set the annotation on exactly two pod templates"
            if len(pod_sets) == 1:
                fix = "remove the annotation because this object has only one pod template"
            yield problem("topology-group", path, message, fix, name)
        elif None not in (counts := [each.count for each in members]) and 1 not in counts:
            message = "is a group of two pod templates with several pods each, but one of them must have a single pod"
            yield problem("topology-group", path, message, "group the pod that leads with its workers", name)
        elif _asked(members[0]) != _asked(members[1]):
            message = "is a group whose two pod templates ask for different topologies, but must ask for the same"
            fix = "set the same topology annotation with the same level on both"
            yield problem("topology-group", path, message, fix, name)


def _asked(pod_set: PodSet) -> tuple[JSON, ...]:
    notes = mapping(get(pod_set.template, _AT))
    return notes.get(REQUIRED), notes.get(PREFERRED)


def _whole(given: str) -> int | None:
    try:
        number = int(given) if len(given) < 12 and given.isascii() and "_" not in given else None
    except ValueError:
        return None
    return number if number is not None and abs(number) <= _LARGEST else None
