"""Decisions on a policy as a whole, if its rules could not be evaluated: no time, no configuration, another version."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from webhook.evaluation.target import EvaluationTarget
from webhook.policy.compiled import Binding, Policy
from webhook.rules.decisions import Decision, ValidationAction

_DENY: Final = (ValidationAction.DENY,)


def decision_of_interrupted_policy(policy: Policy, binding: Binding, text: str) -> Decision:
    """Return the error of a policy whose time ran out before all objects were evaluated."""
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


def decision_of_unusable_policy(policy: Policy, binding: Binding | None, text: str) -> Decision:
    """Return the decision about a configuration error: it denies under Fail whatever the binding's actions are."""
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


def undecided_decision(policy: Policy, binding: Binding | None, text: str, param: str = "") -> Decision:
    """Return the decision of a policy for which files lack an object, such as the namespace whose labels it
    selects by.
    """
    is_denial = policy.missing == "deny"
    return Decision(
        kind=policy.kind,
        policy=policy.name,
        rule=policy.name,
        binding=binding.name if binding else "",
        param=param,
        action="deny" if is_denial else "admit",
        evaluation="unknown",
        actions=_DENY if is_denial else (ValidationAction.WARN,),
        message=f"not evaluated: {text}",
        reason="Invalid" if is_denial else "",
        code=422 if is_denial else 0,
        severity=policy.severity,
        category=policy.category,
    )


def decision_of_unconverted_object(policy: Policy, binding: Binding, target: EvaluationTarget) -> Decision:
    """Return the decision of a policy that needs an object version to which only an API server can convert.

    Nobody knows in which version an API server would send an object of a file: nothing is decided about it.
    """
    error = replace(decision_of_interrupted_policy(policy, binding, sentence_about_other_version(target)), is_told=True)
    if not target.attributes.is_plain:
        return error
    text = f"not evaluated: {error.message}"
    return replace(error, action="admit", evaluation="unknown", message=text, reason="", code=0, is_told=False)


def sentence_about_other_version(target: EvaluationTarget) -> str:
    """Return a sentence that a policy names another version, and what to do about it."""
    sent, wanted = target.attributes.resource, target.match.resource
    name = f"{sent.resource}.{sent.group}" if sent.group else sent.resource
    return (
        f"the policy names {wanted.version} of {name}, the object came as {sent.version}, and claimgate cannot convert "
        f"it: name {sent.version} in matchConstraints of the policy, too, or register the webhook for {wanted.version} "
        "alone, so that the API server converts"
    )
