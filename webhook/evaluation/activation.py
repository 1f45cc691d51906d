"""The variables that expressions of a policy read, and their values.

The objects, a fact, the problems of the checks and the request are computed when an expression first reads them. So a
pod template is converted to a Pod only if an expression reads the Pod. `problems` lacks problems that could not be
checked because an object is missing (not_evaluated.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.errors import EvaluationError, PatchError
from webhook.evaluation.cost_budget import CostBudget, LazyVariables
from webhook.evaluation.invocations import Invocation
from webhook.facts.check import problems_of_group
from webhook.facts.fact import FactResult
from webhook.policy.compiled import AUTHORIZER
from webhook.policy.matching import Match
from webhook.rules import actions
from webhook.rules.declarations import PROBLEMS, Listed, problem_as_cel_value
from webhook.rules.problem import Problem


def problems_as_cel_value(invocation: Invocation) -> list[JSON]:
    """Return the value of `problems`.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object has patches that cannot be merged.
    """
    shown = problems_with_actions(problems_of_checks(invocation), invocation, advice=shows_advice(invocation))
    paced = invocation.context.deadline.charge_for_items(shown)
    return [problem_as_cel_value(problem, action) for problem, action in paced]


def problems_of_checks(invocation: Invocation) -> Sequence[Problem]:
    """Return the problems that the checks of the policy found."""
    subject = invocation.subject()
    return [problem for group in invocation.policy.checks for problem in problems_of_group(group, subject).problems]


def shows_advice(invocation: Invocation) -> bool:
    """Return whether `problems` includes advice: if the caller wants advice, and each validation that reads `problems`
    returns a list of problems. Any other validation would deny because of advice.
    """
    rules = invocation.policy.rules
    return invocation.context.options.advice and all(each.lists_problems for each in rules if PROBLEMS in each.facts)


def problems_with_actions(problems: Iterable[Problem], invocation: Invocation, *, advice: bool) -> Sequence[Listed]:
    """Return the problems with their actions. Problems with action Off are left out. Without `advice`, problems with
    action Advice are left out too.
    """
    deadline, configured = invocation.context.deadline, invocation.context.policies.configured
    named = actions.actions_of_param(invocation.param.object, deadline)
    rules, is_of_tests = invocation.policy.catalogue, invocation.context.attributes.is_of_tests
    acted = (
        (each, actions.action_for_problem(each.code, level, named, configured))
        for each in deadline.items_with_clock_checks(problems)
        for level in (rules[each.code].level_of_object(is_of_tests=is_of_tests),)
    )
    return [(problem, action) for problem, action in acted if action != "Off" and (advice or action != "Advice")]


def fact_as_cel_value(name: str, invocation: Invocation) -> FactResult:
    """Return the value of a fact of an object, and the missing objects that the fact needs.

    Raises:
        LookupFailed: the param cannot be read.
        EvaluationError: the object has patches that cannot be merged.
    """
    try:
        return invocation.subject().fact_result(name)
    except PatchError as error:
        raise EvaluationError(f"fact `{name}`: the patches of the object cannot be merged: {error}") from error


_OBJECTS: Final = ("object", "oldObject")
_TAKEN_FOR_CEL = (KeyError, TypeError, AttributeError, IndexError)
"""Errors of our own code that a compiled expression would mistake for a missing attribute."""


class Activation(dict[str, Any]):
    """Variables by name. The variables of `computed` (policy/compiled.py) are computed when an expression first reads
    them, from the invocation and the match in `of`.
    """

    __slots__ = ("__weakref__", "of")

    def __init__(self, invocation: Invocation, match: Match) -> None:
        """Set the variables that all expressions of a policy share."""
        self["namespaceObject"] = None
        if invocation.policy.param_kind is not None:
            self["params"] = invocation.param.object
        self.of = (invocation, match)

    def __contains__(self, name: object) -> bool:
        """Return whether a variable of this name exists, even if its value is not computed yet."""
        return super().__contains__(name) or name in self.of[0].policy.computed

    def __missing__(self, name: str) -> Any:
        invocation, match = self.of
        if name not in invocation.policy.computed:
            raise KeyError(name)
        value: JSON
        try:
            if name in _OBJECTS:
                shown = invocation.target.objects_for_expressions(invocation.context.deadline)
                value = shown[_OBJECTS.index(name)]
            elif name == "request":
                value = invocation.context.variables.request(match)
            elif name == PROBLEMS:
                value = problems_as_cel_value(invocation)
            else:
                value = fact_as_cel_value(name, invocation).value
        except _TAKEN_FOR_CEL as fault:
            raise RuntimeError(f"a fault of claimgate: `{name}` could not be computed") from fault
        self[name] = value
        return value


def build_activation(invocation: Invocation, budget: CostBudget) -> Activation:
    """Return the variables for one evaluation. The variables of the policy are evaluated anew; `budget` pays for
    them.

    Raises:
        BindingError: an expression reads the namespace, which does not exist.
        LookupFailed: a value that expressions read is unknown. For a fact, the error comes when the fact is read.
    """
    body, context = invocation.policy.body(), invocation.context
    needs = body.needs
    names = Activation(invocation, invocation.target.match)
    if not needs.isdisjoint(AUTHORIZER):
        names.update(context.variables.authorizer())
    if "namespaceObject" in needs:
        names["namespaceObject"] = context.namespace.namespace_object_as_cel_value()
    if body.variables:
        names["variables"] = LazyVariables(body.variables, names, budget)
    return names
