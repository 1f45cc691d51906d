"""Finds the rules that hold only because an object that they need is missing.

For facts, what a field could not be computed from belongs to every rule that reads the field. For checks it belongs to
the problem: a validation is asked about such problems alone, and those that it would have spoken of were not evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.cel.check.reads import WHOLE
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.errors import BudgetExceeded, EvaluationError
from webhook.evaluation import problem_values
from webhook.evaluation.activation import build_activation, fact_as_cel_value
from webhook.evaluation.cost_budget import CostBudget
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import EvaluationTarget
from webhook.facts.check import problems_of_groups
from webhook.policy.compiled import Policy, Validation
from webhook.policy.static_params import Param
from webhook.rules.declarations import PROBLEMS, Listed, problem_as_cel_value
from webhook.rules.problem import MissingObject


def missing_objects_of_fields(
    rule: Validation, target: EvaluationTarget, param: Param, context: RequestContext
) -> Sequence[MissingObject]:
    """Return the missing objects that the fields of facts in a rule depend on."""
    lacking: dict[MissingObject, None] = {}
    for name, fields in rule.facts.items():
        if name != PROBLEMS:
            result = fact_as_cel_value(name, target, param, context)
            if result.missing:
                lacking.update(dict.fromkeys(result.missing_objects_of_fields(None if WHOLE in fields else fields)))
    return tuple(lacking)


def unchecked_problems(
    rule: Validation, policy: Policy, target: EvaluationTarget, param: Param, context: RequestContext
) -> Sequence[Listed]:
    """Return the problems that could not be checked and that a validation that holds would have reported.

    Raises:
        BudgetExceeded: the time is up.
        LookupFailed: the param cannot be read.
    """
    if PROBLEMS not in rule.facts:
        return ()
    reported = problems_of_groups(context.subject(target, param), policy.checks)
    problems = (problem for each in reported for problem in each.unchecked)
    advice = problem_values.shows_advice(policy, context)
    judged = problem_values.problems_with_actions(problems, policy, param, context, advice=advice)
    if not judged:
        return ()
    values = [(listed, problem_as_cel_value(*listed)) for listed in judged]
    budget = CostBudget(RUNTIME_BUDGET, context.deadline)
    if context.options.trace is not None:
        context.options.trace.count_cost_of_budget(budget)
    names = build_activation(policy, target, param, context, budget)
    names[PROBLEMS] = [shown for _, shown in values]
    try:
        if budget.evaluate(rule.expression, names) is True:
            return ()
        if rule.lists_problems and rule.message_expression is not None:
            named = {id(each) for each in budget.evaluate(rule.message_expression, names)}
            return [listed for listed, shown in values if id(shown) in named]
    except EvaluationError as error:
        if isinstance(error, BudgetExceeded) or context.deadline.is_over:
            raise
    return judged
