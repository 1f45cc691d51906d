"""What the checks of a policy say of one object, as its expressions see it.

A problem that misses an object is not shown to expressions, for nothing is known to be wrong; not_evaluated.py asks who
would have spoken of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.attributes import JSON
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.facts.check import Checked
from webhook.policy.compiled import Policy
from webhook.problem import Problem
from webhook.problems import actions
from webhook.problems.declarations import value


def shown(policy: Policy, target: Target, param: JSON, context: RequestContext) -> list[JSON]:
    """The value of `problems`.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object holds patches that cannot be merged.

    """
    problems = [problem for checked in _checked(policy, target, param, context) for problem in checked.problems]
    return [value for _, value in judged(problems, policy, param)]


def has_none(policy: Policy, target: Target, param: JSON, context: RequestContext) -> bool:
    """Whether its checks found nothing wrong and missed nothing. Raises as `shown`."""
    return not _checked(policy, target, param, context)


def unchecked(policy: Policy, target: Target, param: JSON, context: RequestContext) -> Sequence[Problem]:
    """The problems of an object that could not be made out. Raises as `shown`."""
    return [problem for checked in _checked(policy, target, param, context) for problem in checked.unchecked]


def _checked(policy: Policy, target: Target, param: JSON, context: RequestContext) -> Sequence[Checked]:
    return context.checked(policy.checks, target.object, target.attributes, param, target.podset)


def judged(problems: Sequence[Problem], policy: Policy, param: JSON) -> Sequence[tuple[Problem, JSON]]:
    """Problems as expressions see them, without those that a site ignores, each with what is done about it."""
    if not problems:
        return ()
    named = actions.chosen(param)
    acted = ((problem, actions.action(problem.code, policy.catalogue, named)) for problem in problems)
    return [(problem, value(problem, action)) for problem, action in acted if action != "Ignore"]
