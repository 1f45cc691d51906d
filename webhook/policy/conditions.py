"""matchConditions: does a policy want to speak about this request.

A false condition beats an error in another one, also in one before it. Source: k8s.io/apiserver v0.36
pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.errors import EvaluationError
from webhook.policy.compiled import Condition
from webhook.policy.evaluation import CONDITIONS_BUDGET, OutOfBudget, Purse
from webhook.policy.fielderrors import aggregate


def hold(found: Sequence[Condition], activation: Mapping[str, Any], *, is_fail: bool, deadline: float | None) -> bool:
    """Say whether all conditions hold. Under failurePolicy Ignore an error is a condition that does not hold.

    Raises:
        EvaluationError: none is false, some failed, and the policy's failurePolicy is Fail; all their texts.

    """
    purse = Purse(CONDITIONS_BUDGET, deadline)
    errors: list[EvaluationError] = []
    is_false = False
    for index, condition in enumerate(found):
        try:
            is_false |= purse.evaluate(condition.expression, activation) is False
        except OutOfBudget:
            if is_fail:
                raise
            return False
        except EvaluationError as error:
            errors.append(error)
        if is_false and purse.covers(len(found) - index - 1):
            return False
    if errors and is_fail and not is_false:
        raise EvaluationError(aggregate(errors))
    return not errors and not is_false
