"""The table of output formats. A new format is a module with its writers and a row here.

A format needs only a writer for findings, because answers and case results can be converted to findings. A format that
shows more of answers or case results has separate writers for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

from webhook.report.copies import CopiedFolders, CopiesWriter, RenderedTexts
from webhook.report.counts import FINDINGS
from webhook.report.finding import Finding, Result
from webhook.report.results import Answer, CaseResult
from webhook.report.writer import FindingsAdapter, RowFilter, Writer


class ReportFormat(Struct, frozen=True, kw_only=True):
    """A format with the functions that create its writers.

    Attributes:
        findings, answers, cases: the writers of audit, replay and test.
        audience, content: the users and the content, as in docs/formats.md.
        rows: the results that always have entries in the report of an audit.
        shows_more: whether results that `--show` names also have entries.
        draws_queues: whether the report draws queues with the demands of jobs.
        names_revision: whether the report names the audited commit.
        is_by_line: whether the text of each finding depends on this finding alone.
        joins_copies: whether an audit of files reports copies of a mistake as one finding. Formats in which each
            finding has its own place do not join copies.
    """

    name: str
    audience: str
    content: str
    findings: Callable[[], Writer[Finding]]
    answers: Callable[[], Writer[Answer]] | None = None
    cases: Callable[[], Writer[CaseResult]] | None = None
    rows: frozenset[Result] = frozenset(Result)
    shows_more: bool = True
    draws_queues: bool = False
    names_revision: bool = False
    is_by_line: bool = False
    joins_copies: bool = False

    def rows_with(self, shown: Collection[Result]) -> frozenset[Result]:
        """Return the results with entries in a report. `shown` has the values of `--show`."""
        return self.rows.union(shown) if self.shows_more else self.rows


def _writer(module: str, name: str) -> Callable[[], Any]:
    """Return a function that creates a writer. Its module is imported only for chosen formats."""

    def create_writer() -> Any:
        return getattr(import_module(f"webhook.report.{module}"), name)()

    return create_writer


FORMATS: Final[tuple[ReportFormat, ...]] = (
    ReportFormat(
        name="text",
        audience="people: [docs/commands.md](commands.md#text)",
        content="findings below their object",
        findings=_writer("text_findings", "TextFindingsWriter"),
        answers=_writer("text_answers", "TextAnswersWriter"),
        cases=_writer("text_cases", "TextCasesWriter"),
        rows=FINDINGS,
        joins_copies=True,
    ),
    ReportFormat(
        name="json",
        audience="programs; [a JSON schema](report.schema.json)",
        content="one document: findings with `fix` and `ruleUrl`, then `notEvaluated`, what was not read, and totals",
        findings=_writer("json", "JsonFindingsWriter"),
        answers=_writer("json", "JsonAnswersWriter"),
        cases=_writer("json", "JsonCasesWriter"),
        rows=FINDINGS,
        joins_copies=True,
    ),
    ReportFormat(
        name="ndjson",
        audience="programs; [a JSON schema](report.schema.json)",
        content="as `json`, with one line for each entry",
        findings=_writer("ndjson", "NdjsonFindingsWriter"),
        answers=_writer("ndjson", "NdjsonWriter"),
        cases=_writer("ndjson", "NdjsonWriter"),
        rows=FINDINGS,
        is_by_line=True,
    ),
    ReportFormat(
        name="junit",
        audience="CI systems that show tests",
        content=(
            "a test case for each policy and object, and a suite of rules that were not evaluated; a warning is not a "
            "failure"
        ),
        findings=_writer("junit", "JunitFindingsWriter"),
        answers=_writer("junit", "JunitAnswersWriter"),
        cases=_writer("junit", "JunitCasesWriter"),
        rows=FINDINGS | {Result.PASS},
    ),
    ReportFormat(
        name="sarif",
        audience="code scanning, for example on GitHub",
        content="findings with rules, places and fingerprints; notifications for rules that were not evaluated",
        findings=_writer("sarif", "SarifWriter"),
        rows=FINDINGS,
        shows_more=False,
        joins_copies=True,
    ),
    ReportFormat(
        name="github",
        audience="annotations of GitHub Actions",
        content="a workflow command for each finding, and a notice of rules that were not evaluated",
        findings=_writer("github", "GithubFindingsWriter"),
        rows=FINDINGS,
        shows_more=False,
        is_by_line=True,
    ),
    ReportFormat(
        name="gitlab",
        audience="the code quality widget of GitLab",
        content="findings with fingerprints",
        findings=_writer("gitlab", "GitlabFindingsWriter"),
        rows=FINDINGS,
        shows_more=False,
    ),
    ReportFormat(
        name="markdown",
        audience="a comment on a change",
        content="each rule with its findings and their places; equal texts are printed once",
        findings=_writer("markdown", "MarkdownFindingsWriter"),
        rows=FINDINGS,
        joins_copies=True,
    ),
    ReportFormat(
        name="html",
        audience="people; one file that needs no network",
        content=(
            "findings by severity, with filters, search and charts; when and how the report was made; the queues of "
            "Kueue and Volcano, with the share that the jobs would use"
        ),
        findings=_writer("html", "HtmlFindingsWriter"),
        rows=FINDINGS,
        draws_queues=True,
        names_revision=True,
        joins_copies=True,
    ),
    ReportFormat(
        name="policyreport",
        audience="tools that show policy reports of a cluster",
        content="all results, one PolicyReport for each namespace",
        findings=_writer("policyreport", "PolicyReportWriter"),
    ),
    ReportFormat(
        name="openreports",
        audience="tools that show policy reports of a cluster",
        content="all results, one Report for each namespace",
        findings=_writer("policyreport", "OpenReportsWriter"),
    ),
)

LINE_FORMATS: Final = frozenset(each.name for each in FORMATS if each.is_by_line)
"""The formats with `is_by_line`."""

PublishedFormat: TypeAlias = Literal["policyreport", "openreports"]
"""The formats of reports that can be written to a cluster."""
Made = TypeVar("Made")
Writers: TypeAlias = Mapping[str, Callable[[], Writer[Made]]]
"""The function that creates the writer of each format, by its name."""


def format_names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(each.name for each in FORMATS)


def writers_of_findings(
    shown: Collection[Result] = (), rendered: RenderedTexts | None = None, copied: CopiedFolders | None = None
) -> Writers[Finding]:
    """Return the writers for an audit. `shown` are the results of `--show`.

    `rendered` says how folders of files were rendered; None for a cluster, because its copies are not joined. `copied`
    says which folders are copies of other projects.
    """
    given = frozenset(shown), rendered, copied or CopiedFolders()
    return {each.name: partial(_writer_of_rows, each, *given) for each in FORMATS}


def writers_of_statistics() -> Writers[Finding]:
    """Return the writers that count the findings of each rule."""
    return {
        "text": _writer("statistics", "TextStatisticsWriter"),
        "json": _writer("statistics", "JsonStatisticsWriter"),
    }


def _writer_of_rows(
    each: ReportFormat, shown: frozenset[Result], rendered: RenderedTexts | None, copied: CopiedFolders
) -> RowFilter:
    writer = each.findings()
    joined = CopiesWriter(writer, rendered, copied) if each.joins_copies and rendered is not None else writer
    return RowFilter(joined, each.rows_with(shown))


class RequiredContents(Struct, frozen=True):
    """What an audit must compute for its outputs: passes, the demands of jobs in queues, and the commit."""

    passes: bool = True
    queues: bool = False
    revision: bool = False


FINDINGS_AND_PASSES: Final = RequiredContents()


def contents_required_by_formats(names: Collection[str], shown: Collection[Result] = ()) -> RequiredContents:
    """Return the data that some formats need. `shown` are the results of `--show`."""
    chosen = [each for each in FORMATS if each.name in names]
    return RequiredContents(
        passes=any(Result.PASS in each.rows_with(shown) for each in chosen),
        queues=any(each.draws_queues for each in chosen),
        revision=any(each.names_revision for each in chosen),
    )


def writers_of_answers() -> Writers[Answer]:
    """Return the writers for a replay."""
    return {each.name: each.answers or _writer_through_findings(each) for each in FORMATS}


def writers_of_cases() -> Writers[CaseResult]:
    """Return the writers for a test."""
    return {each.name: each.cases or _writer_through_findings(each) for each in FORMATS}


def _writer_through_findings(each: ReportFormat) -> Callable[[], FindingsAdapter]:
    return lambda: FindingsAdapter(each.findings(), each.rows)
