"""What the parts of an audit add up to, and what is said of them on stderr."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from webhook import charts, documents, terminal
from webhook.commands.audit_part import PartResult
from webhook.document_stream import DocumentStream
from webhook.errors import Problem
from webhook.report.finding import Result
from webhook.report.writer import SkippedDocument, Totals

_UNREADABLE = 2


class AuditTotals:
    """The sums of an audit while it runs; `entries` are the objects that were audited."""

    def __init__(self) -> None:
        self.entries = 0
        self._files = 0
        self._results: Counter[Result] = Counter()
        self._is_undecided = False
        self._skipped: list[SkippedDocument] = []
        self._unasked: Counter[str] = Counter()
        self._problems: list[Problem] = []
        self._noted: set[str] = set()
        self._templates: dict[str, charts.Template] = {}

    def add(self, part: PartResult) -> None:
        """Count a part, and say what is wrong with it."""
        self.entries += part.entries
        self._files += part.files
        self._results += part.results
        self._is_undecided |= part.is_undecided
        self._skipped += part.skipped
        self._unasked += part.unasked
        self._templates.update((each.file, each) for each in part.templates)
        self.add_problems(part.problems)
        self._say(f"warning: {warning}" for warning in part.warnings)
        self._say(f"note: {place}: {note}" for note, place in part.notes.items() if note not in self._noted)
        self._noted.update(part.notes)

    def add_problems(self, problems: Sequence[Problem]) -> None:
        """Count what cannot be read, and say it."""
        self._problems += problems
        self._say(f"error: {problem}" for problem in problems)

    def finish(self, named: Sequence[str], stream: DocumentStream, notes: Iterable[str]) -> None:
        """Say what is known when all parts were audited: that there was nothing, or nothing but templates."""
        if not self.entries and not self._skipped:
            read = documents.Inputs(
                documents=(),
                files=len(stream.sources),
                problems=tuple(self._problems),
                templates=tuple(self._templates.values()),
                excluded=stream.excluded,
            )
            self.add_problems(documents.nothing(named, read, "object"))
        if template := charts.summary(tuple(self._templates.values())):
            self._say([f"note: {template}"])
        self._say(f"note: {each}" for each in notes)

    def exit_code(self) -> int:
        """Something could not be read, something was found, could not be decided, or nothing of these."""
        if self._problems:
            return _UNREADABLE
        if self._results[Result.FAIL] or self._results[Result.WARN]:
            return 1
        return 3 if self._is_undecided else 0

    def totals(self, *, is_verbose: bool) -> Totals:
        """The sums as a report has them."""
        return Totals(
            entries=self.entries,
            results={result: self._results[result] for result in Result},
            files=self._files,
            skipped=tuple(self._skipped),
            unreadable=tuple(self._problems),
            templates=len(self._templates),
            unasked=dict(sorted(self._unasked.items())),
            is_verbose=is_verbose,
        )

    @staticmethod
    def _say(lines: Iterable[str]) -> None:
        sys.stderr.write(terminal.lines(lines))
