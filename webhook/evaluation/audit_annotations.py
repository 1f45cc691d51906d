"""auditAnnotations: what a policy records in the audit log about a request.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/{validator,dispatcher}.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.errors import EvaluationError
from webhook.evaluation.cost_budget import CostBudget, OutOfBudget
from webhook.evaluation.messages import trim_space
from webhook.policy.compiled import AuditAnnotation

MAX_BYTES = 10 * 1024
"""maxAuditAnnotationValueLength; longer values are cut."""


def annotation_values(
    rules: Sequence[AuditAnnotation], activation: Mapping[str, Any], budget: CostBudget, *, is_fail: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the values to publish, and the errors of expressions that failed (none under failurePolicy Ignore).

    Raises:
        OutOfBudget: the expressions together cost too much.
    """
    published: dict[str, str] = {}
    errors: list[str] = []
    for rule in rules:
        try:
            value = budget.evaluate(rule.expression, activation)
        except OutOfBudget:
            raise
        except EvaluationError as error:
            errors += [str(error)] if is_fail else []
            continue
        text = trim_space(value) if isinstance(value, str) else ""
        if text:
            published[rule.key] = truncate_value(text)
    return published, errors


def truncate_value(text: str) -> str:
    """Return the first 10 KiB of a value, whole characters only."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= MAX_BYTES else raw[:MAX_BYTES].decode("utf-8", "ignore")
