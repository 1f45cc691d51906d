"""Combines policies of files and stored policies into one set with unique names.

A policy of a file takes precedence over a stored policy of the same name. Otherwise an author of stored policies could
replace a shipped policy. A stored binding may name a policy of a file or a stored policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook.live_policies.compile import CompiledObject
from webhook.live_policies.objects import StoredPolicy
from webhook.manifests.claimgate_kinds import NATIVE
from webhook.manifests.models import MUTATING, VALIDATING
from webhook.policy.compiled import Binding, Policy
from webhook.policy.load import join_bindings
from webhook.policy.policy_set import PolicySet

_TAKEN: Final = "a shipped or mounted policy has this kind and name, so this object has no effect: rename it"
_TAKEN_BINDING: Final = "a shipped or mounted binding has this name, so this object has no effect: rename it"
Key = tuple[str, str]
"""Native kind of a policy, and a name."""


@dataclass(frozen=True, slots=True)
class LivePolicies:
    """The policies of files and of the cluster as one set, and the result for each stored object.

    `unbound`: the names of PolicyBindings for a policy that does not exist.
    """

    policies: PolicySet
    objects: tuple[CompiledObject, ...] = ()
    unbound: frozenset[str] = frozenset()

    def failing_object_names(self) -> tuple[str, ...]:
        """Return the objects with errors, such as `ValidatingPolicy/name`."""
        return tuple(f"{each.stored.kind}/{each.stored.name}" for each in self.objects if each.errors)


def combine_file_and_stored_policies(
    files: PolicySet, compiled: Iterable[CompiledObject], *, is_server: bool = False
) -> LivePolicies:
    """Combine the policies of files and of stored objects.

    Args:
        files: the loaded policies of files.
        compiled: the compiled stored objects.
        is_server: leave out policies that are not registered according to their status.
    """
    of_files: dict[Key, Policy] = {
        **{(VALIDATING, policy.name): policy for policy in files.validating},
        **{(MUTATING, policy.name): policy for policy in files.mutating},
    }
    objects = tuple(_deactivate_if_name_is_taken(each, of_files) for each in compiled)
    stored = {
        (NATIVE[each.stored.kind], each.stored.name): each.policy
        for each in objects
        if each.policy and (not is_server or _is_evaluated(each.stored, each.policy))
    }
    all_policies = {**of_files, **stored}
    bound: dict[Key, list[Binding]] = {}
    unbound: set[str] = set()
    for each in objects:
        if each.binding is not None:
            key = each.bound_kind, each.binding.policy
            bound.setdefault(key, []).append(each.binding)
            if key not in all_policies and not _has_stored_object_of_policy(key, objects):
                unbound.add(each.stored.name)
    policies = replace(
        files,
        validating=_sorted_policies_with_bindings(VALIDATING, all_policies, bound),
        mutating=_sorted_policies_with_bindings(MUTATING, all_policies, bound),
        has_stored_policies=True,
    )
    return LivePolicies(policies, objects, frozenset(unbound))


def _is_evaluated(stored: StoredPolicy, policy: Policy) -> bool:
    # the status is written shortly after the policy, so a policy without a status is evaluated, except a policy about
    # every resource
    is_about_everything = any(resource == "*" for rule in policy.criteria.rules for resource, _ in rule.resources)
    return stored.registration == "True" if is_about_everything else stored.registration != "False"


def _deactivate_if_name_is_taken(compiled: CompiledObject, of_files: Mapping[Key, Policy]) -> CompiledObject:
    # the stored object gets an error if a file has an object of this name
    kind, name = compiled.stored.kind, compiled.stored.name
    if compiled.policy is not None and (NATIVE[kind], name) in of_files:
        return replace(compiled, policy=None, errors=(f"metadata.name: {_TAKEN}",), reason="NameTaken")
    if compiled.binding is not None:
        bindings = {
            binding.name
            for (policy_kind, _), policy in of_files.items()
            for binding in policy.bindings
            if policy_kind == compiled.bound_kind
        }
        if name in bindings:
            return replace(compiled, binding=None, errors=(f"metadata.name: {_TAKEN_BINDING}",), reason="NameTaken")
    return compiled


def _has_stored_object_of_policy(key: Key, objects: Iterable[CompiledObject]) -> bool:
    # true even if the object is not evaluated
    return any((NATIVE.get(each.stored.kind), each.stored.name) == key for each in objects)


def _sorted_policies_with_bindings(
    kind: str, all_policies: Mapping[Key, Policy], bound: Mapping[Key, list[Binding]]
) -> tuple[Policy, ...]:
    # sorted by name, with bindings of files and stored bindings
    named = sorted((name, policy) for (policy_kind, name), policy in all_policies.items() if policy_kind == kind)
    return tuple(
        join_bindings(policy, (*policy.bindings, *sorted(more, key=lambda each: each.name)))
        if (more := bound.get((kind, name), []))
        else policy
        for name, policy in named
    )
