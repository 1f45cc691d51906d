"""The table of output formats. A new format is a module with its writers and a row here.

A format that knows only findings writes what all three verbs report: answers and case results are told to it as
findings. One that says more of them has writers of its own for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

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
from webhook.report.writer import FindingsAdapter, Writer


class ReportFormat(Struct, frozen=True, kw_only=True):
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


FORMATS: Final[tuple[ReportFormat, ...]] = (
    ReportFormat(
        name="text",
        findings=text_findings.TextFindingsWriter,
        answers=text_answers.TextAnswersWriter,
        cases=text_cases.TextCasesWriter,
        lists_passes=False,
    ),
    ReportFormat(
        name="json", findings=json.JsonFindingsWriter, answers=json.JsonAnswersWriter, cases=json.JsonCasesWriter
    ),
    ReportFormat(
        name="ndjson",
        findings=ndjson.NdjsonWriter,
        answers=ndjson.NdjsonWriter,
        cases=ndjson.NdjsonWriter,
        is_by_line=True,
    ),
    ReportFormat(
        name="junit", findings=junit.JunitFindingsWriter, answers=junit.JunitAnswersWriter, cases=junit.JunitCasesWriter
    ),
    ReportFormat(name="sarif", findings=sarif.SarifWriter, lists_passes=False),
    ReportFormat(name="github", findings=github.GithubFindingsWriter, lists_passes=False, is_by_line=True),
    ReportFormat(name="gitlab", findings=gitlab.GitlabFindingsWriter, lists_passes=False),
    ReportFormat(name="markdown", findings=markdown.MarkdownFindingsWriter, lists_passes=False),
    ReportFormat(name="html", findings=html.HtmlFindingsWriter, lists_passes=False, draws_queues=True),
    ReportFormat(name="policyreport", findings=policyreport.PolicyReportWriter),
    ReportFormat(name="openreports", findings=policyreport.OpenReportsWriter),
)

LINE_FORMATS: Final = frozenset(each.name for each in FORMATS if each.is_by_line)
"""The formats in which the text of each finding depends on that finding alone."""

Made = TypeVar("Made")
Writers: TypeAlias = Mapping[str, Callable[[], Writer[Made]]]
"""The function that creates the writer of each format, by its name."""


def format_names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(each.name for each in FORMATS)


def writers_of_findings() -> Writers[Finding]:
    """Return the writers for an audit."""
    return {each.name: each.findings for each in FORMATS}


class RequiredContents(Struct, frozen=True):
    """What an audit has to find out for its outputs: passes as entries, and what jobs would take of queues."""

    passes: bool = True
    queues: bool = False


FINDINGS_AND_PASSES: Final = RequiredContents()


def contents_required_by_formats(names: Collection[str]) -> RequiredContents:
    """Return what reports of an audit in some formats have to say."""
    chosen = [each for each in FORMATS if each.name in names]
    return RequiredContents(any(each.lists_passes for each in chosen), any(each.draws_queues for each in chosen))


def writers_of_answers() -> Writers[Answer]:
    """Return the writers for a replay."""
    return {each.name: each.answers or _writer_through_findings(each) for each in FORMATS}


def writers_of_cases() -> Writers[CaseResult]:
    """Return the writers for a test."""
    return {each.name: each.cases or _writer_through_findings(each) for each in FORMATS}


def _writer_through_findings(each: ReportFormat) -> Callable[[], FindingsAdapter]:
    return lambda: FindingsAdapter(each.findings())
