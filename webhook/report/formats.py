"""The table of output formats. A new format is a module with its writers and a row here.

A format that knows only findings writes what all three verbs report: answers and case results are told to it as
findings. One that says more of them has writers of its own for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from webhook.report import (
    github,
    gitlab,
    html,
    json,
    junit,
    markdown,
    ndjson,
    policyreport,
    sarif,
    text_answers,
    text_cases,
    text_findings,
)
from webhook.report.answer import Answer
from webhook.report.case import CaseResult
from webhook.report.finding import Finding
from webhook.report.writer import ThroughFindings, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format with the functions that create its writers: `findings` for audit, `answers` for replay, `cases` for
    test. `lists_passes`: whether a report of an audit has an entry for each policy that an object passed.
    `draws_queues`: whether it draws the queues of the cluster with what jobs would take.
    `is_by_line`: whether the text of each finding depends on that finding alone.
    """

    name: str
    findings: Callable[[], Writer[Finding]]
    answers: Callable[[], Writer[Answer]] | None = None
    cases: Callable[[], Writer[CaseResult]] | None = None
    lists_passes: bool = True
    draws_queues: bool = False
    is_by_line: bool = False


FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="text",
        findings=text_findings.Findings,
        answers=text_answers.Answers,
        cases=text_cases.Cases,
        lists_passes=False,
    ),
    Format(name="json", findings=json.Findings, answers=json.Answers, cases=json.Cases),
    Format(name="ndjson", findings=ndjson.Lines, answers=ndjson.Lines, cases=ndjson.Lines, is_by_line=True),
    Format(name="junit", findings=junit.Findings, answers=junit.Answers, cases=junit.Cases),
    Format(name="sarif", findings=sarif.Findings, lists_passes=False),
    Format(name="github", findings=github.Findings, lists_passes=False, is_by_line=True),
    Format(name="gitlab", findings=gitlab.Findings, lists_passes=False),
    Format(name="markdown", findings=markdown.Findings, lists_passes=False),
    Format(name="html", findings=html.Findings, lists_passes=False, draws_queues=True),
    Format(name="policyreport", findings=policyreport.Findings),
    Format(name="openreports", findings=policyreport.OpenReports),
)

LINE_FORMATS: Final = frozenset(each.name for each in FORMATS if each.is_by_line)
"""The formats in which the text of each finding depends on that finding alone."""

Made = TypeVar("Made")
Writers: TypeAlias = Mapping[str, Callable[[], Writer[Made]]]
"""The function that creates the writer of each format, by its name."""


def names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(each.name for each in FORMATS)


def writers_of_findings() -> Writers[Finding]:
    """Return the writers for an audit."""
    return {each.name: each.findings for each in FORMATS}


@dataclass(frozen=True, slots=True)
class Contents:
    """What an audit has to find out for its outputs: passes as entries, and what jobs would take of queues."""

    passes: bool = True
    queues: bool = False


FINDINGS_AND_PASSES: Final = Contents()


def contents(names: Collection[str]) -> Contents:
    """Return what reports of an audit in some formats have to say."""
    chosen = [each for each in FORMATS if each.name in names]
    return Contents(any(each.lists_passes for each in chosen), any(each.draws_queues for each in chosen))


def writers_of_answers() -> Writers[Answer]:
    """Return the writers for a replay."""
    return {each.name: each.answers or _writer_through_findings(each) for each in FORMATS}


def writers_of_cases() -> Writers[CaseResult]:
    """Return the writers for a test."""
    return {each.name: each.cases or _writer_through_findings(each) for each in FORMATS}


def _writer_through_findings(each: Format) -> Callable[[], ThroughFindings]:
    return lambda: ThroughFindings(each.findings())
