"""Makes findings from decisions, each with its rule, its object and its line in the input.

The results have the names of wgpolicyk8s.io/v1alpha2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import Attributes, Phase
from webhook.apimachinery.names import object_as_text
from webhook.report.rule import Rule, Rules, rule_of
from webhook.rules.decisions import Decision
from webhook.rules.problem import MissingObject, Problem
from webhook.rules.text import problem_as_sentence, split_off_fix, with_short_expression
from webhook.yamltext.source_line import FindLine, Locate, Place, SourceLine

_LONGEST_NAME: Final = 1_000


class Result(StrEnum):
    """The result of one policy for one object. Words and order are from the summary of policy reports."""

    PASS = "pass"  # noqa: S105 - a report's word, no password
    FAIL = "fail"
    WARN = "warn"
    ERROR = "error"
    SKIP = "skip"


class Subject(Struct, frozen=True, kw_only=True):
    """The object of a finding. namespace is "" for cluster-scoped objects.

    With has_unread_pods, the object may have mistakes without findings, because its pods are not read.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    has_unread_pods: bool = False

    def __str__(self) -> str:
        return object_as_text(self.kind, self.namespace, self.name or "(no name)")


class Copy(Struct, frozen=True):
    """A copy of an object, and the place of the same mistake in the copy."""

    place: Place
    subject: Subject


class Finding(Struct, kw_only=True):
    """One result of one rule for one object. Treat it as immutable.

    Attributes:
        problem: one problem of `decision`; None if the decision has no problems.
        line: the source line at the place; None if it must not be shown.
        also_in: copies of the object with the same mistake, if the format joins copies (copies.py).
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
        """Return the path of the field in the object; "" for the whole object."""
        return self.problem.path if self.problem else self.decision.path

    @property
    def message(self) -> str:
        """Return the text of the problem or the decision. If there is a field path, the text begins with the path."""
        text = problem_as_sentence(self.problem) if self.problem else with_short_expression(self.decision.message)
        return f"{text} ({self.exception_reason})" if self.exception_reason else text

    def message_and_fix(self) -> tuple[str, str]:
        """Return the message and the fix. The fix may be ""."""
        if self.problem:
            return problem_as_sentence(replace(self.problem, fix="")), self.problem.fix
        is_named = self.decision.evaluation == "deny" and "/" in self.decision.rule
        text = with_short_expression(self.decision.message)
        return split_off_fix(text) if is_named else (text, "")

    @property
    def exception_reason(self) -> str:
        """Return the description of the exception that allows a failure; "" without an exception."""
        return self.decision.exception

    @property
    def is_advice(self) -> bool:
        """Return whether the finding is advice: a warning that is shown on request and not counted."""
        return self.decision.is_advice

    @property
    def is_open(self) -> bool:
        """Return whether a rule, advice aside, was not evaluated, so the object passed."""
        is_without_result = self.result in (Result.ERROR, Result.SKIP) and not self.denies
        return is_without_result and not self.exception_reason and not self.is_advice

    @property
    def is_undecided(self) -> bool:
        """Return whether a policy that may deny was not evaluated, so the object passed."""
        return self.is_open and self.decision.is_enforced

    @property
    def denies(self) -> bool:
        """Return whether the finding denies the request: a broken rule, or an error under failurePolicy Fail."""
        is_error = self.result is Result.ERROR and self.decision.action == "deny" and self.decision.is_enforced
        return self.result is Result.FAIL or is_error

    @property
    def missing(self) -> tuple[MissingObject, ...]:
        return self.problem.missing if self.problem else self.decision.missing


def result_of_decision(decision: Decision) -> Result:
    """Return the result of a report for a decision.

    A failed validation is `fail` if the binding denies, and `warn` if the binding only warns or audits. `error` means
    that the evaluation failed. `skip` means an exception, or a rule that could not be evaluated because something is
    not known, if the policy then admits the object.
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
    """Return the object of a request; on DELETE, the deleted object."""
    obj = attributes.object if attributes.object is not None else attributes.old_object
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    named = metadata if isinstance(metadata, dict) else {}
    return Subject(
        api_version=_cut_name(attributes.kind.api_version),
        kind=_cut_name(attributes.kind.kind),
        namespace=_cut_name(attributes.namespace),
        name=_cut_name(attributes.name or str(named.get("generateName") or "")),
        uid=str(named.get("uid") or ""),
    )


def _cut_name(name: str) -> str:
    """Shorten a name, because every finding of the object repeats it. API servers accept 253 characters."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def findings_of_object(
    decisions: Iterable[tuple[Phase, Decision]],
    subject: Subject,
    locate: Locate,
    rules: Rules,
    find_line: FindLine = lambda _, __: None,
    *,
    with_passes: bool = True,
) -> tuple[Finding, ...]:
    """Return the findings of one object: one for every problem, and one for every other decision that is not a pass.

    Every validating policy without a problem has one pass. An audit has very many passes, and few formats need passes,
    so without `with_passes` the passes are left out. `find_line` is for formats that show the source line of a field.
    """
    if not with_passes:
        decisions = [each for each in decisions if each[1].evaluation != "admit" or each[1].exception]
        if not decisions:  # most objects
            return ()
    context = _FindingContext(subject, cache(locate), find_line, rules)
    findings: list[Finding] = []
    passed: dict[str, tuple[Phase, Decision]] = {}
    for phase, decision in decisions:
        result = result_of_decision(decision)
        if result is not Result.PASS:
            findings.extend(context.findings_of_decision(result, phase, decision))
        elif decision.kind == "validating":
            passed.setdefault(decision.policy, (phase, decision))
    for policy in {finding.decision.policy for finding in findings}:
        passed.pop(policy, None)
    if not with_passes:
        return tuple(_findings_without_repetitions(findings))
    passes = (next(context.findings_of_decision(Result.PASS, phase, decision)) for phase, decision in passed.values())
    return (*_findings_without_repetitions(findings), *passes)


class _FindingContext(Struct, frozen=True):
    """An object, its places in the input, and the descriptions of rules."""

    subject: Subject
    locate: Locate
    find_line: FindLine
    rules: Rules

    def findings_of_decision(self, result: Result, phase: Phase, decision: Decision) -> Iterator[Finding]:
        """Yield a finding for each problem of a decision. Without problems, yield one finding for the decision."""
        for problem in decision.problems or (None,):
            path, words = (problem.path, problem.words) if problem else (decision.path, ())
            yield Finding(
                result=result,
                rule=rule_of(decision, self.rules, problem),
                subject=self.subject,
                place=self.locate(path, words),
                phase=phase,
                decision=decision,
                problem=problem,
                line=self.find_line(path, words) if path and result is not Result.PASS else None,
            )


def _findings_without_repetitions(repeated: Iterable[Finding]) -> Iterator[Finding]:
    """Yield each finding once. A policy may report the same problem in both phases and with several params."""
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
