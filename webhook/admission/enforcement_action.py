"""Limits the action of failures in an installation: deny, only warn, or only audit.

Knows decisions; what they come to is enforce.py's. A platform team looks first at what would be denied, then tells its
users, then enforces, and the policies stay what they are in all three.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from webhook.decisions import Decision, ValidationAction, Verdict
from webhook.evaluation.review_options import EnforcementAction

NOT_APPLIED: Final = "not-applied"
"""The key, after the name of a mutating policy, of the annotation about a change that was not applied."""
_QUIET: Final = frozenset((ValidationAction.ADVICE, ValidationAction.AUDIT))


def limit_actions(decisions: Iterable[Decision], most: EnforcementAction) -> tuple[Decision, ...]:
    """Return the decisions, none with a stricter action than `most`.

    A denial becomes a warning, and both become audit annotations. A mutation that failed denies under failurePolicy
    Fail whatever its binding says: it is told as a warning, or not at all.
    """
    return tuple(decisions) if most == "deny" else tuple(_limit_action(each, most) for each in decisions)


def _limit_action(decision: Decision, most: EnforcementAction) -> Decision:
    warns = most == "warn"
    if decision.kind == "mutating" and decision.action == "deny":
        return replace(decision, action="admit", is_told=warns)
    actions = decision.actions
    if warns and ValidationAction.DENY in actions:
        actions = tuple(dict.fromkeys(ValidationAction.WARN if a is ValidationAction.DENY else a for a in actions))
    elif not warns and not _QUIET.issuperset(actions):
        actions = (ValidationAction.AUDIT,)
    is_told = decision.is_told and warns
    if actions == decision.actions and is_told == decision.is_told:
        return decision
    return replace(decision, actions=actions, is_told=is_told)


def without_patch(verdict: Verdict) -> Verdict:
    """Return the verdict without its patch, and with an annotation for each policy that would have changed
    something.
    """
    annotations = dict(verdict.audit_annotations)
    for decision in verdict.decisions:
        if decision.kind == "mutating" and decision.evaluation == "admit":
            annotations[f"{decision.policy}/{NOT_APPLIED}"] = "the object would have been changed"
    return replace(verdict, audit_annotations=annotations)
