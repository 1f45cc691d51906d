"""The names that the expressions of one invocation see, with their values.

Puts together what variables.py and the facts room compute; nothing that no expression of the policy reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from webhook.attributes import JSON
from webhook.policy.compiled import Policy
from webhook.policy.declarations import REQUEST_RESOURCE
from webhook.policy.evaluation import Purse, Variables
from webhook.policy.expansion import Target
from webhook.policy.matching import Match
from webhook.policy.variables import Surroundings


class Seen(dict[str, Any]):
    """Names with their values; a fact is computed when an expression first reads it, so conditions can spare it."""

    __slots__ = ("facts",)

    facts: Mapping[str, Callable[[], JSON]]

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a name, computed or not."""
        return super().__contains__(name) or name in self.facts

    def __missing__(self, name: str) -> Any:
        value = self[name] = self.facts[name]()
        return value

    def but(self, **others: Any) -> Seen:
        """The same names, some with other values."""
        made = Seen({**self, **others})
        made.facts = self.facts
        return made


def activation(policy: Policy, target: Target, param: JSON, around: Surroundings, purse: Purse) -> Seen:
    """The names of one evaluation, with variables of its own: they are computed anew, and paid from `purse`.

    Raises:
        BindingError: the namespace that an expression asks about does not exist.
        LookupFailed: nobody can say something that an expression asks about; of facts, when they are read.

    """
    needs = policy.needs
    seen = Seen(
        {
            "object": target.object,
            "oldObject": target.old_object,
            "request": around.request(target.match),
            "namespaceObject": around.namespace_object() if "namespaceObject" in needs else None,
        }
    )
    if policy.param_kind is not None:
        seen["params"] = param
    if "authorizer" in needs or REQUEST_RESOURCE in needs:
        seen.update(around.authorizer_values())
    seen.facts = {
        name: partial(around.fact, name, target.object, target.attributes, param)
        for name in policy.facts
        if name in needs
    }
    if policy.variables:
        seen["variables"] = Variables(policy.variables, seen, purse)
    return seen


def for_conditions(seen: Seen, target: Target, around: Surroundings) -> Seen:
    """What matchConditions see: no namespaceObject, and the resource as requested (matchconditions/matcher.go)."""
    asked = around.attributes.request_resource
    if asked == target.match.resource:
        return seen if seen["namespaceObject"] is None else seen.but(namespaceObject=None)
    return seen.but(namespaceObject=None, request=around.request(Match(asked, target.match.kind)))


def missing(names: Collection[str], target: Target, param: JSON, around: Surroundings) -> list[str]:
    """What the facts of an object could not be computed from: "ClusterTrainingRuntime x not found"."""
    found: dict[str, None] = {}
    for name in sorted(names):
        value = around.fact(name, target.object, target.attributes, param)
        if isinstance(value, dict):
            found.update(dict.fromkeys(value.get("missing") or ()))
    return list(found)
