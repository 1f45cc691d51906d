"""Decisions about a policy as a whole, whose rules could not be asked: no time, no configuration, another version."""

from __future__ import annotations

from typing import Final

from webhook.decisions import Decision, ValidationAction
from webhook.evaluation.target import Target
from webhook.policy.compiled import Binding, Policy

_DENY: Final = (ValidationAction.DENY,)


def interrupted(policy: Policy, binding: Binding, text: str) -> Decision:
    """The time was up before all objects were looked at: an evaluation error of the policy as a whole."""
    return Decision(
        policy=policy.name,
        rule=policy.name,
        binding=binding.name,
        action="deny" if policy.is_fail else "admit",
        evaluation="error",
        actions=binding.actions,
        message=text,
        reason="Invalid" if policy.is_fail else "",
        code=422 if policy.is_fail else 0,
        severity=policy.severity,
        category=policy.category,
    )


def unusable(policy: Policy, binding: Binding | None, text: str) -> Decision:
    """A configuration error: denied under Fail whatever the binding's actions are."""
    return Decision(
        policy=policy.name,
        rule=policy.name,
        binding=binding.name if binding else "",
        action="deny" if policy.is_fail else "admit",
        evaluation="error",
        actions=_DENY,
        message=text,
        reason="Invalid",
        code=422,
        severity=policy.severity,
        category=policy.category,
    )


def unconverted(policy: Policy, binding: Binding, target: Target) -> Decision:
    """The policy is written for another version of the object, which only an API server can convert to."""
    sent, wanted = target.attributes.kind.api_version, target.match.kind.api_version
    return Decision(
        policy=policy.name,
        rule=policy.name,
        binding=binding.name,
        action="admit",
        evaluation="unknown",
        actions=binding.actions,
        message=f"not evaluated: the policy needs the object as {wanted}, not {sent}",
        severity=policy.severity,
        category=policy.category,
    )
