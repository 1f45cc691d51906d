"""Warns of policies without a binding, and can add a denying binding for each such policy.

A cluster never evaluates such a policy (kubernetes v1.36 pkg/admission/plugin/policy/generic: a hook is a policy with
its bindings).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook.policy.compiled import Binding, Policy
from webhook.policy.load import join_bindings
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import ValidationAction
from webhook.yamltext import input_files

NAME = "unbound"
"""The name of the added binding."""


def warnings_about_unbound(policies: PolicySet) -> Iterator[str]:
    """Yield a sentence for each policy without a binding, a sentence about policies of other projects, and a sentence
    about PolicyExceptions among policies.
    """
    if policies.foreign:
        yield policies.foreign
    if policies.misplaced:
        yield f"{policies.misplaced}: a PolicyException has no effect among policies: name its file with --context"
    for policy in policies.policies:
        if not policy.bindings:
            name = f"policy `{policy.name}` ({input_files.path_as_shown(policy.file)})"
            yield f"{name} is not evaluated, because no binding names it: add a binding, or evaluate it with --unbound"


def with_default_bindings(policies: PolicySet) -> PolicySet:
    """Return the policy set, in which each policy without a binding gets a binding for everything that it matches."""
    return replace(
        policies,
        validating=tuple(map(_policy_with_default_binding, policies.validating)),
        mutating=tuple(map(_policy_with_default_binding, policies.mutating)),
    )


def _policy_with_default_binding(policy: Policy) -> Policy:
    if policy.bindings:
        return policy
    actions = (ValidationAction.DENY,) if policy.kind == "validating" else ()
    binding = Binding(name=NAME, policy=policy.name, criteria=None, param_source=None, actions=actions)
    return join_bindings(policy, [binding])
