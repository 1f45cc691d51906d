"""Validates the fields that decide where a pod runs: labels and annotations, node selector, affinity and tolerations.

Functions have the names of Kubernetes' functions.

Source: k8s.io/apimachinery v0.36 pkg/apis/meta/v1/validation/validation.go; k8s.io/kubernetes v1.36
pkg/apis/core/validation/validation.go, such as ValidateTolerations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import (
    label_value_errors,
    label_value_fault,
    label_value_fix,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.facts.pods.node_selection import EFFECTS
from webhook.facts.pods.pod_template import POD_TEMPLATE
from webhook.rules.problem import Problem
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
from webhook.yamltext.placeholders import is_placeholder

NODE_SELECTOR: Final = POD_TEMPLATE.rule(
    "pod-template/node-selector",
    title="The nodeSelector is not a valid label",
    why="No node can have this label.",
    function="ValidateLabels",
)
LABEL: Final = POD_TEMPLATE.rule(
    "pod-template/label",
    title="A label or annotation of the pod is invalid",
    why="The API server refuses the pods when the controller creates them.",
    source="k8s.io/apimachinery v0.36 pkg/apis/meta/v1/validation/validation.go",
    function="ValidateLabels",
)
AFFINITY: Final = POD_TEMPLATE.rule(
    "pod-template/affinity",
    title="The affinity term is invalid",
    why=(
        "The API server refuses a term without a topologyKey, with a weight outside 1 to 100, with an unknown "
        "operator, or with a wrong number of values."
    ),
    function="validateAffinity",
)
TOLERATION: Final = POD_TEMPLATE.rule(
    "pod-template/toleration",
    title="The toleration is invalid",
    why="The API server refuses a toleration that can match no taint.",
    function="ValidateTolerations",
)
_WEIGHTS: Final = range(1, 101)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def label_key_fault(key: str) -> str:
    """Return the fault of the key of a label, a selector or a toleration; "" for a valid key."""
    if qualified_name_errors(key) and not is_placeholder(key):
        return f"cannot be the key of a label because {qualified_name_fault(key)}"
    return ""


def validate_node_selector_labels(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateLabels would report about spec.nodeSelector."""
    for path, fault, fix, value in _label_faults(pod.node_selector, pod.path("nodeSelector")):
        yield NODE_SELECTOR.problem(path, fault, fix, value)


def validate_labels(metadata: Metadata) -> Iterator[Problem]:
    """Yield the problems that ValidateLabels would report about metadata.labels."""
    for path, fault, fix, value in _label_faults(metadata.labels, metadata.path("labels")):
        yield _label_problem(path, fault, fix, value)


def validate_selector(selector: Mapping[str, str], at: FieldPath) -> Iterator[Problem]:
    """Yield the problems that ValidateLabels would report about the selector of a Service."""
    for path, fault, fix, value in _label_faults(selector, at):
        yield _label_problem(path, fault, fix, value)


def _label_problem(path: FieldPath, message: str, fix: str, value: str) -> Problem:
    return LABEL.problem(path, message, fix, value)


def _label_faults(labels: Mapping[str, str], at: FieldPath) -> Iterator[tuple[FieldPath, str, str, str]]:
    """Yield the path, fault, fix and value of invalid labels."""
    for key, value in labels.items():
        if fault := label_key_fault(key):
            yield at, fault, qualified_name_fix(key), key
        if label_value_errors(value) and not is_placeholder(value):
            fault = f"cannot be the value of a label because {label_value_fault(value)}"
            yield (*at, key), fault, label_value_fix(value), value


def validate_annotations(metadata: Metadata) -> Iterator[Problem]:
    """Yield the problems of ValidateAnnotations, which accepts capital letters in the domains of keys."""
    for key in metadata.annotations:
        if qualified_name_errors(key.lower()) and not is_placeholder(key):
            fault = f"cannot be the key of an annotation because {qualified_name_fault(key)}"
            yield _label_problem(metadata.path("annotations"), fault, qualified_name_fix(key), key)


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
        message = "has no term, so no node fits"
        yield _affinity_problem(selector.path("nodeSelectorTerms"), message, "add a term, or remove the affinity")
    for term in selector.node_selector_terms:
        yield from _validate_term(term)


def _validate_term(term: NodeSelectorTerm) -> Iterator[Problem]:
    """Yield the problems that ValidateNodeSelectorRequirement would report."""
    for requirement in term.match_expressions:
        operator, count = requirement.operator, len(requirement.values)
        if operator not in _OPERATORS:
            message = f"must be one of {', '.join(_OPERATORS)}"
            yield _affinity_problem(requirement.path("operator"), message, "set one of these", operator)
        elif count != 1 if operator in ("Gt", "Lt") else (count == 0) == (operator in ("In", "NotIn")):
            wanted, fix = "one value", "write one value"
            if count and "Exist" in operator:
                wanted, fix = "no value", "remove the values"
            message = f"must have {wanted} for operator {operator}"
            yield _affinity_problem(requirement.path("values"), message, fix)
        yield from _check_affinity_key(requirement.key, requirement.path("key"))


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
        yield _affinity_problem(path, "is not set, but topologyKey decides which nodes form a group", fix)
    else:
        yield from _check_affinity_key(key, path)


def _validate_weight(term: PreferredNodes | PreferredPods) -> Iterator[Problem]:
    if term.weight not in _WEIGHTS:
        path, message = term.path("weight"), "must be from 1 to 100"
        yield _affinity_problem(path, message, "set a weight from 1 to 100", term.weight)


def _check_affinity_key(key: str, path: FieldPath) -> Iterator[Problem]:
    if fault := label_key_fault(key):
        yield _affinity_problem(path, fault, qualified_name_fix(key), key)


def _affinity_problem(path: FieldPath, message: str, fix: str, value: JSON = None) -> Problem:
    return AFFINITY.problem(path, message, fix, value)


def validate_tolerations(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateTolerations would report."""
    for toleration in pod.tolerations:
        key, operator, value = toleration.key, toleration.operator, toleration.value
        if key:
            yield from _check_toleration_key(toleration)
        if not key and operator != "Exists":
            message = "must be Exists because a toleration without a key tolerates every key"
            fix = f"name a key, or set Exists{' without value' if value else ''} to tolerate every taint"
            yield _toleration_problem(toleration.path("operator"), message, fix, operator or None)
        elif operator not in ("", "Equal", "Exists", "Lt", "Gt") and not is_placeholder(operator):
            path, message = toleration.path("operator"), "must be Equal or Exists"
            yield _toleration_problem(path, message, "set one of these", operator)
        elif operator == "Exists" and value:
            message, fix = "must not be set for operator Exists", "remove the value"
            yield _toleration_problem(toleration.path("value"), message, fix, value)
        elif value and label_value_errors(value) and not is_placeholder(value):
            message = f"cannot be the value of a taint because {label_value_fault(value)}"
            yield _toleration_problem(toleration.path("value"), message, label_value_fix(value), value)
        yield from _validate_effect(toleration)


def _check_toleration_key(toleration: Toleration) -> Iterator[Problem]:
    if fault := label_key_fault(toleration.key):
        yield _toleration_problem(toleration.path("key"), fault, qualified_name_fix(toleration.key), toleration.key)


def _toleration_problem(path: FieldPath, message: str, fix: str, value: JSON = None) -> Problem:
    return TOLERATION.problem(path, message, fix, value)


def _validate_effect(toleration: Toleration) -> Sequence[Problem]:
    effect, path = toleration.effect, toleration.path("effect")
    if effect and effect not in EFFECTS and not is_placeholder(effect):
        return (_toleration_problem(path, f"must be one of {', '.join(EFFECTS)}", "set one of these", effect),)
    if toleration.toleration_seconds is not None and effect != "NoExecute":
        message = "must be NoExecute because tolerationSeconds is set"
        return (_toleration_problem(path, message, "set NoExecute, or remove tolerationSeconds", effect or None),)
    return ()
