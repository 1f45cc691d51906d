"""The names that the expressions of one invocation see, with their values.

Puts together what request_context.py and facts/ compute; nothing that no expression of the policy reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from webhook.attributes import JSON
from webhook.evaluation import problem_values
from webhook.evaluation.cost_budget import CostBudget, Variables
from webhook.evaluation.fact_values import fact
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.policy.compiled import MatchConditions, Policy
from webhook.policy.declarations import REQUEST_RESOURCE
from webhook.policy.matching import Match
from webhook.policy.static_params import Param
from webhook.problems.declarations import PROBLEMS

_TAKEN_FOR_CEL = (KeyError, TypeError, AttributeError, IndexError)
"""What a compiled expression would take for an error of its own, and hide as a missing attribute."""


class Activation(dict[str, Any]):
    """Names with their values; a fact is computed when an expression first reads it, so conditions can spare it.

    `computed` are the names that `compute` gives a value.
    """

    computed: Collection[str] = ()
    compute: Callable[[str], JSON]

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a name, computed or not."""
        return super().__contains__(name) or name in self.computed

    def __missing__(self, name: str) -> Any:
        if name not in self.computed:
            raise KeyError(name)
        try:
            value = self[name] = self.compute(name)
        except _TAKEN_FOR_CEL as fault:
            raise RuntimeError(f"a fault of claimgate: `{name}` could not be computed") from fault
        return value


def activation(policy: Policy, target: Target, param: Param, context: RequestContext, budget: CostBudget) -> Activation:
    """The names of one evaluation, with variables of its own: they are computed anew, and paid from `budget`.

    Raises:
        BindingError: the namespace that an expression asks about does not exist.
        LookupFailed: nobody can say something that an expression asks about; of facts, when they are read.

    """
    body = policy.body()
    needs = body.needs
    names = _common(policy, target, param, context)
    if "authorizer" in needs or REQUEST_RESOURCE in needs:
        names.update(context.variables.authorizer())
    if "request" in needs:
        names["request"] = context.variables.request(target.match)
    if "namespaceObject" in needs:
        names["namespaceObject"] = context.namespace.shown()
    if body.variables:
        names["variables"] = Variables(body.variables, names, budget)
    return names


def for_conditions(
    policy: Policy, gate: MatchConditions, target: Target, param: Param, context: RequestContext
) -> Activation:
    """What matchConditions see: no namespaceObject, and the resource as requested (matchconditions/matcher.go).

    Raises:
        LookupFailed: of facts, when they are read.

    """
    names = _common(policy, target, param, context)
    if "authorizer" in gate.needs or REQUEST_RESOURCE in gate.needs:
        names.update(context.variables.authorizer())
    if "request" in gate.needs:
        names["request"] = _requested(target, context)
    return names


def for_spec_changes(target: Target, context: RequestContext) -> Activation:
    """What the condition of `updates: spec` reads."""
    request = _requested(target, context)
    return Activation({"object": target.object, "oldObject": target.old_object, "request": request})


def _requested(target: Target, context: RequestContext) -> JSON:
    """`request` with the resource as it was requested."""
    resource, match = context.attributes.request_resource, target.match
    return context.variables.request(match if resource == match.resource else Match(resource, match.kind))


def _common(policy: Policy, target: Target, param: Param, context: RequestContext) -> Activation:
    """What all expressions of a policy see alike."""
    names = Activation({"object": target.object, "oldObject": target.old_object, "namespaceObject": None})
    if policy.param_kind is not None:
        names["params"] = param.object
    if policy.computed:
        names.computed, names.compute = policy.computed, partial(_value, policy, target, param, context)
    return names


def _value(policy: Policy, target: Target, param: Param, context: RequestContext, name: str) -> JSON:
    if name == PROBLEMS:
        return problem_values.shown(policy, target, param, context)
    return fact(name, target, param, context).value
