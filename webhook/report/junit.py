"""Writes JUnit XML for CI systems: one testsuite for each file, one testcase for each case, review or finding.

Follows the schema that Jenkins and GitLab read (junit-10.xsd). Without times, the same results give the same text.
Names and texts are escaped as for a terminal, because XML 1.0 cannot contain some characters. The sums come first, so
test cases are kept until the end, in a file if there are many (spool).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from msgspec import Struct, field

from webhook.report.finding import Finding, Result
from webhook.report.results import Answer, CaseResult
from webhook.report.rule import Rules
from webhook.report.spool import Spool
from webhook.report.writer import Totals
from webhook.text.terminal import one_line
from webhook.text.wording import counted

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ELEMENTS = {Result.FAIL: "failure", Result.WARN: "system-out", Result.ERROR: "error", Result.SKIP: "skipped"}
_NOT_EVALUATED: Final = "not evaluated"
"""The suite with a test case for each missing object."""
_PLAIN = frozenset(("system-out",))
"""Elements that contain only text."""
_SUMS = {"failure": "failures", "error": "errors", "skipped": "skipped"}

Entry = TypeVar("Entry")


class _TestCase(Struct, frozen=True):
    """One testcase element. `outcome` is the name of the inner element, "" for a pass. `text` is the text of this
    element.
    """

    suite: str
    name: str
    outcome: str = ""
    text: str = ""


class _Suite(Struct, frozen=True):
    """Consecutive test cases of one suite, counted by outcome."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)


class _CollectingWriter(Generic[Entry]):
    """Keeps the test cases, and writes them at the end."""

    def __init__(self) -> None:
        self._cases: Spool[_TestCase] = Spool()
        self._suites: list[_Suite] = []

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Entry) -> Iterator[str]:
        self._add_test_case(self.to_test_case(entry))
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the document. An unreadable file is an error. One suite is about rules that were not evaluated."""
        for each in totals.unreadable:
            self._add_test_case(_TestCase(each.file, "cannot be read", "error", str(each)))
        for reason in totals.counts.not_evaluated.values():
            text = f"{reason.why}\n{counted(reason.objects, 'object')}, first {reason.subject} at {reason.place}"
            self._add_test_case(_TestCase(_NOT_EVALUATED, reason.why, "skipped", text))
        yield from _document_of_cases(self._suites, iter(self._cases))

    def _add_test_case(self, case: _TestCase) -> None:
        if not self._suites or self._suites[-1].name != case.suite:
            self._suites.append(_Suite(case.suite))
        self._suites[-1].outcomes[case.outcome] += 1
        self._cases.append(case)

    def to_test_case(self, entry: Entry) -> _TestCase:
        raise NotImplementedError


class JunitCasesWriter(_CollectingWriter[CaseResult]):
    """Writes the results of suites."""

    def to_test_case(self, entry: CaseResult) -> _TestCase:
        return _TestCase(entry.suite, entry.id, _ELEMENTS.get(entry.result, ""), entry.why)


class JunitAnswersWriter(_CollectingWriter[Answer]):
    """Writes the answers to reviews. A denial is a failure."""

    def to_test_case(self, entry: Answer) -> _TestCase:
        """Return an answer as a test case. Two reviews may be about one object, so the name has the review's number."""
        name = f"{entry.index}: {entry.operation} {entry.subject}"
        status = entry.verdict.status
        if entry.verdict.allowed or status is None:
            return _TestCase(entry.place.file, name)
        return _TestCase(entry.place.file, name, "failure", status.message)


class JunitFindingsWriter(_CollectingWriter[Finding]):
    """Writes the findings of an audit. A warning is a pass. An undecided result is an error or skipped."""

    def to_test_case(self, entry: Finding) -> _TestCase:
        name = f"{entry.rule.id}: {entry.subject}"
        return _TestCase(entry.place.file, name, _ELEMENTS.get(entry.result, ""), entry.message)


def _document_of_cases(suites: Sequence[_Suite], cases: Iterator[_TestCase]) -> Iterator[str]:
    """Yield the text of the document. `cases` has the cases of all suites in order."""
    sums = _counts_of_outcomes(sum((suite.outcomes for suite in suites), Counter()))
    del sums["skipped"]  # the schema allows `skipped` only in a testsuite
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    if not suites:
        yield f"{_element_start('testsuites', sums, is_empty=True)}\n"
        return
    yield f"{_element_start('testsuites', sums)}\n"
    for suite in suites:
        attributes = {"name": one_line(suite.name), **_counts_of_outcomes(suite.outcomes)}
        yield f"  {_element_start('testsuite', attributes)}\n"
        yield from map(_test_case_element_text, islice(cases, suite.outcomes.total()))
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _element_start(name: str, attributes: dict[str, str], *, is_empty: bool = False) -> str:
    from xml.etree.ElementTree import Element, tostring

    text = tostring(Element(name, attributes), encoding="unicode")
    return text if is_empty else f"{text.removesuffix(' />')}>"


def _test_case_element_text(case: _TestCase) -> str:
    from xml.etree.ElementTree import Element, indent, tostring

    testcase = Element("testcase", {"classname": one_line(case.suite), "name": one_line(case.name)})
    if case.outcome:
        testcase.append(_outcome_element(case))
        indent(testcase, level=2)
    return f"    {tostring(testcase, encoding='unicode').rstrip()}\n"


def _outcome_element(case: _TestCase) -> Element:
    from xml.etree.ElementTree import Element

    lines = case.text.split("\n")
    element = Element(case.outcome, {} if case.outcome in _PLAIN else {"message": one_line(lines[0])})
    element.text = "\n".join(map(one_line, lines))
    return element


def _counts_of_outcomes(counts: Counter[str]) -> dict[str, str]:
    return {"tests": str(counts.total()), **{name: str(counts[outcome]) for outcome, name in _SUMS.items()}}
