"""Writes the report of an audit: the findings as they come, then the sums, until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from webhook.commands import output
from webhook.commands.audit_part import FindingLineEncoder, PartResult, StopSignal
from webhook.commands.audit_totals import AuditTotals
from webhook.commands.progress import EXIT_CODE, Interrupts, Progress
from webhook.report import baseline, formats
from webhook.report.copies import RenderedTexts
from webhook.report.filters import Filters
from webhook.report.finding import Finding, Result
from webhook.report.queued_jobs import Demands, QueueTrees
from webhook.report.rule import Rules
from webhook.report.writer import RunDescription, Writer

if TYPE_CHECKING:
    from webhook.commands.publishing import ReportPublisher


class AuditSource(Protocol):
    """The source of an audit: files, or a cluster. `size_bytes` is 0 if the size is not known."""

    @property
    def rules(self) -> Rules:
        """Return the rules of the audit."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return how many bytes there are to read."""
        ...

    def parts_with_findings(self, stop: StopSignal) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        """Yield each part with its findings, which have to be read before the next part."""
        ...

    def queue_trees(self, demands: Demands) -> Sequence[QueueTrees]:
        """Return the queues of the cluster with the demands of the jobs; read once, at the end."""
        ...

    def finish(self, totals: AuditTotals, *, is_interrupted: bool) -> None:
        """Report what is known after the last part."""
        ...


class AuditReport:
    """The chosen outputs, and the baseline to write."""

    def __init__(
        self,
        chosen: Sequence[str] | None,
        write_baseline: Path | None,
        shown: frozenset[Result] = frozenset(),
        *,
        rendered: RenderedTexts | None,
        is_verbose: bool,
        statistics: bool = False,
    ) -> None:
        """Args: the outputs; the baseline to write; results that get rows, too; how folders were rendered, None for
        the objects of a cluster; whether all is named; whether rules are counted in place of the findings.
        """
        self._shown = shown
        self._writers: Mapping[str, Callable[[], Writer[Finding]]] = (
            formats.writers_of_statistics() if statistics else formats.writers_of_findings(shown, rendered)
        )
        self._outputs = output.parse_outputs(chosen, self._writers)
        self._writes_baseline = write_baseline is not None
        self._is_verbose = is_verbose
        if write_baseline is not None:
            self._writers = {**self._writers, "baseline": baseline.BaselineWriter}
            self._outputs = (*self._outputs, output.Output("baseline", str(write_baseline)))

    @property
    def required_contents(self) -> formats.RequiredContents:
        """Return what the outputs have to say."""
        return formats.contents_required_by_formats({each.format for each in self._outputs}, self._shown)

    def encoder(self, filters: Filters) -> FindingLineEncoder | None:
        """Return what writes the findings in the processes that find them; None if an output or a baseline needs
        to see them one after the other.
        """
        names = {each.format for each in self._outputs}
        is_possible = names <= formats.LINE_FORMATS and not filters.baseline
        return FindingLineEncoder(tuple(sorted(names)), filters, self._shown) if is_possible else None

    def audit_and_report(
        self,
        audited: AuditSource,
        totals: AuditTotals,
        about: RunDescription,
        publisher: ReportPublisher | None = None,
    ) -> int:
        """Audit, report, publish, and return the exit code; `about` is how the report is made."""
        waits = sys.stdout.isatty() and sys.stderr.isatty()  # so that the bar and the report do not mix
        told = output.Report(self._outputs, self._writers, audited.rules, waits=waits)
        with Interrupts() as interrupts, told as report:
            with Progress(audited.size_bytes, "objects") as bar:
                for result, findings in audited.parts_with_findings(interrupts):
                    for finding in totals.filter_and_count_findings(findings):
                        report.write_entry(finding)
                        if publisher is not None:
                            publisher.add_finding(finding)
                    report.add_texts(result.texts)
                    totals.add_part(result)
                    bar.advance(result.size_bytes, result.entries)
                    if interrupts.is_set:
                        break
            audited.finish(totals, is_interrupted=interrupts.is_set)
            if publisher is not None:
                totals.add_problems(publisher.finish_and_remove_stale_reports(is_interrupted=interrupts.is_set))
                sys.stderr.write(f"note: {publisher.summary}\n")
            if interrupts.is_set:
                sys.stderr.write(f"error: interrupted after {totals.entries} objects; the report has these alone\n")
            queues = audited.queue_trees(totals.demands) if self.required_contents.queues else ()
            report.end(totals.totals(is_verbose=self._is_verbose, queues=queues, run=about))
        code = totals.exit_code()
        if interrupts.is_set:
            return EXIT_CODE
        return 0 if self._writes_baseline and code in (1, 3) else code
