"""The decisions of one review: bounded in number, and without repeated problems.

An object may have thousands of pod templates, each with decisions. At least one decision of every rule that denies or
fails is kept, so that the bound changes no verdict.

One mistake may break two rules, and one warning may concern several places. A rule may yield to other rules
(`yields_to`). If one of the other rules reports the same field with all actions of the rule, the rule's problem is
dropped. Warnings with equal messages about fields of the same name become one problem that names the other places. An
example is a field in each role of a job. Denials keep a problem for each place, because every place must be fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Final, TypeAlias

from msgspec.structs import replace

from webhook.apimachinery import paths
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.evaluation.rule_decisions import decision_fields_about
from webhook.policy.compiled import Policy
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.problem import Problem

MOST_ADMITTED: Final = 10_000
"""The most decisions without a problem that are kept, a few megabytes. Counters and reports do not include further
decisions.
"""
MOST_SPOKEN: Final = 1_000
"""The most decisions with a message that are kept, each of up to 5 KiB. Beyond this limit, the first decision of each
rule is kept."""


class DecisionList:
    """Decisions in order, up to a limit."""

    __slots__ = ("_admitted", "_named", "_spoken", "decisions")

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self._admitted = 0
        self._spoken = 0
        self._named: set[tuple[object, ...]] = set()

    def add(self, decisions: Iterable[Decision]) -> None:
        """Add decisions. Beyond the limit, add a decision only if it has a message and is the first of its rule."""
        for decision in decisions:
            if decision.evaluation == "admit" and not decision.audit_annotations:
                self._admitted += 1
                if self._admitted <= MOST_ADMITTED:
                    self.decisions.append(decision)
            else:
                self._spoken += 1
                if self._spoken <= MOST_SPOKEN or self._is_first_of_rule(decision):
                    self.decisions.append(decision)

    def _is_first_of_rule(self, decision: Decision) -> bool:
        key = (decision.policy, decision.binding, decision.param, decision.index, decision.evaluation, decision.actions)
        is_first = key not in self._named
        self._named.add(key)
        return is_first


_Place: TypeAlias = tuple[str, str]
"""The id of a rule, and a path."""


def without_repeats(
    decisions: Sequence[Decision], policies: Iterable[Policy], deadline: Deadline
) -> tuple[Decision, ...]:
    """Return the decisions on one object without repeated problems, in their order.

    If there is no time to compare the problems, the decisions are returned unchanged. `policies` are the policies
    that made the decisions.
    """
    failed = [decision for decision in decisions if decision.evaluation == "deny"]
    if not failed or (len(failed) == 1 and len(failed[0].problems) < 2):
        return tuple(decisions)
    try:
        return tuple(
            _ProblemComparison(failed, {policy.name: policy for policy in policies}, deadline).without_repeats(
                decisions
            )
        )
    except BudgetExceeded:
        return tuple(decisions)


class _ProblemComparison:
    """Compares the problems of several decisions.

    `_warnings` has the places of warnings with equal messages. `_left` has the remaining problems of each decision, by
    the `id` of the decision.
    """

    __slots__ = ("_deadline", "_left", "_policies", "_spoken", "_warnings")

    def __init__(self, failed: Sequence[Decision], policies: Mapping[str, Policy], deadline: Deadline) -> None:
        self._policies = policies
        self._deadline = deadline
        self._spoken = _actions_by_place(failed, policies, deadline)
        self._warnings: dict[tuple[object, ...], dict[str, None]] = {}
        self._left = {
            id(decision): self._problems_reported_here_alone(decision) for decision in failed if decision.problems
        }

    def without_repeats(self, decisions: Sequence[Decision]) -> Iterator[Decision]:
        """A decision without remaining problems is left out."""
        for decision in decisions:
            left = self._left.get(id(decision))
            if left is None:
                yield decision
            elif left:
                yield self._decision_about_rest(decision, left)

    def _decision_about_rest(self, decision: Decision, left: Sequence[Problem]) -> Decision:
        """Return a decision about its remaining problems. A problem of a warning also names the other places."""
        problems = [
            self._problem_with_all_places(problem, decision) for problem in self._deadline.charge_for_items(left)
        ]
        if len(problems) == len(decision.problems) and all(map(is_, problems, decision.problems)):
            return decision
        return replace(decision, **decision_fields_about(problems, self._policies[decision.policy]))

    def _problem_with_all_places(self, problem: Problem, decision: Decision) -> Problem:
        _, *others = self._warnings.get(_key_of_problem(problem, decision), ("",))
        return replace(problem, also=tuple(others)) if others else problem

    def _problems_reported_here_alone(self, decision: Decision) -> list[Problem]:
        rules, left = self._policies[decision.policy].catalogue, []
        for problem in self._deadline.charge_for_items(decision.problems):
            others = rules[problem.code].yields_to if problem.code in rules else ()
            paths = [each for each in (problem.path, *problem.also) if not self._is_reported(each, others, decision)]
            if not paths:
                continue
            if len(paths) <= len(problem.also):
                problem = replace(problem, path=paths[0], also=tuple(paths[1:]))  # noqa: PLW2901
            places = (
                self._warnings.setdefault(_key_of_problem(problem, decision), {}) if _may_not_deny(decision) else {}
            )
            if not places:
                left.append(problem)
            places.update(dict.fromkeys((problem.path, *problem.also)))
        return left

    def _is_reported(self, path: str, others: Iterable[str], decision: Decision) -> bool:
        """Return whether one of `others` reports a mistake at the path with at least the actions of the decision."""
        return any(self._spoken.get((other, path), set()) >= set(decision.actions) for other in others)


def _may_not_deny(decision: Decision) -> bool:
    return ValidationAction.DENY not in decision.actions


def _key_of_problem(problem: Problem, decision: Decision) -> tuple[object, ...]:
    """Return a key that is equal for problems with the same message, field name and actions, even in different
    places.
    """
    field = problem.path.rpartition(".")[2].partition("[")[0]
    return decision.actions, field, problem.code_found_and_message, problem.fix


def _actions_by_place(
    failed: Sequence[Decision], named: Mapping[str, Policy], deadline: Deadline
) -> Mapping[_Place, set[ValidationAction]]:
    """Return the actions at each rule and path, for rules that another rule names in `yields_to`."""
    codes = dict.fromkeys(problem.code for each in failed for problem in deadline.charge_for_items(each.problems))
    catalogues = [policy.catalogue for policy in named.values()]
    rules = (rules[code] for code in codes for rules in catalogues if code in rules)
    yielding_to = {other for rule in rules for other in rule.yields_to}
    places: dict[_Place, set[ValidationAction]] = {}
    for decision in failed if yielding_to else ():
        for place in deadline.charge_for_items([*_places_of_problems(decision)]):
            if place[0] in yielding_to:
                places.setdefault(place, set()).update(decision.actions)
    return places


def _places_of_problems(decision: Decision) -> Iterator[_Place]:
    """Yield the rule and the path of each problem of a decision. For a policy in CEL, the paths are parsed from the
    beginnings of the message's sentences.
    """
    if decision.problems:
        yield from ((each.code, each.path) for each in decision.problems)
        return
    for sentence in decision.message.split("; "):
        at, _ = paths.split_off_leading_path(sentence)
        yield decision.rule, paths.path_as_text(at)
