"""The names that the expressions of one invocation see, with their values.

Puts together what request_context.py and facts/ compute; nothing that no expression of the policy reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from webhook.attributes import JSON
from webhook.evaluation import problem_values
from webhook.evaluation.cost_budget import CostBudget, Variables
from webhook.evaluation.fact_values import fact
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.policy.compiled import Policy
from webhook.policy.declarations import REQUEST_RESOURCE
from webhook.policy.matching import Match
from webhook.policy.static_params import Param
from webhook.problems.declarations import PROBLEMS

_TAKEN_FOR_CEL = (KeyError, TypeError, AttributeError, IndexError)
"""What a compiled expression would take for an error of its own, and hide as a missing attribute."""


class Activation(dict[str, Any]):
    """Names with their values; a fact, a problem or the request is computed when an expression first reads it.

    `computed` are the names that are computed, `of` what they are computed of; a match is what `request` shows.
    """

    __slots__ = ("__weakref__", "computed", "of")

    def __init__(
        self, names: Mapping[str, Any], of: tuple[Policy, Target, Param, RequestContext, Match] | None = None
    ) -> None:
        super().__init__(names)
        self.of = of
        self.computed: Collection[str] = of[0].computed if of else ()

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a name, computed or not."""
        return super().__contains__(name) or name in self.computed

    def __missing__(self, name: str) -> Any:
        if name not in self.computed:
            raise KeyError(name)
        try:
            value = self[name] = self._compute(name)
        except _TAKEN_FOR_CEL as fault:
            raise RuntimeError(f"a fault of claimgate: `{name}` could not be computed") from fault
        return value

    def _compute(self, name: str) -> JSON:
        assert self.of is not None
        policy, target, param, context, match = self.of
        if name == "request":
            return context.variables.request(match)
        if name == PROBLEMS:
            return problem_values.shown(policy, target, param, context)
        return fact(name, target, param, context).value


def activation(policy: Policy, target: Target, param: Param, context: RequestContext, budget: CostBudget) -> Activation:
    """The names of one evaluation, with variables of its own: they are computed anew, and paid from `budget`.

    Raises:
        BindingError: the namespace that an expression asks about does not exist.
        LookupFailed: nobody can say something that an expression asks about; of facts, when they are read.

    """
    body = policy.body()
    needs = body.needs
    names = _common(policy, target, param, context, target.match)
    if "authorizer" in needs or REQUEST_RESOURCE in needs:
        names.update(context.variables.authorizer())
    if "namespaceObject" in needs:
        names["namespaceObject"] = context.namespace.shown()
    if body.variables:
        names["variables"] = Variables(body.variables, names, budget)
    return names


def for_conditions(
    policy: Policy, needs: Collection[str], target: Target, param: Param, context: RequestContext
) -> Activation:
    """What matchConditions see: no namespaceObject, and the resource as requested (matchconditions/matcher.go).

    Raises:
        LookupFailed: of facts, when they are read.

    """
    resource, match = context.attributes.request_resource, target.match
    requested = match if resource == match.resource else Match(resource, match.kind)
    names = _common(policy, target, param, context, requested)
    if "authorizer" in needs or REQUEST_RESOURCE in needs:
        names.update(context.variables.authorizer())
    return names


def _common(policy: Policy, target: Target, param: Param, context: RequestContext, match: Match) -> Activation:
    """What all expressions of a policy see alike; `request` shows a match."""
    names = {"object": target.object, "oldObject": target.old_object, "namespaceObject": None}
    if policy.param_kind is not None:
        names["params"] = param.object
    return Activation(names, (policy, target, param, context, match))
