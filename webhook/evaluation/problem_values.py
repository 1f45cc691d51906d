"""The variable `problems`: what the checks of a policy report about one object.

A problem that misses an object is not shown to expressions, for nothing is known to be wrong; not_evaluated.py asks who
would have spoken of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webhook.apimachinery.attributes import JSON
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import EvaluationTarget
from webhook.facts.check import problems_of_groups
from webhook.policy.compiled import Policy
from webhook.policy.static_params import Param
from webhook.rules import actions
from webhook.rules.declarations import PROBLEMS, Listed, problem_as_cel_value
from webhook.rules.problem import Problem


def problems_as_cel_value(
    policy: Policy, target: EvaluationTarget, param: Param, context: RequestContext
) -> list[JSON]:
    """Return the value of `problems`.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object holds patches that cannot be merged.
    """
    reported = problems_of_groups(context.subject(target, param), policy.checks)
    problems = [problem for each in reported for problem in each.problems]
    shown = problems_with_actions(problems, policy, param, context, advice=shows_advice(policy, context))
    return [problem_as_cel_value(problem, action) for problem, action in context.deadline.charge_for_items(shown)]


def shows_advice(policy: Policy, context: RequestContext) -> bool:
    """Return whether expressions see advice: on request, and only if no validation can deny because of it."""
    return context.options.advice and all(rule.lists_problems for rule in policy.rules if PROBLEMS in rule.facts)


def problems_with_actions(
    problems: Iterable[Problem], policy: Policy, param: Param, context: RequestContext, *, advice: bool
) -> Sequence[Listed]:
    """Return the problems with the action for each, without those that are off and, unless wanted, without advice."""
    named = actions.actions_of_param(param.object, context.deadline)
    rules = policy.catalogue
    configured = context.policies.configured
    acted = (
        (each, actions.action_for_problem(each.code, rules[each.code].level, named, configured))
        for each in context.deadline.items_with_clock_checks(problems)
    )
    return [(problem, action) for problem, action in acted if action != "Off" and (advice or action != "Advice")]
