"""Adds up the parts of an audit, and reports the sums on stderr."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from webhook.commands.audit_part import PartResult
from webhook.commands.report_options import exit_code_of_results
from webhook.errors import InputProblem
from webhook.manifests.configuration import NO_FILE, ConfigurationFile, FailOn
from webhook.manifests.leave_alone import current_day
from webhook.report.counts import ObjectCounts
from webhook.report.filters import ALL, Filters, FindingFilter
from webhook.report.finding import Finding, Result
from webhook.report.queued_jobs import Demand, QueueKey, QueueTrees
from webhook.report.writer import (
    LeftOut,
    RunDescription,
    SkippedDocument,
    Totals,
    left_out_by_configuration,
    skipped_in_words,
)
from webhook.text import terminal
from webhook.text.wording import counted
from webhook.yamltext import templates
from webhook.yamltext.input_files import FoundFile
from webhook.yamltext.yamlfile import shown

_UNREADABLE = 2


class AuditTotals:
    """The sums of an audit while it runs. `entries` counts audited objects; `counts` has the results of reported
    findings; `demands` are by queue.
    """

    def __init__(
        self,
        filters: Filters = ALL,
        configuration: ConfigurationFile = NO_FILE,
        *,
        fail_on: frozenset[FailOn],
        requires_input: bool = False,
        is_whole: bool = False,
    ) -> None:
        """`fail_on` are the results for exit code 1 or 3. `requires_input` requires at least one object.
        `is_whole` says that the files have all objects of the cluster.
        """
        self._is_whole = is_whole
        self.entries = 0
        self.demands: dict[QueueKey, Demand] = {}
        self._unchanged = 0
        self._not_compared: dict[str, str] = {}
        self._baseline = filters.baseline
        self._configuration = configuration
        self._fail_on = fail_on
        self._requires_input = requires_input
        self._filtering = FindingFilter(filters)
        self._exceptions: Counter[str] = Counter()
        self._params: dict[str, None] = {}
        self._ignored_files = 0
        self._ignored = 0
        self._hidden = 0
        self._files = 0
        self.counts = ObjectCounts()
        self._not_read: Sequence[FoundFile] = ()
        self._skipped: list[SkippedDocument] = []
        self._unasked: Counter[str] = Counter()
        self._pods_not_read: Counter[str] = Counter()
        self._problems: list[InputProblem] = []
        self._noted: set[str] = set()
        self._templates: dict[str, templates.ChartTemplate] = {}

    def filter_and_count_findings(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings that are reported, and count them. Call this in the order of the input."""
        for finding in filter(self._filtering.is_reported, findings):
            self.counts.add_finding(finding)
            yield finding

    def add_part(self, part: PartResult) -> None:
        """Count a part, and report its problems."""
        self.entries += part.entries
        self._unchanged += part.unchanged
        self._files += part.files
        self._exceptions += part.exceptions
        self._params.update(dict.fromkeys(part.params))
        self._ignored += part.ignored
        self._hidden += part.hidden
        self._skipped += part.skipped
        self._unasked += part.unasked
        self._pods_not_read += part.pods_not_read
        self.counts.add(part.counts)
        self._not_compared |= part.not_compared
        for key, demand in part.demands.items():
            self.demands.setdefault(key, Demand()).add(demand)
        self._templates.update((each.file, each) for each in part.templates)
        self.add_problems(part.problems)
        terminal.print_to_stderr(f"warning: {warning}" for warning in part.warnings)
        terminal.print_to_stderr(
            f"note: {place}: {note}" for note, place in part.notes.items() if note not in self._noted
        )
        self._noted.update(part.notes)

    def add_problems(self, problems: Sequence[InputProblem]) -> None:
        """Count and report problems of input that cannot be read."""
        self._problems += problems
        terminal.print_to_stderr(f"error: {problem}" for problem in problems)

    def add_ignored_files(self, count: int) -> None:
        """Count the files that `.claimgateignore` leaves out."""
        self._ignored_files += count

    def add_files_not_read(self, files: Sequence[FoundFile]) -> None:
        """Count and report files and folders that are not read. A file that is not read makes the audit undecided."""
        self._not_read = files
        has_unread_file = any(not each.is_folder for each in files)
        self.counts.is_open |= has_unread_file
        self.counts.is_undecided |= has_unread_file
        if files:
            some = counted(len(files), "file or folder is", "files or folders are")
            fix = ": name a folder that contains the file and the link" if "outside" in files[0].reason else ""
            terminal.print_to_stderr([f"note: {some} not read, first {files[0].file}: {files[0].reason}{fix}"])

    def report_lack_of_objects(self, named: Sequence[str], otherwise: str) -> None:
        """If no object was audited, report why, unless objects are unchanged or problems were reported.

        With --require-input, this is an error.

        `otherwise` is the reason if there are no templates and no other documents.
        """
        if self.entries or self._unchanged or self._problems:
            return
        reason = otherwise
        if self._templates:
            some = counted(len(self._templates), "file is a template", "files are templates")
            reason = f"{some}; audit what charts make with --render"
        elif self._skipped:
            reason = skipped_in_words(self._skipped)
        problem = InputProblem(message=f"no object was audited: {reason}", file=" ".join(map(shown, named)))
        if self._requires_input:
            self.add_problems([structs.replace(problem, message=f"--require-input: {problem.message}")])
        else:
            terminal.print_to_stderr([f"warning: {problem}"])

    def finish(self, notes: Iterable[str], *, is_interrupted: bool) -> None:
        """Report notes that are known only after the last part, such as stale entries of the baseline."""
        if self._unchanged:
            terminal.print_to_stderr([f"note: {counted(self._unchanged, 'object')} unchanged and not audited"])
        if self._not_compared:
            file, reason = next(iter(self._not_compared.items()))
            some = counted(len(self._not_compared), "file")
            their = "its" if len(self._not_compared) == 1 else "their"
            message = f"{some} could not be compared with the revision, so all {their} objects are audited"
            terminal.print_to_stderr([f"note: {message}; first {file}: {reason}"])
        if not self._unchanged and not is_interrupted:
            terminal.print_to_stderr(f"note: {each}" for each in self._stale_baseline_and_exceptions())
        failed = {each.file for each in self._problems}
        # a chart that failed is reported as a problem
        left = [each for each in self._templates.values() if each.chart not in failed]
        if template := templates.summarize_templates(left):
            terminal.print_to_stderr([f"note: {template}"])
        terminal.print_to_stderr(f"note: {each}" for each in notes)

    def exit_code(self) -> int:
        """Return the exit code: 2 for unreadable input, otherwise by the results and --fail-on."""
        denied, warned = self.counts.is_denied, self.counts.results[Result.WARN]
        if self._problems:
            if count := self.counts.with_findings:
                terminal.print_to_stderr([f"note: {counted(count, 'object')} with findings in what could be read"])
            return _UNREADABLE
        return exit_code_of_results(
            self._fail_on,
            denied=denied,
            warned=warned > 0,
            undecided=self.counts.is_undecided,
            has_open_rule=self.counts.is_open,
        )

    def _stale_baseline_and_exceptions(self) -> Iterator[str]:
        if gone := [about for known, about in self._baseline.items() if known not in self._filtering.known]:
            yield f"--baseline: {counted(len(gone), 'known finding')} gone, first {gone[0]}: write the file anew"
        for number, each in enumerate(self._configuration.value.exceptions):
            if each.expires >= current_day() and each.description not in self._exceptions:
                message = f"no finding needed this exception of {each.owner}"
                yield str(self._configuration.problem(("exceptions", number), message))

    def totals(self, *, is_verbose: bool, queues: Sequence[QueueTrees] = (), run: RunDescription) -> Totals:
        """Return the sums for the end of reports."""
        return Totals(
            entries=self.entries,
            counts=self.counts,
            files=self._files,
            skipped=tuple(self._skipped),
            unreadable=tuple(self._problems),
            templates=len(self._templates),
            not_read=len(self._not_read),
            unasked=dict(sorted(self._unasked.items())),
            pods_not_read=dict(sorted(self._pods_not_read.items())),
            is_verbose=is_verbose,
            is_whole=self._is_whole,
            configured=self._left_out(),
            queues=tuple(queues),
            run=run,
        )

    def _left_out(self) -> LeftOut:
        return left_out_by_configuration(
            self._configuration.value,
            self._exceptions,
            objects=self._ignored,
            files=self._ignored_files,
            unreported=self._filtering.hidden + self._hidden,
            params=tuple(self._params),
        )
