"""matchConditions: does a policy want to speak about this request.

A false condition beats an error in another one, also in one before it. Source: k8s.io/apiserver v0.36
pkg/admission/plugin/webhook/matchconditions/matcher.go. Many policies have the same conditions; what one that sees only
the object and the request has said about an object is not computed again, but paid for again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.cel.cost import MATCH_CONDITIONS_BUDGET
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, EvaluationError
from webhook.evaluation.cost_budget import CostBudget, OutOfBudget
from webhook.manifests.field_errors import aggregate
from webhook.policy.compiled import Condition, Expression


@dataclass(frozen=True, slots=True)
class ConditionAnswers:
    """What conditions see of one object, and what those have said that policies share: value, error and cost.

    `has_facts`: the policies that share it assume the same of the cluster, so that facts are the same for them, too.
    """

    seen: Mapping[str, Any]
    answers: dict[str, tuple[Any, str, int]] = field(default_factory=dict)
    has_facts: bool = False

    def known(self, condition: Condition) -> bool | None:
        """What a condition has said; None where nobody asked yet, or where it failed."""
        value = self.answers.get(condition.expression.source, _UNKNOWN)[0] if self.keeps(condition) else None
        return value if value is True or value is False else None

    def keeps(self, condition: Condition) -> bool:
        """Whether every policy that shares it gets the same answer from a condition."""
        return condition.is_shared or (self.has_facts and condition.is_of_facts)


def hold(conditions: Sequence[Condition], asked: ConditionAnswers, *, is_fail: bool, deadline: Deadline | None) -> bool:
    """Say whether all conditions hold. Under failurePolicy Ignore an error is a condition that does not hold.

    Raises:
        EvaluationError: none is false, some failed, and the policy's failurePolicy is Fail; all their texts.

    """
    if len(conditions) <= _ALWAYS_COVERED:
        known = [asked.known(condition) for condition in conditions]
        if False in known or None not in known:
            return False not in known
    budget = CostBudget(MATCH_CONDITIONS_BUDGET, deadline)
    errors: list[EvaluationError] = []
    is_false = False
    for index, condition in enumerate(conditions):
        try:
            is_false |= _answer(condition, asked, budget) is False
        except OutOfBudget:
            if is_fail:
                raise
            return False
        except EvaluationError as error:
            errors.append(error)
        if is_false and budget.covers(len(conditions) - index - 1):
            return False
    if errors and is_fail and not is_false:
        raise EvaluationError(aggregate(errors))
    return not errors and not is_false


def _answer(condition: Condition, asked: ConditionAnswers, budget: CostBudget) -> Any:
    """What a condition says, computed or known; the text of an error is known too."""
    expression = condition.expression
    if not asked.keeps(condition):
        return budget.evaluate(expression, asked.seen)
    value, error, cost = asked.answers.get(expression.source, _UNKNOWN)
    if cost > budget.budget:
        return _computed(expression, asked, budget)
    budget.budget -= cost
    if error:
        raise EvaluationError(error)
    return value


_UNKNOWN = (None, "", MATCH_CONDITIONS_BUDGET + 1)
_ALWAYS_COVERED = 2
"""So many conditions cannot run out of budget, whichever comes first."""


def _computed(expression: Expression, asked: ConditionAnswers, budget: CostBudget) -> Any:
    before = budget.budget
    try:
        value = budget.evaluate(expression, asked.seen)
    except EvaluationError as error:
        if not isinstance(error.__cause__, BudgetExceeded):  # the next policy may have more left
            asked.answers[expression.source] = None, str(error), before - budget.budget
        raise
    asked.answers[expression.source] = value, "", before - budget.budget
    return value
