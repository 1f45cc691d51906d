"""Runs work on many files on the machines of a Ray cluster, with Ray Data, and yields the results in order.

Ray starts workers, moves the results, and delays work while results wait. Every machine needs this release of claimgate
with the extra `ray`. Every machine reads files itself. A path must therefore exist on all machines, and an address of
an object store works everywhere.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from webhook import __version__
from webhook.assembly import ReviewAssembly
from webhook.commands.audit_index import AuditIndex, Indexer
from webhook.commands.audit_part import PartAudit, PartOptions, PartResult
from webhook.commands.backtest_part import PartBacktester, PartCounts, Side
from webhook.errors import ClaimgateError, ConfigurationError
from webhook.input import log_lines, object_store
from webhook.input.document_stream import RereadableFiles, SourcePart, parts_of_file
from webhook.yamltext.input_files import InputFile

LOCAL: Final = "local"
"""The address for a new Ray cluster on this machine."""
_STORE_BYTES: Final = 256 << 20
"""Bytes of memory for unread results, if Ray is started on this machine."""
_CONNECT_TIMEOUT_S: Final = 10.0
_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray sends no usage data
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # processes of Ray write to our stderr
}
_LOOPBACK_ONLY: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Makes Ray listen only on the loopback address, as on Windows and macOS (ray/_private/ray_constants.py)."""
_Result_co = TypeVar("_Result_co", covariant=True)
_Result = TypeVar("_Result")


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


class FileWork(Protocol[_Result_co]):
    """Work on files that is sent to other machines."""

    def prepare_worker(self) -> PreparedFileWork[_Result_co]:
        """Return the function that this process calls for each file."""
        ...


class PreparedFileWork(Protocol[_Result_co]):
    """The function that works on one file."""

    def __call__(self, file: InputFile) -> Iterator[_Result_co]:
        """Yield the results of a file."""
        ...


class RayCluster:
    """A connected Ray cluster.

    Args:
        workers: the number of worker processes; None means one for each processor of the cluster.
    """

    def __init__(self, workers: int | None) -> None:
        self._workers = workers

    def results_in_order(self, work: FileWork[_Result], files: Sequence[InputFile]) -> Iterator[_Result]:
        """Yield the results of each file, in the order of the files.

        Raises:
            ConfigurationError: the cluster, or one of its machines, cannot do the work.
        """
        import ray.data

        if not files:
            return
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        workers = min(self._workers or int(ray.cluster_resources().get("CPU", 1)), len(files))
        with _ray_errors_as_usage_errors():
            rows = (
                ray.data.from_items([{"file": pickle.dumps(each)} for each in files], override_num_blocks=len(files))
                .map_batches(
                    _Worker,
                    fn_constructor_args=(__version__, pickle.dumps(work)),
                    compute=ray.data.ActorPoolStrategy(size=max(workers, 1)),
                    batch_size=1,
                    batch_format="numpy",
                    num_cpus=1,
                )
                .iter_rows()
            )
            for row in rows:
                yield pickle.loads(row["result"])  # noqa: S301 - our own process wrote it, in a cluster that is trusted


class _Worker(Generic[_Result]):
    """A worker process of the cluster, which works on one file after another."""

    def __init__(self, version: str, work: bytes) -> None:
        if version != __version__:
            message = f"a machine of the cluster has claimgate {__version__}, and this machine has {version}"
            raise ConfigurationError(f"--ray: {message}: install the same release on all machines")
        self._work: PreparedFileWork[_Result] = pickle.loads(work).prepare_worker()  # noqa: S301 - sent by the command

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, list[bytes]]]:
        for file in batch["file"]:
            for result in self._work(pickle.loads(file)):  # noqa: S301 - as above
                yield {"result": [pickle.dumps(result, pickle.HIGHEST_PROTOCOL)]}


@contextmanager
def connect_to_ray(address: str, workers: int | None) -> Iterator[RayCluster]:
    """Connect to a Ray cluster, or start a cluster on this machine, until the block ends.

    `address` is `local`, `auto` for the cluster of this machine, HOST:PORT, or ray://HOST:PORT. `workers` is the number
    of worker processes; None means one for each processor.

    Raises:
        ConfigurationError: no Ray runs at the address.
        ModuleNotFoundError: the extra is not installed.
    """
    is_local = address == LOCAL
    if not is_local:
        _require_reachable_address(address)
    for name, value in {**_ENVIRONMENT, **(_LOOPBACK_ONLY if is_local else {})}.items():
        os.environ.setdefault(name, value)
    import fsspec as _  # noqa: F401 - so that a missing extra is reported before anything starts
    import ray

    started = {"num_cpus": workers or os.cpu_count(), "object_store_memory": _STORE_BYTES, "include_dashboard": False}
    logging.disable()  # Ray Data configures its loggers repeatedly; claimgate itself logs nothing here
    try:
        with _without_native_stderr():
            ray.init(address=address, log_to_driver=False, configure_logging=False, **(started if is_local else {}))
        yield RayCluster(workers)
    except (ConnectionError, RuntimeError, ValueError) as error:
        if ray.is_initialized():
            raise
        raise ConfigurationError(f"--ray: no Ray at `{address}`: {_first_line(error)}") from None
    finally:
        ray.shutdown()
        logging.disable(logging.NOTSET)


@contextmanager
def _without_native_stderr() -> Iterator[None]:
    """Discard messages that Ray's libraries write to stderr while they start."""
    sys.stderr.flush()
    copy_of_stderr = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(copy_of_stderr, 2)
        os.close(copy_of_stderr)


def _require_reachable_address(address: str) -> None:
    """Check that an address of Ray answers. The check takes seconds; Ray would try for a minute.

    Raises:
        ConfigurationError: the text is not an address, or no program listens there.
    """
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        message = f"expected `{LOCAL}`, `auto`, HOST:PORT or ray://HOST:PORT"
        raise ConfigurationError(f"--ray: `{address}` is not an address of Ray; {message}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ConfigurationError(f"--ray: `{address}` cannot be reached: {reason}") from None


@contextmanager
def _ray_errors_as_usage_errors() -> Iterator[None]:
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ClaimgateError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        if cause is not None:
            raise cause from None
        if "No module named" in str(error):
            message = (
                f"a machine of the cluster lacks a package: install 'claimgate[ray]=={__version__}' on all machines"
            )
            raise ConfigurationError(f"--ray: {message}") from None
        raise ConfigurationError(f"--ray: the cluster could not do the work: {_last_line(error)}") from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or ["unknown cause"]
    return lines[0][:1].lower() + lines[0][1:].rstrip(".")


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["unknown cause"])[-1]
