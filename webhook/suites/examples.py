"""Finds examples of rules in suites. A case that names a rule is a bad example if it expects a denial or a warning.

The text of an example is the real message of the policies, so pages with examples are always true.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.evaluation.rule_decisions import MAX_BYTES
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision
from webhook.rules.text import message_of_problems
from webhook.suites import find, own
from webhook.suites.case import answer_of_case
from webhook.suites.files import Suite
from webhook.suites.suite_model import CaseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A case as an example. `old` is the object before an update. `messages` are the messages of a bad example."""

    rule: str
    name: str
    is_bad: bool
    operation: str
    object: JSON
    old: JSON = None
    messages: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """The first bad and the first good example of a rule."""

    bad: Example | None = None
    good: Example | None = None


_Known: TypeAlias = Mapping[str, Mapping[bool, Example]]
"""The examples of each rule or policy so far. The key True has the bad example."""


def examples(folders: Iterable[Path], options: Options, rules: Container[str] | None = None) -> Mapping[str, Pair]:
    """Return the examples of rules that a suite in this project's format names.

    `rules` are the ids of the wanted rules; None means all.

    Raises:
        InputError: a suite has mistakes.
    """
    return _pairs(
        folders, lambda suite, documents, earlier: _examples_of_suite(suite, documents, options, earlier, rules)
    )


def examples_of_policies(folders: Iterable[Path], options: Options) -> Mapping[str, Pair]:
    """Return for each policy the first case that it denies or warns about, and the first case that it allows.

    Raises:
        InputError: a suite has mistakes.
    """
    return _pairs(
        folders, lambda suite, documents, earlier: _examples_of_policies_in_suite(suite, documents, options, earlier)
    )


def _pairs(
    folders: Iterable[Path], examples_of_suite: Callable[[Suite, find.Documents, _Known], Iterable[Example]]
) -> Mapping[str, Pair]:
    """Return the first bad and the first good example of each rule or policy. `examples_of_suite` gets the examples of
    earlier suites, and evaluates only cases that are still needed.
    """
    examples_by_rule: dict[str, dict[bool, Example]] = {}
    for suite in find.find_suites(list(folders)):
        documents = find.documents_of_own_suite(suite)
        if documents is not None:
            for each in examples_of_suite(suite, documents, examples_by_rule):
                examples_by_rule.setdefault(each.rule, {}).setdefault(each.is_bad, each)
    return {rule: Pair(bad=pair.get(True), good=pair.get(False)) for rule, pair in examples_by_rule.items()}


def _examples_of_policies_in_suite(
    suite: Suite, documents: find.Documents, options: Options, earlier: _Known
) -> Iterator[Example]:
    policies = cache(lambda: load_policy_set([suite.policies_folder()], options))
    for case in own.cases(suite, documents):
        request = own.request_of_case(case, suite, policies, options)
        decisions = answer_of_case(request).verdict.decisions
        messages_by_policy: dict[str, list[str]] = {}
        for each in decisions:
            if each.evaluation in ("admit", "deny"):
                messages_by_policy.setdefault(each.policy, []).extend([each.message] if each.action == "deny" else [])
        for policy, messages in messages_by_policy.items():
            if bool(messages) not in earlier.get(policy, {}):
                obj, old = own.object_as_written(case, suite, request.attributes)
                yield Example(
                    rule=policy,
                    name=case.name,
                    is_bad=bool(messages),
                    operation=str(request.attributes.operation),
                    object=obj,
                    old=old,
                    messages="; ".join(messages),
                )


def _examples_of_suite(
    suite: Suite,
    documents: find.Documents,
    options: Options,
    earlier: _Known,
    rules: Container[str] | None,
) -> Iterator[Example]:
    policies = cache(lambda: load_policy_set([suite.policies_folder()], options))
    for case in own.cases(suite, documents):
        for rule in case.rules:
            if (rules is None or rule in rules) and case.is_bad_example not in earlier.get(rule, {}):
                yield _example(case, rule, suite, policies, options)


def _example(case: CaseModel, rule: str, suite: Suite, policies: Callable[[], PolicySet], options: Options) -> Example:
    request = own.request_of_case(case, suite, policies, options)
    attributes = request.attributes
    obj, old = own.object_as_written(case, suite, attributes)
    return Example(
        rule=rule,
        name=case.name,
        is_bad=case.is_bad_example,
        operation=str(attributes.operation),
        object=obj,
        old=old,
        messages="; ".join(_messages_about_rule(rule, answer_of_case(request).verdict.decisions))
        if case.is_bad_example
        else "",
    )


def _messages_about_rule(rule: str, decisions: Sequence[Decision]) -> Iterator[str]:
    for decision in decisions:
        if decision.action == "deny":
            if problems := [each for each in decision.problems if each.code == rule]:
                yield message_of_problems(problems, MAX_BYTES)
            elif not decision.problems and decision.rule == rule:
                yield decision.message
