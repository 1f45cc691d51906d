"""What the processes of a Ray cluster do with a file: the same as the processes of this machine do with its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from webhook import log_lines, object_store
from webhook.assembly import ReviewAssembly
from webhook.commands.audit_index import AuditIndex, Indexer
from webhook.commands.audit_part import PartAudit, PartOptions, PartResult
from webhook.commands.backtest_part import BacktestPart, PartCounts, Side
from webhook.commands.ray_cluster import InputFile, RayCluster, Work
from webhook.document_stream import DocumentStream, SourcePart, parts_of_file
from webhook.file_parts import Files


@dataclass(frozen=True, slots=True)
class AuditWork:
    """Audits a file."""

    assembled: ReviewAssembly
    options: PartOptions

    def start(self) -> Work[PartResult]:
        """Return what audits the parts of a file."""
        audit = PartAudit(self.assembled, self.options)
        return lambda file: map(audit.audited, _parts(file))


@dataclass(frozen=True, slots=True)
class IndexWork:
    """Finds the objects of a file that policies look up."""

    indexer: Indexer

    def start(self) -> Work[AuditIndex]:
        """Return what gives the index of a file."""
        return lambda file: iter([self.indexer.indexed(_parts(file))])


@dataclass(frozen=True, slots=True)
class BacktestWork:
    """Counts what sets of policies would have done to the requests of a log."""

    sets: Mapping[Side, ReviewAssembly]

    def start(self) -> Work[PartCounts]:
        """Return what counts the parts of a log."""
        backtest = BacktestPart(self.sets)
        return lambda file: map(backtest.counted, log_lines.log_parts(file.name, object_store.open_file))


def _parts(file: InputFile) -> Iterator[SourcePart]:
    with closing(Files(object_store.open_file)) as files:
        yield from parts_of_file(files, file.name, is_named=file.is_named)


def input_files(stream: DocumentStream) -> Sequence[InputFile]:
    """Return the files of a stream."""
    return [InputFile(source, stream.is_named(source)) for source in stream.sources]


def count_logs_on_ray(
    cluster: RayCluster, sets: Mapping[Side, ReviewAssembly], files: Sequence[str]
) -> Iterator[PartCounts]:
    """Yield the counts of the parts of logs, in their order."""
    named = [InputFile(file, is_named=True) for file in files]
    return cluster.results_in_order(BacktestWork(sets), named)
