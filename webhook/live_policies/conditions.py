"""Makes the conditions in the status of a stored object, and compares them with the stored conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.live_policies.combine import LivePolicies
from webhook.live_policies.compile import CompiledObject
from webhook.live_policies.objects import StoredPolicy
from webhook.manifests.annotations import unexportable_obstacles
from webhook.manifests.claimgate_kinds import POLICY_BINDING
from webhook.text.wording import counted

_MOST_ERRORS: Final = 20
_LONGEST: Final = 8000
_FIELDS: Final = ("status", "reason", "message", "observedGeneration")


def conditions_of_object(compiled: CompiledObject, live: LivePolicies) -> tuple[dict[str, Any], ...]:
    """Return the conditions of an object, without times."""
    stored = compiled.stored
    conditions = [_compiled_condition(compiled)]
    if stored.kind == POLICY_BINDING:
        conditions += [_bound_condition(compiled, live)] if compiled.binding else []
    elif not compiled.errors:
        conditions += [_type_checked_condition(compiled), _portable_condition(compiled)]
    return tuple({**each, "observedGeneration": stored.generation} for each in conditions)


def last_compiled_of_object(compiled: CompiledObject) -> JSON:
    """Return the value of status.lastCompiled: the last generation that compiled, and its spec. None if no generation
    compiled.
    """
    if not compiled.errors:
        return compiled.stored.spec_as_last_compiled()
    return get(compiled.stored.value, ("status", "lastCompiled"), None)


def create_condition(name: str, holds: bool, reason: str, message: str) -> dict[str, Any]:
    """Return one condition (metav1.Condition), without observedGeneration and lastTransitionTime."""
    cut = message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …"
    return {"type": name, "status": "True" if holds else "False", "reason": reason, "message": cut}


def add_transition_times(
    conditions: Iterable[Mapping[str, Any]], stored: StoredPolicy, now: str
) -> list[dict[str, Any]]:
    """Return the conditions with lastTransitionTime: the stored time if the condition has the same status."""
    old_conditions = stored_conditions(stored)
    return [
        {
            **each,
            "lastTransitionTime": old_conditions[each["type"]]["lastTransitionTime"]
            if old_conditions.get(each["type"], {}).get("status") == each["status"]
            else now,
        }
        for each in conditions
    ]


def has_stored_conditions(conditions: Iterable[Mapping[str, Any]], stored: StoredPolicy) -> bool:
    """Return whether the stored status has these conditions; times are not compared."""
    old_conditions = stored_conditions(stored)
    return all(
        each["type"] in old_conditions
        and all(old_conditions[each["type"]].get(name) == each.get(name) for name in _FIELDS)
        for each in conditions
    )


def stored_conditions(stored: StoredPolicy) -> dict[str, JSON]:
    """Return the stored conditions by type."""
    return {each["type"]: each for each in get(stored.value, ("status", "conditions"), None) or ()}


def _compiled_condition(compiled: CompiledObject) -> dict[str, Any]:
    errors = compiled.errors
    if errors:
        return create_condition("Compiled", holds=False, reason=compiled.reason, message=_errors_as_text(compiled))
    message = "the binding is valid" if compiled.stored.kind == POLICY_BINDING else "every expression compiles"
    return create_condition("Compiled", holds=True, reason="Compiled", message=message)


def _errors_as_text(compiled: CompiledObject) -> str:
    errors = compiled.errors
    lines = [*errors[:_MOST_ERRORS], *([f"and {len(errors) - _MOST_ERRORS} more"] * (len(errors) > _MOST_ERRORS))]
    if compiled.generation:
        lines.append(f"until this is fixed, generation {compiled.generation} is evaluated, the last that compiled")
    else:
        lines.append("until this is fixed, the object has no effect")
    return "\n".join([f"{counted(len(errors), 'error')}:", *lines])


def _type_checked_condition(compiled: CompiledObject) -> dict[str, Any]:
    wrong = compiled.wrong_types
    if wrong is None:
        message = "its expressions would be checked for too many kinds: run `claimgate policies check` on the policy"
        return {**create_condition("TypeChecked", holds=False, reason="TooMuch", message=message), "status": "Unknown"}
    if wrong:
        lines = [*wrong[:_MOST_ERRORS], *([f"and {len(wrong) - _MOST_ERRORS} more"] * (len(wrong) > _MOST_ERRORS))]
        return create_condition("TypeChecked", holds=False, reason="WrongTypes", message="\n".join(lines))
    message = "no expression uses a value as a type that the value does not have"
    return create_condition("TypeChecked", holds=True, reason="TypeChecked", message=message)


def _bound_condition(compiled: CompiledObject, live: LivePolicies) -> dict[str, Any]:
    assert compiled.binding is not None
    kind, name = compiled.bound_kind.replace("Admission", ""), compiled.binding.policy
    if compiled.stored.name in live.unbound:
        missing = f"spec.policyName: {kind} `{name}` does not exist: apply the policy, or correct the name"
        return create_condition("Bound", holds=False, reason="PolicyNotFound", message=missing)
    return create_condition("Bound", holds=True, reason="PolicyFound", message=f"it binds {kind} `{name}`")


def _portable_condition(compiled: CompiledObject) -> dict[str, Any]:
    policy = compiled.policy
    assert policy is not None
    resource = f"{compiled.stored.kind.lower()}.claimgate.dev/{compiled.stored.name}"
    export = f"kubectl get {resource} -o yaml > policy.yaml; claimgate policies export policy.yaml"
    remaining = unexportable_obstacles(policy.obstacles, policy.kind)
    if remaining:
        return create_condition("Portable", holds=False, reason="NeedsClaimgate", message="; ".join(remaining))
    return create_condition("Portable", holds=True, reason="Portable", message=f"the native policy: {export}")


def status_of_all_objects(live: LivePolicies) -> Iterator[tuple[StoredPolicy, tuple[dict[str, Any], ...], JSON]]:
    """Yield each stored object with its conditions and the last generation that compiled."""
    for each in live.objects:
        yield each.stored, conditions_of_object(each, live), last_compiled_of_object(each)
