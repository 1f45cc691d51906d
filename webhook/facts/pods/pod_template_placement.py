"""Where a pod may run: node selector, affinity, tolerations and scheduling gates.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.pods.groups import POD_TEMPLATE
from webhook.facts.pods.node_selection import EFFECTS
from webhook.name_faults import key_fault, value_fault
from webhook.names import USE_KEY, USE_VALUE, label_value, qualified_name
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.objects import Metadata
from webhook.typed.pods import (
    Affinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PreferredNodes,
    PreferredPods,
    Toleration,
)

AFFINITY: Final = POD_TEMPLATE.rule(
    "pod-template/affinity",
    title="Terms of affinity have what their kind needs.",
    why=(
        "A term without a topologyKey, with a weight outside of 1 to 100, or with an operator that nobody knows "
        "compares nothing."
    ),
    function="validateAffinity",
)
TOLERATION: Final = POD_TEMPLATE.rule(
    "pod-template/toleration",
    title="A toleration has an operator, a value and an effect that belong together.",
    why="The API server refuses a toleration that could match no taint.",
    function="ValidateTolerations",
)
NODE_SELECTOR: Final = POD_TEMPLATE.rule(
    "pod-template/node-selector",
    title="A nodeSelector has keys and values of labels.",
    why="No node has a label of another form.",
    function="ValidateLabels",
)
SCHEDULING_GATE: Final = POD_TEMPLATE.rule(
    "pod-template/scheduling-gate",
    title="A scheduling gate has a qualified name.",
    why="The API server refuses another name.",
    function="validateSchedulingGates",
)
LABEL: Final = POD_TEMPLATE.rule(
    "pod-template/label",
    title="Labels and annotations of a pod have keys and values of the form of labels.",
    why="The API server refuses others, and no selector could name them.",
    source="k8s.io/apimachinery v0.36 pkg/apis/meta/v1/validation/validation.go",
    function="ValidateLabels",
)

_WEIGHTS: Final = range(1, 101)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def validate_affinity(affinity: Affinity) -> Iterator[Problem]:
    """Yield the problems that validateAffinity would report."""
    nodes = affinity.node_affinity
    if nodes.required:
        yield from validate_node_selector(nodes.required)
    for preferred in nodes.preferred:
        yield from _validate_weight(preferred)
        yield from _validate_term(preferred.preference)
    yield from _validate_pod_affinity(affinity.pod_affinity)
    yield from _validate_pod_affinity(affinity.pod_anti_affinity)


def validate_node_selector(selector: NodeSelector) -> Iterator[Problem]:
    """Yield the problems that ValidateNodeSelector would report."""
    if not selector.node_selector_terms:
        message = "must have at least one term because without a term no node fits"
        yield _affinity(selector.path("nodeSelectorTerms"), message, "add a term, or remove the affinity")
    for term in selector.node_selector_terms:
        yield from _validate_term(term)


def _validate_term(term: NodeSelectorTerm) -> Iterator[Problem]:
    """Yield the problems that ValidateNodeSelectorRequirement would report."""
    for requirement in term.match_expressions:
        operator, count = requirement.operator, len(requirement.values)
        if operator not in _OPERATORS:
            message = f"must be one of {', '.join(_OPERATORS)}"
            yield _affinity(requirement.path("operator"), message, "set one of these", operator)
        elif count != 1 if operator in ("Gt", "Lt") else (count == 0) == (operator in ("In", "NotIn")):
            wanted, fix = "one value", "write one value"
            if count and "Exist" in operator:
                wanted, fix = "no value", "remove the values"
            message = f"must have {wanted} for operator {operator}"
            yield _affinity(requirement.path("values"), message, fix)
        yield from _affinity_key(requirement.key, requirement.path("key"))


def _validate_pod_affinity(affinity: PodAffinity) -> Iterator[Problem]:
    for term in affinity.required:
        yield from _validate_topology(term)
    for preferred in affinity.preferred:
        yield from _validate_weight(preferred)
        yield from _validate_topology(preferred.pod_affinity_term)


def _validate_topology(term: PodAffinityTerm) -> Iterator[Problem]:
    key, path = term.topology_key, term.path("topologyKey")
    if not key:
        fix = "name a label of nodes such as kubernetes.io/hostname"
        yield _affinity(path, "must be set because it says which nodes are compared", fix)
    else:
        yield from _affinity_key(key, path)


def _validate_weight(term: PreferredNodes | PreferredPods) -> Iterator[Problem]:
    if term.weight not in _WEIGHTS:
        path, message = term.path("weight"), "must be from 1 to 100"
        yield _affinity(path, message, "set a weight from 1 to 100", term.weight)


def _affinity_key(key: str, path: FieldPath) -> Iterator[Problem]:
    if fault := _key_fault(key):
        yield _affinity(path, fault, USE_KEY, key)


def _affinity(path: FieldPath, message: str, fix: str, value: JSON = None) -> Problem:
    return AFFINITY.problem(path, message, fix, value)


def _key_fault(key: str) -> str:
    """What is wrong with the key of a label, a selector or a toleration; "" for nothing."""
    if qualified_name(key) and not is_placeholder(key):
        return f"cannot be the key of a label because {key_fault(key)}"
    return ""


def validate_tolerations(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateTolerations would report."""
    for toleration in pod.tolerations:
        key, operator, value = toleration.key, toleration.operator, toleration.value
        if key:
            yield from _toleration_key(toleration)
        if not key and operator != "Exists":
            message, fix = (
                "must be Exists because a toleration without a key tolerates every key",
                "set Exists, or name a key",
            )
            yield _toleration(toleration.path("operator"), message, fix, operator or None)
        elif operator not in ("", "Equal", "Exists", "Lt", "Gt") and not is_placeholder(operator):
            path, message = toleration.path("operator"), "must be Equal or Exists"
            yield _toleration(path, message, "set one of these", operator)
        elif operator == "Exists" and value:
            message, fix = "must not be set for operator Exists", "remove the value"
            yield _toleration(toleration.path("value"), message, fix, value)
        elif value and label_value(value) and not is_placeholder(value):
            message = f"cannot be the value of a taint because {value_fault(value)}"
            yield _toleration(toleration.path("value"), message, USE_VALUE, value)
        yield from _validate_effect(toleration)


def _toleration_key(toleration: Toleration) -> Iterator[Problem]:
    if fault := _key_fault(toleration.key):
        yield _toleration(toleration.path("key"), fault, USE_KEY, toleration.key)


def _toleration(path: FieldPath, message: str, fix: str, value: JSON = None) -> Problem:
    return TOLERATION.problem(path, message, fix, value)


def _validate_effect(toleration: Toleration) -> Sequence[Problem]:
    effect, path = toleration.effect, toleration.path("effect")
    if effect and effect not in EFFECTS and not is_placeholder(effect):
        return (_toleration(path, f"must be one of {', '.join(EFFECTS)}", "set one of these", effect),)
    if toleration.toleration_seconds is not None and effect != "NoExecute":
        message = "must be NoExecute because tolerationSeconds is set"
        return (_toleration(path, message, "set NoExecute, or remove tolerationSeconds", effect or None),)
    return ()


def validate_scheduling_gates(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that validateSchedulingGates would report."""
    for gate in pod.scheduling_gates:
        if qualified_name(gate.name) and not is_placeholder(gate.name):
            message = f"cannot be the name of a scheduling gate because {key_fault(gate.name)}"
            yield SCHEDULING_GATE.problem(gate.path("name"), message, USE_KEY, gate.name)


def validate_node_selector_labels(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateLabels would report of spec.nodeSelector."""
    for path, fault, fix, value in _label_faults(pod.node_selector, pod.path("nodeSelector")):
        yield NODE_SELECTOR.problem(path, fault, fix, value)


def validate_labels(metadata: Metadata) -> Iterator[Problem]:
    """Yield the problems that ValidateLabels would report of metadata.labels."""
    for path, fault, fix, value in _label_faults(metadata.labels, metadata.path("labels")):
        yield _label(path, fault, fix, value)


def _label(path: FieldPath, message: str, fix: str, value: str) -> Problem:
    return LABEL.problem(path, message, fix, value)


def _label_faults(labels: Mapping[str, str], at: FieldPath) -> Iterator[tuple[FieldPath, str, str, str]]:
    """Where labels are wrong, what is wrong, what to do, and what stands there."""
    for key, value in labels.items():
        if fault := _key_fault(key):
            yield at, fault, USE_KEY, key
        if label_value(value) and not is_placeholder(value):
            yield (*at, key), f"cannot be the value of a label because {value_fault(value)}", USE_VALUE, value


def validate_annotations(metadata: Metadata) -> Iterator[Problem]:
    """ValidateAnnotations, by which case does not matter."""
    for key in metadata.annotations:
        if qualified_name(key.lower()) and not is_placeholder(key):
            fault = f"cannot be the key of an annotation because {key_fault(key)}"
            yield _label(metadata.path("annotations"), fault, USE_KEY, key)
