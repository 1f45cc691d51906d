"""The work of the processes of a Ray cluster on a file: the same as that of the local processes on its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from msgspec import Struct

from webhook.assembly import ReviewAssembly
from webhook.commands.audit_index import AuditIndex, Indexer
from webhook.commands.audit_part import PartAudit, PartOptions, PartResult
from webhook.commands.backtest_part import PartBacktester, PartCounts, Side
from webhook.commands.ray_cluster import PreparedFileWork, RayCluster
from webhook.input import log_lines, object_store
from webhook.input.document_stream import RereadableFiles, SourcePart, parts_of_file
from webhook.yamltext.input_files import InputFile


class AuditWork(Struct, frozen=True):
    """Audits a file."""

    assembled: ReviewAssembly
    options: PartOptions

    def prepare_worker(self) -> PreparedFileWork[PartResult]:
        """Return a function that audits the parts of a file."""
        audit = PartAudit(self.assembled, self.options)
        return lambda file: map(audit.audit_part, _parts_of_input_file(file))


class IndexWork(Struct, frozen=True):
    """Finds the objects of a file that policies look up."""

    indexer: Indexer

    def prepare_worker(self) -> PreparedFileWork[AuditIndex]:
        """Return a function that gives the index of a file."""
        return lambda file: iter([self.indexer.index_parts(_parts_of_input_file(file))])


class BacktestWork(Struct, frozen=True):
    """Counts the decisions of sets of policies about the requests of a log."""

    sets: Mapping[Side, ReviewAssembly]

    def prepare_worker(self) -> PreparedFileWork[PartCounts]:
        """Return a function that counts the parts of a log."""
        backtest = PartBacktester(self.sets)
        return lambda file: map(backtest.count_part, log_lines.read_log_parts(file, object_store.open_file))


def _parts_of_input_file(file: InputFile) -> Iterator[SourcePart]:
    with closing(RereadableFiles(object_store.open_file)) as files:
        yield from parts_of_file(files, file)


def count_logs_on_ray(
    cluster: RayCluster, sets: Mapping[Side, ReviewAssembly], files: Sequence[InputFile]
) -> Iterator[PartCounts]:
    """Yield the counts of the parts of logs, in their order."""
    return cluster.results_in_order(BacktestWork(sets), files)
