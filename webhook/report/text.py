"""For people: a line for each finding as compilers print theirs, for each review or suite, and then the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from webhook import terminal
from webhook.attributes import JSON
from webhook.problems.text import not_evaluated
from webhook.report import explanation_text
from webhook.report.answer import Answer
from webhook.report.case import CaseResult
from webhook.report.finding import Finding, Result
from webhook.report.records import compact
from webhook.report.rule import Rules
from webhook.report.writer import Totals
from webhook.wording import counted, named

_VALUE_WIDTH = 160
"""Characters of a patch's value; the whole value is in json and ndjson."""


class Findings:
    """`file:line: result: message (Kind namespace/name, rule)`, passes left out, and a summary line.

    What is missing is said once, where it is missed first: a folder without its cluster misses the same few objects
    hundreds of times. So everything but passes is held until it is known how often. The other formats have every line.
    """

    def __init__(self) -> None:
        self._spoken: list[Finding] = []

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Nothing."""
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        """Hold what is no pass."""
        if entry.result is not Result.PASS:
            self._spoken.append(entry)
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        """All lines and the sums."""
        yield terminal.lines(_lines(self._spoken, totals))


class Answers:
    """A line for each review, below it what the caller would see and what changes, and the sums."""

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Nothing."""
        yield from ()

    def entry(self, entry: Answer) -> Iterator[str]:
        """The lines of one review."""
        yield terminal.lines(_answer(entry))

    def end(self, totals: Totals) -> Iterator[str]:
        """The sums."""
        allowed = totals.entries - totals.failures
        yield terminal.lines([f"{counted(totals.entries, 'review')}: {allowed} allowed, {totals.failures} denied"])


class Cases:
    """A line for each suite, each failure with its difference, and the sums; why cases were skipped comes last."""

    def __init__(self) -> None:
        self._suite: list[CaseResult] = []
        self._suites: Counter[bool] = Counter()
        self._skipped: Counter[str] = Counter()

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Nothing."""
        yield from ()

    def entry(self, entry: CaseResult) -> Iterator[str]:
        """The suite before this one, once its last case is known."""
        if self._suite and self._suite[0].suite != entry.suite:
            yield from self._told()
        self._suite.append(entry)
        if entry.result is Result.SKIP:
            self._skipped[entry.why] += 1

    def end(self, totals: Totals) -> Iterator[str]:
        """The last suite and the sums."""
        yield from self._told()
        yield terminal.lines(self._sums(totals))

    def _told(self) -> Iterator[str]:
        """The suite that is held."""
        if self._suite:
            self._suites[any(case.result is not Result.SKIP for case in self._suite)] += 1
            yield terminal.lines(_suite(self._suite))
        self._suite = []

    def _sums(self, totals: Totals) -> Iterator[str]:
        if self._skipped:
            every = counted(self._suites.total(), "suite")
            yield f"{every}: {self._suites[True]} run, {self._suites[False]} skipped"
        yield f"{counted(totals.entries, 'case')}: {_outcomes(totals.results)}"
        for why, count in self._skipped.most_common():
            yield f"  skipped: {counted(count, 'case')}: {why}"


def _lines(spoken: Sequence[Finding], totals: Totals) -> Iterator[str]:
    named = [each for each in totals.skipped if each.is_half or totals.is_verbose]
    yield from (f"{skipped.place}: not audited: {skipped.why}" for skipped in named)
    if totals.is_verbose:
        yield from (f"no policy is about {kind}: {counted(count, 'object')}" for kind, count in totals.unasked.items())
    missed = _missed(spoken)
    said: set[str] = set()
    for finding in spoken:
        lacking = _lacking(finding)
        if all(len(missed[text]) == 1 for text in lacking):
            yield _line(finding)
            continue
        yield from (_together(text, missed[text]) for text in lacking if text not in said)
        said.update(lacking)
    if spoken or named or (totals.is_verbose and totals.unasked):
        yield ""
    yield _summary(totals)


def _missed(spoken: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Who misses what, in the order of the report."""
    missed: dict[str, list[Finding]] = {}
    for finding in spoken:
        for text in _lacking(finding):
            missed.setdefault(text, []).append(finding)
    return missed


def _lacking(finding: Finding) -> Sequence[str]:
    """What a skipped finding misses, each in a text of its own: `DeviceClass x not found`."""
    return [str(each) for each in finding.missing] if finding.result is Result.SKIP else ()


def _together(text: str, missing: Sequence[Finding]) -> str:
    first = missing[0]
    times = f"{len(missing)} times, first for {first.subject}" if len(missing) > 1 else str(first.subject)
    return f"{first.place}: {first.result}: {not_evaluated([' '.join(text.split())])} ({times}, {_rules(missing)})"


def _rules(findings: Sequence[Finding]) -> str:
    """The ids of rules, then the policies that have none."""
    ids = dict.fromkeys(finding.rule.id for finding in findings)
    policies = [name for name in ids if "/" not in name]
    listed = [name for name in ids if "/" in name]
    return ", ".join((*listed, named(policies, "policy", "policies")) if policies else listed)


def _line(finding: Finding) -> str:
    message = " ".join(finding.message.split()) or "no message"
    said = "advice" if finding.is_advice and finding.result is Result.WARN else finding.result
    return f"{finding.place}: {said}: {message} ({finding.subject}, {_rules([finding])})"


def _summary(totals: Totals) -> str:
    counts = ", ".join(f"{count} {result}" for result, count in totals.results.items())
    text = f"{counted(totals.entries, 'object')} in {counted(totals.files, 'file')}: {counts}"
    if unasked := sum(totals.unasked.values()):
        text += f"; {counted(unasked, 'object')} that no policy is about"
        text += "" if totals.is_verbose else " (-v names the kinds)"
    if totals.skipped:
        text += f"; {counted(len(totals.skipped), 'document')} without a Kubernetes object"
    if totals.templates:
        text += f"; {counted(totals.templates, 'template')} not rendered"
    if totals.unreadable:
        text += f"; {counted(len({problem.file for problem in totals.unreadable}), 'file')} not read in full"
    return text


def _answer(answer: Answer) -> Iterator[str]:
    verdict, status = answer.verdict, answer.verdict.status
    said = "allowed" if verdict.allowed or status is None else f"denied {status.code} {status.reason}"
    yield f"{answer.place}: {said}: {answer.operation} {answer.subject}"
    if not verdict.allowed and status is not None:
        yield from (f"    {line}" for line in terminal.message_lines(status.message))
    yield from (f"    warning: {warning}" for warning in verdict.warnings)
    yield from (f"    advice: {advice}" for advice in answer.advice)
    yield from (f"    further warning: {warning}" for warning in answer.further_warnings)
    yield from (f"    exception: {exception}" for exception in answer.exceptions)
    yield from (f"    {unknown}" for unknown in answer.unknown)
    yield from (f"    patch: {operation(change)}" for change in verdict.patch)
    yield from (f"    {line}" for line in explanation_text.lines(answer.explanations))


def operation(change: Mapping[str, JSON]) -> str:
    """One patch operation on one line: `add /metadata/labels = {"a":"b"}`."""
    shown = f"{change['op']} {change['path']}"
    if "from" in change:
        return f"{shown} from {change['from']}"
    if "value" not in change:
        return shown
    value = compact(change["value"])
    return f"{shown} = {value if len(value) <= _VALUE_WIDTH else value[: _VALUE_WIDTH - 1] + '…'}"


def _outcomes(results: Mapping[Result, int]) -> str:
    """`2 passed, 1 failed`; what was skipped or has mistakes where there is any."""
    always = [f"{results[Result.PASS]} passed", f"{results[Result.FAIL]} failed"]
    skipped = [f"{results[Result.SKIP]} skipped"] * bool(results[Result.SKIP])
    errors = [f"{results[Result.ERROR]} not readable"] * bool(results[Result.ERROR])
    return ", ".join([*always, *skipped, *errors])


def _suite(results: Sequence[CaseResult]) -> Iterator[str]:
    counts = Counter(result.result for result in results)
    run = counts[Result.PASS] + counts[Result.FAIL]
    passed = [f"{counts[Result.PASS]} of {run} passed"] * bool(run)
    skipped = [f"{counts[Result.SKIP]} skipped"] * bool(counts[Result.SKIP])
    errors = [f"{counts[Result.ERROR]} not readable"] * bool(counts[Result.ERROR])
    yield f"{results[0].suite}: {', '.join([*passed, *skipped, *errors])}"
    for result in results:
        if result.result is Result.FAIL:
            yield f"  failed: {result.id}"
            yield from (f"    {line}" for line in result.why.split("\n"))
