"""The affinity of a pod to nodes and to other pods.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.pods.groups import POD_TEMPLATE
from webhook.facts.pods.pod_template_labels_and_node_selector import label_key_fault
from webhook.names import USE_KEY
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.pods import (
    Affinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredNodes,
    PreferredPods,
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
        yield _affinity_problem(path, "must be set because it says which nodes are compared", fix)
    else:
        yield from _check_affinity_key(key, path)


def _validate_weight(term: PreferredNodes | PreferredPods) -> Iterator[Problem]:
    if term.weight not in _WEIGHTS:
        path, message = term.path("weight"), "must be from 1 to 100"
        yield _affinity_problem(path, message, "set a weight from 1 to 100", term.weight)


def _check_affinity_key(key: str, path: FieldPath) -> Iterator[Problem]:
    if fault := label_key_fault(key):
        yield _affinity_problem(path, fault, USE_KEY, key)


def _affinity_problem(path: FieldPath, message: str, fix: str, value: JSON = None) -> Problem:
    return AFFINITY.problem(path, message, fix, value)
