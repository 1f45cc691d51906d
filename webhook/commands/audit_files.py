"""Audits the parts of files in order, in this process or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from webhook import assembly
from webhook.admission import fixtures
from webhook.assembly import ReviewAssembly
from webhook.cluster.files import FilesCluster
from webhook.commands.audit_index import AuditIndex, Indexer, indexer_of
from webhook.commands.audit_part import PartAudit, PartResult
from webhook.commands.audit_totals import AuditTotals
from webhook.commands.progress import Interrupts
from webhook.input.document_stream import DocumentStream
from webhook.input.documents import IGNORE_FILE
from webhook.report.finding import Finding
from webhook.report.queued_jobs import Demands, QueueTrees
from webhook.report.rule import Rules
from webhook.settings.shared import Settings
from webhook.text.wording import counted

Index: TypeAlias = Callable[[Indexer], AuditIndex]
"""Runs an indexer on all files."""
Results: TypeAlias = Callable[[Interrupts], Iterable[tuple[PartResult, Iterable[Finding]]]]
"""Audits all parts of the files. The findings of a part must be read before the next part."""


def create_process_auditor(audit: PartAudit, stream: DocumentStream, jobs: int) -> Results:
    """Return a function that audits files in `jobs` processes of this machine."""

    def in_this_process(stop: Interrupts) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        for part in stream.parts():
            result = PartResult()
            yield result, audit.findings(part, result, stop)

    def in_several(_stop: Interrupts) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        from webhook.commands.ordered_work import results_in_order

        return ((result, result.findings) for result in results_in_order(audit.audit_part, stream.parts(), jobs))

    return in_several if jobs > 1 else in_this_process


class FilesAudit:
    """Audits the files of a stream."""

    def __init__(
        self,
        audit: PartAudit,
        assembled: ReviewAssembly,
        stream: DocumentStream,
        named: Sequence[str],
        *,
        settings: Settings,
        results: Results,
    ) -> None:
        self._audit = audit
        self._assembled = assembled
        self._stream = stream
        self._named = named
        self._settings = settings
        self._results = results

    @property
    def rules(self) -> Rules:
        return self._audit.rules

    @property
    def size_bytes(self) -> int:
        return self._stream.size_bytes()

    def parts_with_findings(self, stop: Interrupts) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        """Yield each part with its findings. The caller must read the findings before the next part."""
        for result, findings in self._results(stop):
            yield result, findings
            self._assembled.files.add_differences(result.differing, result.recorded)

    def queue_trees(self, demands: Demands) -> Sequence[QueueTrees]:
        """Return the queues of the files and of the context with the demands of jobs."""
        from webhook.commands.job_demands import queue_trees

        return queue_trees(FilesCluster(self._assembled.files.objects()), demands)

    def finish(self, totals: AuditTotals, *, is_interrupted: bool) -> None:
        if not is_interrupted:
            totals.report_lack_of_objects(self._named, _reason_for_no_document(self._stream))
            stream = self._stream
            totals.add_files_not_read(
                (*stream.not_read, *stream.hidden_manifests(), *stream.unread_folders_with_manifests())
            )
        totals.add_ignored_files(self._stream.ignored)
        totals.counts.explain_missing_objects(self._assembled.files.files_with_object)
        notes = fixtures.notes_on_context(self._assembled.files, self._settings)
        totals.finish(notes, is_interrupted=is_interrupted)


def _reason_for_no_document(stream: DocumentStream) -> str:
    if stream.sources:
        return f"{counted(len(stream.sources), 'file has', 'files have')} no document"
    if stream.excluded:
        return f"--include, --exclude or {IGNORE_FILE} leaves out every file"
    return "there is no YAML, JSON or NDJSON file"


def assemble_policies_and_files(settings: Settings, stream: DocumentStream, index: Index) -> ReviewAssembly:
    """Return the policies, and the objects of the files that policies look up. `index` finds these objects.

    Raises:
        PolicyError: every problem of the policies.
        InputError: every problem of the workload tables or the context.
    """
    sources = assembly.read_policy_sources(settings)
    loaded = sources.compile()
    looked_up = index(indexer_of(loaded.kinds_looked_up(), is_whole=settings.context_is_whole))
    return assembly.assembly_with_files(
        settings,
        sources,
        loaded,
        objects=looked_up.objects,
        files=looked_up.files,
        patches=stream.patches,
        is_complete=looked_up.is_complete and not stream.problems and not stream.not_read,
    )
