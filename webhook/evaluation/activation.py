"""The names that the expressions of one invocation see, with their values.

Puts together what request_context.py and facts/ compute; nothing that no expression of the policy reads.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from webhook.attributes import JSON
from webhook.evaluation import problem_values
from webhook.evaluation.cost_budget import CostBudget, Variables
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.policy.compiled import MatchConditions, Policy
from webhook.policy.declarations import REQUEST_RESOURCE
from webhook.policy.matching import Match
from webhook.problems.declarations import PROBLEMS

_TAKEN_FOR_CEL = (KeyError, TypeError, AttributeError, IndexError)
"""What a compiled expression would take for an error of its own, and hide as a missing attribute."""


class Activation(dict[str, Any]):
    """Names with their values; a fact is computed when an expression first reads it, so conditions can spare it.

    `facts` are the names that are computed, `of` what they are computed of.
    """

    facts: Collection[str] = ()
    of: tuple[Policy, Target, JSON, RequestContext]

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a name, computed or not."""
        return super().__contains__(name) or name in self.facts

    def __missing__(self, name: str) -> Any:
        if name not in self.facts:
            raise KeyError(name)
        try:
            value = self[name] = _value(name, *self.of)
        except _TAKEN_FOR_CEL as fault:
            raise RuntimeError(f"a fault of claimgate: `{name}` could not be computed") from fault
        return value


def activation(policy: Policy, target: Target, param: JSON, context: RequestContext, budget: CostBudget) -> Activation:
    """The names of one evaluation, with variables of its own: they are computed anew, and paid from `budget`.

    Raises:
        BindingError: the namespace that an expression asks about does not exist.
        LookupFailed: nobody can say something that an expression asks about; of facts, when they are read.

    """
    body = policy.body()
    needs = body.needs
    seen = _named(policy, target, param, context)
    _authorize(seen, needs, context)
    if "request" in needs:
        seen["request"] = context.request(target.match)
    if "namespaceObject" in needs:
        seen["namespaceObject"] = context.namespace_object()
    if body.variables:
        seen["variables"] = Variables(body.variables, seen, budget)
    return seen


def for_conditions(
    policy: Policy, gate: MatchConditions, target: Target, param: JSON, context: RequestContext
) -> Activation:
    """What matchConditions see: no namespaceObject, and the resource as requested (matchconditions/matcher.go).

    Raises:
        LookupFailed: of facts, when they are read.

    """
    seen = _named(policy, target, param, context)
    _authorize(seen, gate.needs, context)
    if "request" in gate.needs:
        asked, match = context.attributes.request_resource, target.match
        seen["request"] = context.request(match if asked == match.resource else Match(asked, match.kind))
    return seen


def _named(policy: Policy, target: Target, param: JSON, context: RequestContext) -> Activation:
    """What all expressions of a policy see alike."""
    seen = Activation({"object": target.object, "oldObject": target.old_object, "namespaceObject": None})
    if policy.param_kind is not None:
        seen["params"] = param
    if policy.computed:
        seen.facts, seen.of = policy.computed, (policy, target, param, context)
    return seen


def _authorize(seen: Activation, needs: Collection[str], context: RequestContext) -> None:
    if "authorizer" in needs or REQUEST_RESOURCE in needs:
        seen.update(context.authorizer_values())


def _value(name: str, policy: Policy, target: Target, param: JSON, context: RequestContext) -> JSON:
    if name == PROBLEMS:
        return problem_values.shown(policy, target, param, context)
    return context.fact(name, target.object, target.attributes, param, target.podset).value
