"""Creates the decisions about mutations: applied, failed, or with a result that is not a valid object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook.errors import AmbiguousObject
from webhook.evaluation.invocations import PolicyInvocation, UnusablePolicy
from webhook.evaluation.target import EvaluationTarget
from webhook.evaluation.whole_policy import undecided_decision
from webhook.policy.compiled import Policy
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, ValidationAction

_DENY: Final = (ValidationAction.DENY,)
_CODE: Final = 403
"""The code of every failed mutation, whatever its reason (admission.NewForbidden)."""


def decision_of_applied_mutation(
    run: PolicyInvocation, index: int, target: EvaluationTarget, elapsed_s: float
) -> Decision:
    """Return the decision about a mutation that changed its target."""
    more = {"index": index, "path": target.reroot("")[0], "elapsed_s": elapsed_s}
    return _mutating_decision(
        run.policy, "admit", "admit", rule=run.policy.name, **_names_of_binding_and_param(run), **more
    )


def decision_of_failed_mutation(
    run: PolicyInvocation, error: Exception | str, *, target: EvaluationTarget | None = None, index: int | None = None
) -> Decision:
    """Return the decision about a mutation, or conditions of its policy, that could not be evaluated."""
    if isinstance(error, AmbiguousObject):
        return undecided_decision(run.policy, run.binding, str(error), run.param.name)
    text = str(error)
    path, message = target.reroot(text) if target else ("", text)
    return _error_decision(
        run.policy, "Invalid", **_names_of_binding_and_param(run), index=index, path=path, message=message
    )


def decision_of_unusable_policy(each: UnusablePolicy) -> Decision:
    """Return the decision about a policy or binding that cannot be used on this request."""
    if each.is_unknown:
        return undecided_decision(each.policy, each.binding, each.text)
    binding = each.binding.name if each.binding else ""
    return _error_decision(each.policy, "Forbidden", binding=binding, message=each.text, is_told=each.is_told)


def decision_of_invalid_result(run: PolicyInvocation, index: int, text: str) -> Decision:
    """Return the denial for a patched object that is not an object of its kind; the failurePolicy does not matter."""
    more = {"index": index, "message": text, "actions": _DENY, "reason": "InternalError", "code": 500}
    return _mutating_decision(run.policy, "deny", "error", **_names_of_binding_and_param(run), **more)


def decisions_of_unfinished_mutations(
    policies: PolicySet, decisions: Sequence[Decision], text: str
) -> Iterator[Decision]:
    """Yield the decisions of policies that changed the object when time ran out before the change became a patch."""
    changed = {(each.policy, each.binding): each for each in decisions if each.evaluation == "admit"}
    fails = {policy.name for policy in policies.mutating if policy.is_fail}
    for decision in changed.values():
        error = replace(decision, index=None, path="", evaluation="error", message=text)
        yield _by_failure_policy(error, "Invalid", is_fail=decision.policy in fails)


def _error_decision(policy: Policy, reason: str, **more: Any) -> Decision:
    error = _mutating_decision(policy, "admit", "error", rule=policy.name, **more)
    return _by_failure_policy(error, reason, is_fail=policy.is_fail)


def _by_failure_policy(error: Decision, reason: str, *, is_fail: bool) -> Decision:
    """Return the error as a denial or an admission, by the failurePolicy of its policy."""
    if is_fail:
        return replace(error, action="deny", actions=_DENY, reason=reason, code=_CODE)
    return replace(error, action="admit", actions=_DENY, reason="", code=0)


def _names_of_binding_and_param(run: PolicyInvocation) -> dict[str, str]:
    _, binding, param = run.key
    return {"binding": binding, "param": param}


def _mutating_decision(policy: Policy, action: Any, evaluation: Any, **more: Any) -> Decision:
    return Decision(
        kind="mutating",
        policy=policy.name,
        action=action,
        evaluation=evaluation,
        severity=policy.severity,
        category=policy.category,
        **more,
    )
