"""Decisions of one object without what another one says already: a mistake under two rules, or the same advice twice.

A rule that `yields_to` others is silent where one of them speaks of the same field and does as much about it. Advice in
the same words about one field in several places, such as the roles of a job, is one problem that names the others.
Denials keep a problem for each place, since each has to be mended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import TypeAlias, TypedDict

from webhook import paths
from webhook.deadline import Deadline
from webhook.decisions import Decision, ValidationAction, rank
from webhook.errors import BudgetExceeded
from webhook.evaluation.messages import MAX_BYTES
from webhook.policy.compiled import Policy
from webhook.problem import MissingObject, Problem
from webhook.problems import text as wording

_Place: TypeAlias = tuple[str, str]
"""The id of a rule, and a path."""


class About(TypedDict):
    """The fields of a decision about problems that follow from these."""

    rule: str
    path: str
    message: str
    severity: str
    problems: tuple[Problem, ...]
    missing: tuple[MissingObject, ...]


def about(problems: Sequence[Problem], policy: Policy) -> About:
    """What a decision of a policy about these problems says; their paths begin at the root of the object."""
    codes = dict.fromkeys([each.code for each in problems])
    return {
        "rule": problems[0].code,
        "path": problems[0].path,
        "message": wording.message(problems, MAX_BYTES),
        "severity": min(map(policy.severity_of, codes), key=rank),
        "problems": tuple(problems),
        "missing": tuple(dict.fromkeys([each for problem in problems for each in problem.missing])),
    }


def said_once(
    made: Sequence[Decision], policies: Callable[[], Mapping[str, Policy]], deadline: Deadline
) -> tuple[Decision, ...]:
    """The decisions of one object, in their order, as they are where there is no time to compare them.

    `policies` gives those that made them by their names.
    """
    failed = [each for each in made if each.evaluation == "deny"]
    if not failed or (len(failed) == 1 and len(failed[0].problems) < 2):
        return tuple(made)
    try:
        return tuple(_Comparison(failed, policies(), deadline).told(made))
    except BudgetExceeded:
        return tuple(made)


class _Comparison:
    """What is kept of the problems of some decisions.

    `advice` are problems in the same words, the first with its decision; `kept` those of each decision, by its `id`.
    """

    __slots__ = ("_advice", "_deadline", "_kept", "_policies", "_spoken")

    def __init__(self, failed: Sequence[Decision], policies: Mapping[str, Policy], deadline: Deadline) -> None:
        self._policies = policies
        self._deadline = deadline
        self._spoken = _spoken(failed, policies, deadline)
        self._advice: dict[tuple[object, ...], dict[str, None]] = {}
        self._kept = {id(each): self._keep(each) for each in failed if each.problems}

    def told(self, made: Sequence[Decision]) -> Iterator[Decision]:
        """The decisions with what is kept of them."""
        for each in made:
            kept = self._kept.get(id(each))
            if kept is None:
                yield each
            elif kept:
                yield self._about(each, kept)

    def _about(self, decision: Decision, kept: Sequence[Problem]) -> Decision:
        """A decision about what is kept of its problems, with the other places of advice."""
        problems = [self._with_places(each, decision) for each in kept]
        if len(problems) == len(decision.problems) and all(map(is_, problems, decision.problems)):
            return decision
        return replace(decision, **about(problems, self._policies[decision.policy]))

    def _with_places(self, problem: Problem, decision: Decision) -> Problem:
        _, *others = self._advice.get(_words(problem, decision), ("",))
        return replace(problem, also=tuple(others)) if others else problem

    def _keep(self, decision: Decision) -> list[Problem]:
        """The problems that this decision alone says; advice given before stands with the first of its kind."""
        rules, kept = self._policies[decision.policy].catalogue, []
        for each in self._deadline.each(decision.problems):
            others = rules[each.code].yields_to if each.code in rules else ()
            if any(self._spoken.get((other, each.path), set()) >= set(decision.actions) for other in others):
                continue
            places = self._advice.setdefault(_words(each, decision), {}) if _is_advice(decision) else {}
            if not places:
                kept.append(each)
            places[each.path] = None
        return kept


def _is_advice(decision: Decision) -> bool:
    return ValidationAction.DENY not in decision.actions


def _words(problem: Problem, decision: Decision) -> tuple[object, ...]:
    """What is said of which field, wherever that stands, and what is done about it."""
    field = problem.path.rpartition(".")[2].partition("[")[0]
    return decision.actions, field, problem.without_path, problem.fix


def _spoken(
    failed: Sequence[Decision], named: Mapping[str, Policy], deadline: Deadline
) -> Mapping[_Place, set[ValidationAction]]:
    """Where the rules speak that others yield to, and what is done about it."""
    codes = dict.fromkeys(problem.code for each in failed for problem in deadline.each(each.problems))
    catalogues = [policy.catalogue for policy in named.values()]
    rules = (rules[code] for code in codes for rules in catalogues if code in rules)
    wanted = {other for rule in rules for other in rule.yields_to}
    places: dict[_Place, set[ValidationAction]] = {}
    for decision in failed if wanted else ():
        for place in deadline.each([*_places(decision)]):
            if place[0] in wanted:
                places.setdefault(place, set()).update(decision.actions)
    return places


def _places(decision: Decision) -> Iterator[_Place]:
    """The fields that a decision is about; of a policy that is CEL alone, those that its sentences begin with."""
    if decision.problems:
        yield from ((each.code, each.path) for each in decision.problems)
        return
    for sentence in decision.message.split("; "):
        at, _ = paths.leading(sentence)
        yield decision.rule, paths.render(at)
