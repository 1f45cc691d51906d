"""Matches label selectors and tolerations as the scheduler does.

Sources: k8s.io/component-helpers v0.36 scheduling/corev1 (nodeaffinity, helpers.go) and k8s.io/api core/v1
toleration.go; label selectors as in k8s.io/apimachinery v0.36 pkg/labels. A value of a wrong type selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.typed.collections import Items
from webhook.typed.pods import LabelSelector, SelectorRequirement, Taint, Toleration
from webhook.typed.view import ReadingContext

KEEPS_OUT: Final = ("NoSchedule", "NoExecute")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NODE_POOLS: Final = frozenset(
    (
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
        "agentpool",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name",
        "doks.digitalocean.com/node-pool",
        "k8s.scaleway.com/pool-name",
        "lke.linode.com/pool-id",
        "karpenter.sh/nodepool",
        "karpenter.sh/provisioner-name",
    )
)
"""Labels of nodes with the name of a node pool, as clouds and Karpenter set them."""


def is_selected(labels: Mapping[str, JSON], selector: LabelSelector) -> bool:
    """Return whether a LabelSelector selects these labels; an empty LabelSelector selects everything."""
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(labels_meet_requirement(labels, requirement) for requirement in selector.match_expressions)


def labels_meet_requirement(labels: Mapping[str, JSON], requirement: SelectorRequirement) -> bool:
    """Return whether labels meet one requirement of a LabelSelector or of a term of node affinity."""
    return _meets_requirement(labels.get(requirement.key), requirement.operator, requirement.values)


def _meets_requirement(given: JSON, operator: JSON, values: Sequence[JSON]) -> bool:
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
            return _meets_number_comparison(operator, given, values)
    return False


def _meets_number_comparison(operator: str, given: JSON, values: Sequence[JSON]) -> bool:
    try:
        left, right = int(str(given)), int(str(values[0]))
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def first_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that keeps pods with these tolerations off a node; None if no taint does."""
    return next((taint for taint in taints if taint.effect in KEEPS_OUT and not is_tolerated(taint, tolerations)), None)


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether pods with these tolerations tolerate a taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration tolerates a taint, as Toleration.ToleratesTaint of Kubernetes decides."""
    effect, key = toleration.effect, toleration.key
    if (effect and effect != taint.effect) or (key and key != taint.key):
        return False
    return toleration.operator == "Exists" or (bool(key) and toleration.value == taint.value)


def selector_json_matches(selector: JSON, labels: Mapping[str, JSON], deadline: Deadline) -> bool:
    """Return whether a LabelSelector in JSON selects these labels."""
    return is_selected(labels, LabelSelector.of(selector, (), ReadingContext(deadline)))


def first_untolerated_taint(
    taints: Iterable[JSON], tolerations: Iterable[JSON], deadline: Deadline
) -> Mapping[str, JSON] | None:
    """Return the result of `first_untolerated` as JSON, for taints and tolerations in JSON."""
    reading = ReadingContext(deadline)
    tolerating = Items([Toleration.of(toleration, (), reading) for toleration in tolerations], deadline)
    first = first_untolerated(
        (Taint.of(taint, (), reading) for taint in deadline.items_with_clock_checks(taints)), tolerating
    )
    return None if first is None else first.json
