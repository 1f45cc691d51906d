"""Where a pod may run: node selector, affinity, tolerations and scheduling gates.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.pods.container_validation import problem
from webhook.facts.pods.node_selection import EFFECTS
from webhook.name_faults import key_fault, value_fault
from webhook.names import USE_KEY, USE_VALUE, label_value, qualified_name
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

_REQUIRED, _PREFERRED = (f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("required", "preferred"))
_WEIGHTS: Final = range(1, 101)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def validate_affinity(pod: JSON, deadline: Deadline) -> Iterator[Problem]:
    """As validateAffinity."""
    at: FieldPath = ("spec", "affinity")
    affinity = pod.get("affinity")
    if not affinity:
        return
    nodes = affinity.get("nodeAffinity") or {}
    if (required := nodes.get(_REQUIRED)) is not None:
        yield from validate_node_selector(required, (*at, "nodeAffinity", _REQUIRED), deadline)
    for index, term in enumerate(deadline.paced(nodes.get(_PREFERRED) or ())):
        path = (*at, "nodeAffinity", _PREFERRED, index)
        yield from _validate_weight(term, path)
        yield from _validate_term(term.get("preference") or {}, (*path, "preference"), deadline)
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _validate_pod_affinity(affinity.get(kind) or {}, (*at, kind), deadline)


def validate_node_selector(selector: JSON, at: FieldPath, deadline: Deadline) -> Iterator[Problem]:
    """As ValidateNodeSelector."""
    terms: Sequence[JSON] = selector.get("nodeSelectorTerms") or ()
    if not terms:
        message = "must have at least one term because without a term no node fits"
        yield problem("affinity", (*at, "nodeSelectorTerms"), message, "add a term, or remove the affinity")
    for index, term in enumerate(deadline.paced(terms)):
        yield from _validate_term(term, (*at, "nodeSelectorTerms", index), deadline)


def _validate_term(term: JSON, at: FieldPath, deadline: Deadline) -> Iterator[Problem]:
    """As ValidateNodeSelectorRequirement."""
    for index, each in enumerate(deadline.paced(term.get("matchExpressions") or ())):
        path, operator = (*at, "matchExpressions", index), each.get("operator") or ""
        count = len(each.get("values") or ())
        if operator not in _OPERATORS:
            message = f"must be one of {', '.join(_OPERATORS)}"
            yield problem("affinity", (*path, "operator"), message, "set one of these", operator)
        elif count != 1 if operator in ("Gt", "Lt") else (count == 0) == (operator in ("In", "NotIn")):
            wanted, fix = "one value", "write one value"
            if count and "Exist" in operator:
                wanted, fix = "no value", "remove the values"
            yield problem("affinity", (*path, "values"), f"must have {wanted} for operator {operator}", fix)
        yield from _validate_key(each.get("key") or "", (*path, "key"), "affinity")


def _validate_pod_affinity(affinity: JSON, at: FieldPath, deadline: Deadline) -> Iterator[Problem]:
    for index, term in enumerate(deadline.paced(affinity.get(_REQUIRED) or ())):
        yield from _validate_topology(term, (*at, _REQUIRED, index))
    for index, term in enumerate(deadline.paced(affinity.get(_PREFERRED) or ())):
        path = (*at, _PREFERRED, index)
        yield from _validate_weight(term, path)
        yield from _validate_topology(term.get("podAffinityTerm") or {}, (*path, "podAffinityTerm"))


def _validate_topology(term: JSON, at: FieldPath) -> Iterator[Problem]:
    key, path = term.get("topologyKey") or "", (*at, "topologyKey")
    if not key:
        fix = "name a label of nodes such as kubernetes.io/hostname"
        yield problem("affinity", path, "must be set because it says which nodes are compared", fix)
    else:
        yield from _validate_key(key, path, "affinity")


def _validate_weight(term: JSON, at: FieldPath) -> Iterator[Problem]:
    if (weight := term.get("weight") or 0) not in _WEIGHTS:
        yield problem("affinity", (*at, "weight"), "must be from 1 to 100", "set a weight from 1 to 100", weight)


def _validate_key(key: str, at: FieldPath, rule: str) -> Sequence[Problem]:
    if qualified_name(key) and not is_placeholder(key):
        return (problem(rule, at, f"cannot be the key of a label because {key_fault(key)}", USE_KEY, key),)
    return ()


def validate_tolerations(pod: JSON, deadline: Deadline) -> Iterator[Problem]:
    """As ValidateTolerations."""
    for index, each in enumerate(deadline.paced(pod.get("tolerations") or ())):
        at: FieldPath = ("spec", "tolerations", index)
        key, operator, value = (each.get(name) or "" for name in ("key", "operator", "value"))
        if key:
            yield from _validate_key(key, (*at, "key"), "toleration")
        if not key and operator != "Exists":
            message = "must be Exists because a toleration without a key tolerates every key"
            yield problem("toleration", (*at, "operator"), message, "set Exists, or name a key", operator or None)
        elif operator not in ("", "Equal", "Exists", "Lt", "Gt") and not is_placeholder(operator):
            yield problem("toleration", (*at, "operator"), "must be Equal or Exists", "set one of these", operator)
        elif operator == "Exists" and value:
            message, fix = "must not be set for operator Exists", "remove the value"
            yield problem("toleration", (*at, "value"), message, fix, value)
        elif value and label_value(value) and not is_placeholder(value):
            message = f"cannot be the value of a taint because {value_fault(value)}"
            yield problem("toleration", (*at, "value"), message, USE_VALUE, value)
        yield from _validate_effect(each, at)


def _validate_effect(toleration: JSON, at: FieldPath) -> Sequence[Problem]:
    effect, path = toleration.get("effect") or "", (*at, "effect")
    if effect and effect not in EFFECTS and not is_placeholder(effect):
        return (problem("toleration", path, f"must be one of {', '.join(EFFECTS)}", "set one of these", effect),)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        message, fix = (
            "must be NoExecute because tolerationSeconds is set",
            "set NoExecute, or remove tolerationSeconds",
        )
        return (problem("toleration", path, message, fix, effect or None),)
    return ()


def validate_scheduling_gates(pod: JSON, deadline: Deadline) -> Iterator[Problem]:
    """As validateSchedulingGates."""
    for index, each in enumerate(deadline.paced(pod.get("schedulingGates") or ())):
        name, path = each.get("name") or "", ("spec", "schedulingGates", index, "name")
        if qualified_name(name) and not is_placeholder(name):
            message = f"cannot be the name of a scheduling gate because {key_fault(name)}"
            yield problem("scheduling-gate", path, message, USE_KEY, name)


def validate_labels(labels: JSON, at: FieldPath, deadline: Deadline, rule: str = "label") -> Iterator[Problem]:
    """ValidateLabels of metadata, and of spec.nodeSelector."""
    for key, value in deadline.each((labels or {}).items()):
        yield from _validate_key(key, at, rule)
        if label_value(value) and not is_placeholder(value):
            message = f"cannot be the value of a label because {value_fault(value)}"
            yield problem(rule, (*at, key), message, USE_VALUE, value)


def validate_annotations(annotations: JSON, at: FieldPath, deadline: Deadline) -> Iterator[Problem]:
    """ValidateAnnotations, by which case does not matter."""
    for key in deadline.each(annotations or {}):
        if qualified_name(key.lower()) and not is_placeholder(key):
            message = f"cannot be the key of an annotation because {key_fault(key)}"
            yield problem("label", at, message, USE_KEY, key)
