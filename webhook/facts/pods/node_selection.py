"""Which labels a selector selects, and which taints pods tolerate, as the scheduler decides it.

Sources: k8s.io/component-helpers v0.36 scheduling/corev1 (nodeaffinity, helpers.go) and k8s.io/api core/v1
toleration.go; label selectors as in k8s.io/apimachinery v0.36 pkg/labels. What is not of its type selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.values import items, mapping, text

KEEPS_OUT: Final = ("NoSchedule", "NoExecute")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED_TERMS: Final = (
    *("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"),
)
"""Where the spec of a pod has the terms of which a node must match one."""


def selects(selector: JSON, labels: Mapping[str, JSON], deadline: Deadline) -> bool:
    """Whether a LabelSelector selects what has these labels; {} selects everything."""
    wanted = mapping(mapping(selector).get("matchLabels"))
    if any(labels.get(key) != value for key, value in deadline.paced(wanted.items())):
        return False
    expressions = items(mapping(selector).get("matchExpressions"))
    return all(holds(mapping(each), labels) for each in deadline.paced(expressions))


def holds(requirement: Mapping[str, JSON], labels: Mapping[str, JSON]) -> bool:
    """Whether one requirement holds: of a LabelSelector, or of a term of node affinity."""
    key, operator, values = text(requirement.get("key")), requirement.get("operator"), items(requirement.get("values"))
    given = labels.get(key)
    match operator:
        case "In":
            return given is not None and given in values
        case "NotIn":
            return given is None or given not in values
        case "Exists":
            return given is not None
        case "DoesNotExist":
            return given is None
        case "Gt" | "Lt":
            return _compares(operator, given, values)
    return False


def _compares(operator: str, given: JSON, values: list[JSON]) -> bool:
    try:
        left, right = int(text(given)), int(text(values[0]))
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def untolerated(taints: Iterable[JSON], tolerations: Iterable[JSON], deadline: Deadline) -> Mapping[str, JSON] | None:
    """The first taint that keeps pods out which have these tolerations."""
    known = [mapping(each) for each in tolerations]
    for taint in map(mapping, deadline.paced(taints)):
        if taint.get("effect") in KEEPS_OUT and not any(_tolerates(each, taint) for each in deadline.paced(known)):
            return taint
    return None


def _tolerates(toleration: Mapping[str, JSON], taint: Mapping[str, JSON]) -> bool:
    """As Toleration.ToleratesTaint."""
    effect, key = text(toleration.get("effect")), text(toleration.get("key"))
    if (effect and effect != taint.get("effect")) or (key and key != taint.get("key")):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and text(toleration.get("value")) == text(taint.get("value"))
