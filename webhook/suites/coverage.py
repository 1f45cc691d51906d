"""Which validations, rules and match conditions of policies the cases of a suite try.

A case tries a validation or a rule if it breaks it, and a match condition if the condition is false, so that the policy
does not apply. A validation that no case tries may be deleted or reversed, and every case still passes.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.admission.phases import PhasesOutcome
from webhook.policy.compiled import Policy
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision


def parts_to_try(policies: PolicySet) -> tuple[str, ...]:
    """Return the names of everything that cases can cover, in the order of the policies."""
    return tuple(dict.fromkeys(part for policy in policies.policies for part in _parts_of_policy(policy)))


def tried_parts(outcome: PhasesOutcome, policies: PolicySet) -> frozenset[str]:
    """Return what a case tried; its outcome has explanations."""
    by_name = {policy.name: policy for policy in policies.validating}
    decisions = ((made, by_name.get(made.policy)) for _, made in (*outcome.decisions, *outcome.further))
    broken = (
        part for made, policy in decisions if policy and made.action == "deny" for part in _broken_parts(made, policy)
    )
    unmet = (
        _name_of_condition(each.policy, each.unmet_condition)
        for _, each in outcome.explanations
        if each.unmet_condition
    )
    return frozenset((*broken, *unmet))


def _parts_of_policy(policy: Policy) -> Iterator[str]:
    if policy.kind == "validating":
        yield from [rule.id for rule in (*policy.catalogue.values(), *policy.named)] or [
            _name_of_validation(policy, index) for index in range(policy.rule_count)
        ]
    yield from (_name_of_condition(policy.name, each.name) for each in policy.gate().conditions)


def _broken_parts(made: Decision, policy: Policy) -> tuple[str, ...]:
    if made.problems:
        return tuple(each.code for each in made.problems)
    if made.index is None or policy.catalogue or policy.named:
        return (made.rule,)
    return (_name_of_validation(policy, made.index),)


def _name_of_validation(policy: Policy, index: int) -> str:
    return policy.name if policy.rule_count == 1 else f"{policy.name} validations[{index}]"


def _name_of_condition(policy: str, condition: str) -> str:
    return f"{policy} matchCondition {condition}"
