"""Turns denials of an update into warnings if the stored object already has the problems, so that users can change
the object.

A rule may be newer than objects that break it. A user may have to change such an object before deleting it. A problem
of an update becomes a warning if creating the old object now would have the same problem. But the API server or the
webhook of the API enforces some rules on updates too (`refused_on_updates` of the rule). For these rules, claimgate
also refuses the update. Policies in CEL refuse such updates, as native policies do, unless the policy has `stored:
warn`. With `stored: warn`, a validation that reports nothing new for the new object warns instead of denying.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from msgspec import structs

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import Attributes, Operation
from webhook.deadline import Deadline
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.rule_decisions import decision_fields_about
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Policy
from webhook.rules.actions import actions_without_denial
from webhook.rules.decisions import Decision
from webhook.rules.problem import Problem

ALREADY_STORED: Final = "the stored object has this problem already, so it does not stop the update"
Ask: TypeAlias = Callable[[RequestContext, Collection[str]], Sequence[Decision]]
"""Returns the decisions of the policies with these names on a request."""
_DecisionKey: TypeAlias = tuple[str, str, str]
"""The names of a policy, its binding and the parameter."""


def with_stored_as_warnings(
    decisions: Sequence[Decision], candidates: Sequence[Candidate], context: RequestContext, ask: Ask
) -> Sequence[Decision]:
    """Return the decisions on an update. Problems that the stored object already has become warnings.

    Policies are evaluated on the old object only if a policy denies because of a problem that may have been stored.
    """
    policies = {
        each.policy.name: each.policy
        for each in candidates
        if each.policy.reports_problems or each.policy.warns_about_stored
    }
    kind = context.attributes.kind.kind
    may_pass = [
        each
        for each in decisions
        if each.policy in policies and _may_have_been_stored(each, policies[each.policy], kind)
    ]
    if not may_pass:
        return decisions
    old = ask(_context_of_old_object(context), {each.policy for each in may_pass})
    stored = _StoredProblems(old, context.attributes, context.deadline)
    denied = {_validation_of_decision(each): _sentences(each) for each in old if _is_denial(each)}
    split = {
        id(each): [*_split_new_and_stored(each, policies[each.policy], stored, context.deadline)]
        if policies[each.policy].reports_problems
        else [_as_warning(each) if _sentences(each) <= denied.get(_validation_of_decision(each), Counter()) else each]
        for each in may_pass
    }
    return [part for each in decisions for part in split.get(id(each), (each,))]


def _is_denial(decision: Decision) -> bool:
    return decision.evaluation == "deny" and decision.is_enforced


def _validation_of_decision(decision: Decision) -> tuple[object, ...]:
    return *_key_of_decision(decision), decision.index, decision.path


def _sentences(decision: Decision) -> Counter[str]:
    """Count the sentences of a message, which are separated by `; `."""
    return Counter(decision.message.split("; "))


def _as_warning(decision: Decision) -> Decision:
    actions = actions_without_denial(decision.actions)
    return structs.replace(decision, actions=actions, message=f"{decision.message}; {ALREADY_STORED}")


def _context_of_old_object(context: RequestContext) -> RequestContext:
    attributes = context.attributes
    created = replace(attributes, operation=Operation.CREATE, object=attributes.old_object, old_object=None)
    return context.of_other_request(created, may_ask=False)


def _may_have_been_stored(decision: Decision, policy: Policy, kind: str) -> bool:
    if not _is_denial(decision) or not policy.reports_problems:
        return _is_denial(decision)
    return any(_is_refused_by_claimgate_alone(problem, policy, kind) for problem in decision.problems)


def _is_refused_by_claimgate_alone(problem: Problem, policy: Policy, kind: str) -> bool:
    """Return whether only claimgate refuses an update that leaves the problem unchanged."""
    return not policy.catalogue[problem.code].refuses_updates_of(kind)


def _split_new_and_stored(
    decision: Decision, policy: Policy, stored: _StoredProblems, deadline: Deadline
) -> Iterator[Decision]:
    """Yield a decision that denies, about the new problems, and a decision that warns, about the stored problems."""
    key = _key_of_decision(decision)
    are_stored = [
        _is_refused_by_claimgate_alone(each, policy, stored.kind) and stored.has_stored(key, each)
        for each in deadline.charge_for_items(decision.problems)
    ]
    new = [each for each, is_stored in zip(decision.problems, are_stored, strict=True) if not is_stored]
    passing = [
        _add_sentence_about_stored_problem(each)
        for each, is_stored in zip(decision.problems, are_stored, strict=True)
        if is_stored
    ]
    if new:
        yield structs.replace(decision, **decision_fields_about(new, policy)) if passing else decision
    if passing:
        yield structs.replace(
            decision, actions=actions_without_denial(decision.actions), **decision_fields_about(passing, policy)
        )


def _add_sentence_about_stored_problem(problem: Problem) -> Problem:
    return structs.replace(problem, fix=f"{problem.fix}; {ALREADY_STORED}" if problem.fix else ALREADY_STORED)


def _key_of_decision(decision: Decision) -> _DecisionKey:
    return decision.policy, decision.binding, decision.param


class _StoredProblems:
    """The problems of the old object. A problem of the new object counts as stored in three cases:

    - The field of the problem has the old value.
    - The number in the field is not further from the right value than before.
    - The old object has a problem with the same text in another place, because items of a list may have moved.
    """

    __slots__ = ("_moved", "_new", "_old", "_places", "kind")

    def __init__(self, decisions: Sequence[Decision], attributes: Attributes, deadline: Deadline) -> None:
        self.kind = attributes.kind.kind
        self._old, self._new = attributes.old_object, attributes.object
        self._places: dict[tuple[object, ...], Problem] = {}
        self._moved: Counter[tuple[object, ...]] = Counter()
        for decision in decisions:
            key = _key_of_decision(decision)
            for problem in deadline.charge_for_items(decision.problems):
                self._places[key, problem.code, problem.path] = problem
                self._moved[key, problem.code_found_and_message] += 1

    def has_stored(self, key: _DecisionKey, problem: Problem) -> bool:
        """Return whether the old object has a problem of the new object. Each old problem is matched with at most one
        new problem.
        """
        old = self._places.get((key, problem.code, problem.path))
        if old is not None and (
            old.code_found_and_message == problem.code_found_and_message
            or 0 < problem.excess <= old.excess
            or self._is_field_unchanged(problem.path)
        ):
            self._moved[key, old.code_found_and_message] -= 1
            return True
        words = key, problem.code_found_and_message
        if self._moved[words] <= 0:
            return False
        self._moved[words] -= 1
        return True

    def _is_field_unchanged(self, path: str) -> bool:
        """Return whether a field is the same text, number or boolean as before, or is absent in both objects."""
        steps = paths.parse_path(path) if path else ()
        old, new = paths.get(self._old, steps), paths.get(self._new, steps)
        return not isinstance(new, Mapping | list) and type(old) is type(new) and old == new
