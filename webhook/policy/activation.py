"""The names that the expressions of one invocation see, with their values.

Puts together what variables.py and the facts room compute; nothing that no expression of the policy reads.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from webhook.attributes import JSON
from webhook.policy.compiled import Policy
from webhook.policy.declarations import REQUEST_RESOURCE
from webhook.policy.evaluation import Purse, Variables
from webhook.policy.expansion import Target
from webhook.policy.matching import Match
from webhook.policy.variables import Surroundings


def activation(policy: Policy, target: Target, param: JSON, around: Surroundings, purse: Purse) -> dict[str, Any]:
    """The names of one evaluation, with variables of its own: they are computed anew, and paid from `purse`.

    Raises:
        BindingError: the namespace that an expression asks about does not exist.
        LookupFailed: nobody can say something that an expression asks about.

    """
    needs = policy.needs
    seen: dict[str, Any] = {
        "object": target.object,
        "oldObject": target.old_object,
        "request": around.request(target.match),
        "namespaceObject": around.namespace_object() if "namespaceObject" in needs else None,
    }
    if policy.param_kind is not None:
        seen["params"] = param
    if "authorizer" in needs or REQUEST_RESOURCE in needs:
        seen.update(around.authorizer_values())
    for name in policy.facts:
        if name in needs:
            seen[name] = around.fact(name, target.object, target.attributes, param)
    if policy.variables:
        seen["variables"] = Variables(policy.variables, seen, purse)
    return seen


def for_conditions(seen: dict[str, Any], target: Target, around: Surroundings) -> dict[str, Any]:
    """What matchConditions see: no namespaceObject, and the resource as requested (matchconditions/matcher.go)."""
    asked = around.attributes.request_resource
    if asked == target.match.resource:
        return seen if seen["namespaceObject"] is None else {**seen, "namespaceObject": None}
    return {**seen, "namespaceObject": None, "request": around.request(Match(asked, target.match.kind))}


def missing(names: Collection[str], target: Target, param: JSON, around: Surroundings) -> list[str]:
    """What the facts of an object could not be computed from: "ClusterTrainingRuntime x not found"."""
    found: dict[str, None] = {}
    for name in sorted(names):
        value = around.fact(name, target.object, target.attributes, param)
        if isinstance(value, dict):
            found.update(dict.fromkeys(value.get("missing") or ()))
    return list(found)
