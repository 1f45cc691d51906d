"""Findings: each decision with its rule, its object and its line in the input.

Knows the result words of wgpolicyk8s.io/v1alpha2 and the word for each decision; knows no output format and
evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import Attributes, Phase
from webhook.report.rule import Rule, Rules, rule_of
from webhook.rules.decisions import Decision
from webhook.rules.problem import MissingObject, Problem
from webhook.rules.text import problem_as_sentence, split_off_fix, with_short_expression
from webhook.yamltext.source_line import Lines, Locate, Place, SourceLine

_LONGEST_NAME: Final = 1_000


class Result(StrEnum):
    """The outcome of one policy for one object, in the words and the order of a policy report's summary."""

    PASS = "pass"  # noqa: S105 - a report's word, no password
    FAIL = "fail"
    WARN = "warn"
    ERROR = "error"
    SKIP = "skip"


class Subject(Struct, frozen=True, kw_only=True):
    """The object a finding is about. namespace is "" for cluster-scoped objects.

    has_unread_pods: its pods come from unread parts, so an object without findings is not known to be good.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    has_unread_pods: bool = False

    def __str__(self) -> str:
        name = self.name or "(no name)"
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"


class Copy(Struct, frozen=True):
    """A copy of an object, and the place in the copy to which a finding about the object also applies."""

    place: Place
    subject: Subject


class Finding(Struct, kw_only=True):
    """One result; treat it as immutable. `rule` describes the rule; `decision` is the decision of the finding.

    `problem` is the problem of the decision that the finding is about, None if there is none. `line` is the line at the
    place, None if there is no line to show. `also_in` are the copies of the object with the same mistake; it is empty
    unless the format reports copies together (copies.py).
    """

    result: Result
    rule: Rule
    subject: Subject
    place: Place
    phase: Phase
    decision: Decision
    problem: Problem | None = None
    line: SourceLine | None = None
    also_in: tuple[Copy, ...] = ()

    @property
    def path(self) -> str:
        """Return the field inside the object, "" for the object as a whole."""
        return self.problem.path if self.problem else self.decision.path

    @property
    def message(self) -> str:
        """Return the text of the problem or the policy; it begins with the field path if there is one."""
        text = problem_as_sentence(self.problem) if self.problem else with_short_expression(self.decision.message)
        return f"{text} ({self.exception_reason})" if self.exception_reason else text

    def message_and_fix(self) -> tuple[str, str]:
        """Return the message and the fix, for formats that show the two separately; the fix may be ""."""
        if self.problem:
            return problem_as_sentence(replace(self.problem, fix="")), self.problem.fix
        is_named = self.decision.evaluation == "deny" and "/" in self.decision.rule
        text = with_short_expression(self.decision.message)
        return split_off_fix(text) if is_named else (text, "")

    @property
    def exception_reason(self) -> str:
        """Return why a failure does not deny, "" without an exception."""
        return self.decision.exception

    @property
    def is_advice(self) -> bool:
        """Return whether it is advice: a warning that was requested and is not counted."""
        return self.decision.is_advice

    @property
    def is_undecided(self) -> bool:
        """Return whether a policy that may deny could not be evaluated, and let the object pass."""
        is_open = self.result in (Result.ERROR, Result.SKIP) and not self.denies
        return is_open and self.decision.is_enforced and not self.exception_reason

    @property
    def denies(self) -> bool:
        """Return whether the request is denied: by a broken rule, or by an error under failurePolicy Fail."""
        is_error = self.result is Result.ERROR and self.decision.action == "deny" and self.decision.is_enforced
        return self.result is Result.FAIL or is_error

    @property
    def missing(self) -> tuple[MissingObject, ...]:
        """Return the objects that were needed and missing."""
        return self.problem.missing if self.problem else self.decision.missing


def result_of_decision(decision: Decision) -> Result:
    """Return the report's result for a decision.

    A failed validation is `fail` if its binding denies and `warn` if it only warns or audits; `error` means that
    the evaluation failed. `skip` means that an object was missing and the policy does not fail closed.
    """
    if decision.exception:
        return Result.SKIP
    if decision.evaluation == "error":
        return Result.ERROR
    if decision.evaluation == "unknown" and decision.action == "admit":
        return Result.SKIP
    if decision.evaluation == "admit":
        return Result.PASS
    return Result.FAIL if decision.is_enforced else Result.WARN


def subject_of_request(attributes: Attributes) -> Subject:
    """Return the object of a request; on DELETE the deleted object."""
    held = attributes.object if attributes.object is not None else attributes.old_object
    metadata = held.get("metadata") if isinstance(held, dict) else None
    named = metadata if isinstance(metadata, dict) else {}
    return Subject(
        api_version=_cut_name(attributes.kind.api_version),
        kind=_cut_name(attributes.kind.kind),
        namespace=_cut_name(attributes.namespace),
        name=_cut_name(attributes.name or str(named.get("generateName") or "")),
        uid=str(named.get("uid") or ""),
    )


def _cut_name(name: str) -> str:
    """Return a name as every finding of its object repeats it; the API server accepts 253 characters."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def findings_of_object(
    decisions: Iterable[tuple[Phase, Decision]],
    about: Subject,
    locate: Locate,
    rules: Rules,
    lines: Lines = lambda _, __: None,
    *,
    with_passes: bool = True,
) -> tuple[Finding, ...]:
    """Return the findings of one object: every problem, every other decision that is not a pass, and passes.

    A policy without a problem has one pass.

    Args:
        decisions: what was decided, with the phase it was decided in.
        about: the object.
        locate: from a field path to its place in the input.
        rules: the descriptions of the rules.
        lines: from a field path to the line at its place, for formats that show it.
        with_passes: whether passes are returned: they are most of an audit, and few formats have rows for them.
    """
    of = _FindingContext(about, cache(locate), lines, rules)
    kept: list[Finding] = []
    passed: dict[str, tuple[Phase, Decision]] = {}
    for phase, decision in decisions:
        said = result_of_decision(decision)
        if said is not Result.PASS:
            kept.extend(of.findings_of_decision(said, phase, decision))
        elif decision.kind == "validating":
            passed.setdefault(decision.policy, (phase, decision))
    for policy in {finding.decision.policy for finding in kept}:
        passed.pop(policy, None)
    if not with_passes:
        return tuple(_findings_without_repetitions(kept))
    content = (next(of.findings_of_decision(Result.PASS, phase, decision)) for phase, decision in passed.values())
    return (*_findings_without_repetitions(kept), *content)


class _FindingContext(Struct, frozen=True):
    """An object, its places in the input, and what is known of the rules."""

    subject: Subject
    locate: Locate
    lines: Lines
    rules: Rules

    def findings_of_decision(self, said: Result, phase: Phase, decision: Decision) -> Iterator[Finding]:
        """Yield a finding for each problem of a decision, or one for a decision without problems."""
        for problem in decision.problems or (None,):
            path, words = (problem.path, problem.words) if problem else (decision.path, ())
            yield Finding(
                result=said,
                rule=rule_of(decision, self.rules, problem),
                subject=self.subject,
                place=self.locate(path, words),
                phase=phase,
                decision=decision,
                problem=problem,
                line=self.lines(path, words) if path and said is not Result.PASS else None,
            )


def _findings_without_repetitions(repeated: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings without repetitions: a policy may report the same in both phases, and with several params."""
    seen = set()
    for finding in repeated:
        key = (
            finding.result,
            finding.decision.policy,
            finding.rule.id,
            finding.path,
            finding.message,
        )
        if key not in seen:
            seen.add(key)
            yield finding
