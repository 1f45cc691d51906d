"""Policies over checks that have nothing to say of an object: told from the checks alone, without an evaluation.

A policy without matchConditions whose expressions read nothing but `problems`, and hold where there are none, admits
every object of which its checks find nothing wrong and miss nothing. Whoever finds something is asked in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from webhook.attributes import JSON, Attributes
from webhook.errors import EvaluationError, LookupFailed, PatchError
from webhook.evaluation.match_conditions import conditions
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.facts.assumptions import Assumptions
from webhook.facts.check import Check
from webhook.policy.compiled import Policy

Groups: TypeAlias = Sequence[tuple[str, Sequence[Check]]]
"""Groups of checks, each with those that are about an object."""


def admits_without_problems(policy: Policy, attributes: Attributes) -> bool:
    """Whether a policy admits every object of a request in which its checks find nothing."""
    is_of_checks = bool(policy.checks and policy.rule_count) and not conditions(policy, attributes).conditions
    return is_of_checks and policy.body().admits_without_problems()


def groups(policy: Policy, kind: tuple[str, str], context: RequestContext, *, is_deleted: bool) -> Groups:
    """The groups of checks that a policy reads, without those that are not about a kind."""
    about = context.registry.checks_about
    asked = [(group, about(group, kind, is_deleted=is_deleted)) for group in policy.checks]
    return tuple([each for each in asked if each[1]])


def speaking(assumed: Assumptions, asked: Groups, target: Target, context: RequestContext) -> set[str]:
    """The groups of checks, of some, that may have something to say of an object.

    Raises:
        InlineBudgetSpent: the review takes too long for the event loop.
    """
    try:
        subject = context.subject_assuming(assumed, target.object, target.attributes, target.podset)
        return subject.speaking(asked)
    except (EvaluationError, LookupFailed, PatchError):
        return {group for group, _ in asked}  # whoever asks in full says it


class QuietChecks:
    """The checks of a policy with one parameter, asked about the objects of one request."""

    __slots__ = ("_assumed", "_context", "_groups", "_policy")

    def __init__(self, policy: Policy, assumed: Assumptions, context: RequestContext) -> None:
        self._policy = policy
        self._assumed = assumed
        self._context = context
        self._groups: dict[tuple[str, str, bool], Groups] = {}

    def say_nothing(self, target: Target) -> bool:
        """Whether they have nothing to say of an object that is shown as it was sent. Raises as `speaking`."""
        if target.match is not self._context.sent:
            return False
        kind, is_deleted = target.attributes.kind, target.object is None
        key = (kind.group, kind.kind, is_deleted)
        asked = self._groups.get(key)
        if asked is None:
            asked = self._groups[key] = groups(self._policy, key[:2], self._context, is_deleted=is_deleted)
        return not asked or not speaking(self._assumed, asked, target, self._context)


def quiet_checks(policy: Policy, param: JSON, context: RequestContext) -> QuietChecks | None:
    """The checks of a policy with a parameter; None where more than they decides what the policy says."""
    if not admits_without_problems(policy, context.attributes):
        return None
    try:
        return QuietChecks(policy, context.assumed(param), context)
    except LookupFailed:  # of what the parameter says of the cluster
        return None
