"""The tolerations of a pod.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateTolerations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.pods.groups import POD_TEMPLATE
from webhook.facts.pods.node_selection import EFFECTS
from webhook.facts.pods.pod_template_labels_and_node_selector import label_key_fault
from webhook.name_faults import label_value_fault
from webhook.names import USE_KEY, USE_VALUE, label_value_errors
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.pods import PodSpec, Toleration

TOLERATION: Final = POD_TEMPLATE.rule(
    "pod-template/toleration",
    title="A toleration has an operator, a value and an effect that belong together.",
    why="The API server refuses a toleration that could match no taint.",
    function="ValidateTolerations",
)


def validate_tolerations(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateTolerations would report."""
    for toleration in pod.tolerations:
        key, operator, value = toleration.key, toleration.operator, toleration.value
        if key:
            yield from _check_toleration_key(toleration)
        if not key and operator != "Exists":
            message, fix = (
                "must be Exists because a toleration without a key tolerates every key",
                "set Exists, or name a key",
            )
            yield _toleration_problem(toleration.path("operator"), message, fix, operator or None)
        elif operator not in ("", "Equal", "Exists", "Lt", "Gt") and not is_placeholder(operator):
            path, message = toleration.path("operator"), "must be Equal or Exists"
            yield _toleration_problem(path, message, "set one of these", operator)
        elif operator == "Exists" and value:
            message, fix = "must not be set for operator Exists", "remove the value"
            yield _toleration_problem(toleration.path("value"), message, fix, value)
        elif value and label_value_errors(value) and not is_placeholder(value):
            message = f"cannot be the value of a taint because {label_value_fault(value)}"
            yield _toleration_problem(toleration.path("value"), message, USE_VALUE, value)
        yield from _validate_effect(toleration)


def _check_toleration_key(toleration: Toleration) -> Iterator[Problem]:
    if fault := label_key_fault(toleration.key):
        yield _toleration_problem(toleration.path("key"), fault, USE_KEY, toleration.key)


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
