"""Audits files: the parts of the input one after the other, in this process or in several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from webhook import assembly, submitted
from webhook.cluster.files import FilesCluster
from webhook.commands.audit_index import index_files
from webhook.commands.audit_part import PartAudit, PartResult, Stop
from webhook.commands.audit_totals import AuditTotals
from webhook.commands.job_demands import queue_trees
from webhook.commands.ordered_work import results_in_order
from webhook.document_stream import DocumentStream
from webhook.report.finding import Finding
from webhook.report.queued_jobs import Demands, QueueTrees
from webhook.report.rule import Rules
from webhook.settings.shared import Settings


class FilesAudit:
    """Audits the files of a stream, which were named on the command line."""

    def __init__(
        self,
        audit: PartAudit,
        assembled: assembly.ReviewAssembly,
        stream: DocumentStream,
        named: Sequence[str],
        *,
        settings: Settings,
        jobs: int,
    ) -> None:
        self._audit = audit
        self._assembled = assembled
        self._stream = stream
        self._named = named
        self._settings = settings
        self._jobs = jobs

    @property
    def rules(self) -> Rules:
        """Return the rules of the audit."""
        return self._audit.rules

    @property
    def size_bytes(self) -> int:
        """Return how many bytes there are to read."""
        return self._stream.size_bytes()

    def parts(self, stop: Stop) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        """Yield each part of the input with its findings, which have to be read before the next part."""
        for result, findings in self._parts(stop):
            yield result, findings
            self._assembled.files.tell(result.differing, result.recorded)

    def _parts(self, stop: Stop) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        parts = self._stream.parts()
        if self._jobs > 1:
            yield from (
                (result, result.findings) for result in results_in_order(self._audit.audited, parts, self._jobs)
            )
            return
        for part in parts:
            result = PartResult()
            yield result, self._audit.findings(part, result, stop)

    def queue_trees(self, demands: Demands) -> Sequence[QueueTrees]:
        """Return the queues of the files and of the context with what jobs would take."""
        return queue_trees(FilesCluster(self._assembled.files.objects()), demands)

    def finish(self, totals: AuditTotals, *, is_interrupted: bool) -> None:
        """Report what a person should know about the files."""
        totals.add_nothing(self._named, self._stream)
        notes = submitted.notes_on_context(self._assembled.files, self._settings)
        totals.finish(self._named, notes, is_interrupted=is_interrupted)


def assembled_with(settings: Settings, stream: DocumentStream, *, unbound: bool) -> assembly.ReviewAssembly:
    """Return the policies, and the objects of the files that policies look up.

    Raises:
        PolicyError: every problem of the policies.
        InputError: every problem of the workload tables or the context.
    """
    how, loaded = assembly.load_policies(settings, unbound=unbound)
    looked_up = index_files(stream, loaded.interests(), is_whole=settings.context_is_whole)
    return assembly.assembly_with_files(
        settings, how, loaded, objects=looked_up.objects, files=looked_up.files, is_complete=looked_up.is_complete
    )
