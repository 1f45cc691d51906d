"""The variables that the expressions of a policy read, with their values.

A fact, the problems of the checks and the request are computed when an expression first reads them. A problem that
misses an object is not shown to expressions, because nothing is known to be wrong (not_evaluated.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from webhook.apimachinery.attributes import JSON
from webhook.errors import EvaluationError, PatchError
from webhook.evaluation.cost_budget import CostBudget, LazyVariables
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.facts.check import problems_of_groups
from webhook.facts.fact import FactResult
from webhook.policy.compiled import AUTHORIZER, Policy
from webhook.policy.matching import Match
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


def fact_as_cel_value(name: str, target: EvaluationTarget, param: Param, context: RequestContext) -> FactResult:
    """Return the value of a fact of an object, and the objects that were missing to compute it.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object holds patches that cannot be merged.
    """
    try:
        return context.subject(target, param).fact_result(name)
    except PatchError as error:
        raise EvaluationError(f"fact `{name}`: the patches of the object cannot be merged: {error}") from error


_TAKEN_FOR_CEL = (KeyError, TypeError, AttributeError, IndexError)
"""Errors that a compiled expression would treat as its own, and hide as a missing attribute."""


class Activation(dict[str, Any]):
    """Variables by name; a fact, the problems or the request are computed when an expression first reads them.

    `of` is what they are computed of; its match is what `request` shows.
    """

    __slots__ = ("__weakref__", "of")

    def __init__(
        self, policy: Policy, target: EvaluationTarget, param: Param, context: RequestContext, match: Match
    ) -> None:
        """Set the variables that all expressions of a policy share."""
        self["object"] = target.object
        self["oldObject"] = target.old_object
        self["namespaceObject"] = None
        if policy.param_kind is not None:
            self["params"] = param.object
        self.of = (policy, target, param, context, match)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a variable of that name, computed or not."""
        return super().__contains__(name) or name in self.of[0].computed

    def __missing__(self, name: str) -> Any:
        if name not in self.of[0].computed:
            raise KeyError(name)
        policy, target, param, context, match = self.of
        value: JSON
        try:
            if name == "request":
                value = context.variables.request(match)
            elif name == PROBLEMS:
                value = problems_as_cel_value(policy, target, param, context)
            else:
                value = fact_as_cel_value(name, target, param, context).value
        except _TAKEN_FOR_CEL as fault:
            raise RuntimeError(f"a fault of claimgate: `{name}` could not be computed") from fault
        self[name] = value
        return value


def build_activation(
    policy: Policy, target: EvaluationTarget, param: Param, context: RequestContext, budget: CostBudget
) -> Activation:
    """Return the variables of one evaluation; the policy's own variables are evaluated anew and paid from `budget`.

    Raises:
        BindingError: the namespace that an expression asks about does not exist.
        LookupFailed: nobody can say something that an expression asks about; of facts, when they are read.
    """
    body = policy.body()
    needs = body.needs
    names = Activation(policy, target, param, context, target.match)
    if not needs.isdisjoint(AUTHORIZER):
        names.update(context.variables.authorizer())
    if "namespaceObject" in needs:
        names["namespaceObject"] = context.namespace.namespace_object_as_cel_value()
    if body.variables:
        names["variables"] = LazyVariables(body.variables, names, budget)
    return names
