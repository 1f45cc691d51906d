"""Adds up the maximum memory of the server, for any requests.

The bytes of one unit, such as a connection, were measured over TLS. No setting bounds the first part: the process with
its policies. Pages of program files do not count, because the system frees them when memory is short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from webhook.errors import ConfigurationError
from webhook.live_policies.compile import COMPILED_FACTOR, MOST_BYTES_TOGETHER
from webhook.live_policies.objects import MOST_VIEW_BYTES
from webhook.server import operating_system
from webhook.server.connection_limit import MAX_HELD_BYTES
from webhook.server.request_body import MAX_WAITING
from webhook.settings.serving import ServerSettings

MAX_PROBE_CONNECTIONS: Final = 64
"""A kubelet opens a connection for each probe, and Prometheus keeps a connection."""
WARM_BYTES: Final = 14_000_000
"""Bytes that the first reviews and pages add to a process with its policies: compiled expressions, FastAPI."""
CONNECTION_BYTES: Final = 33_000
"""Bytes of an idle connection after an answer: 500 took 16.4 MB, two thirds in OpenSSL."""
HELD_FACTOR: Final = 1.5
"""Bytes of memory for each held byte of a connection, because building a body copies bytes."""
WAITING_BYTES: Final = 400_000
"""Bytes of a body that waits for its turn: encrypted and decrypted bytes, read before the server stops reading."""
COPIED_BYTES: Final = 3_000_000
"""About the bytes of shared pages that a worker changes. An ordinary review of 140 KB took 3.2 MB."""
FORK_SERVER_BYTES: Final = 20_000_000
"""Bytes of pages that the server changes while the fork server still has the old pages. Under attacks, half of the
measurements were at most 14 MB, and one in twenty more than 20 MB."""
USER_CACHE_BYTES: Final = 44_200_000
"""Bytes of all caches of users' texts (docs/caches.md)."""
TENANTS_BYTES: Final = 6_400_000
"""Bytes of the records that usage.py keeps for the scheduler and the workers' queue, at their limits. The records are
about 4,096 namespaces, users and addresses with names of 79 characters.
"""
EVENTS_BYTES: Final = 1000 * 3_000 + 4096 * 700
"""Bytes of the waiting Events with the longest names, and of the records of the last hour."""
SPANS_BYTES: Final = 2048 * 5_000
"""Bytes of the spans that wait for a collector: 2,000 spans with twenty rules each took 9 MB."""


class MemoryPartBound(NamedTuple):
    """The maximum number of bytes of one part, and the setting that lowers this number, or ""."""

    name: str
    bytes: int
    setting: str


@dataclass(frozen=True, slots=True)
class MemoryBounds:
    """The memory bounds of one server.

    Attributes:
        settings: the settings of the server.
        held_bytes: the process with its policies and its view of the cluster; 0 if the system does not report this
            size.
        view_bytes: the objects of the cluster in `held_bytes`, which have a separate bound.
    """

    settings: ServerSettings
    held_bytes: int
    view_bytes: int = 0

    def parts(self) -> Iterator[MemoryPartBound]:
        chosen = self.settings
        connections = (chosen.max_connections + MAX_PROBE_CONNECTIONS) * CONNECTION_BYTES
        held_bytes = max(0, self.held_bytes - self.view_bytes)
        yield MemoryPartBound("the process with its policies", held_bytes + WARM_BYTES, "")
        if chosen.is_live:
            yield MemoryPartBound("objects of the cluster that policies look up", chosen.view_memory, "--view-memory")
        yield MemoryPartBound("cached texts of users", USER_CACHE_BYTES, "")
        yield MemoryPartBound("records of namespaces, users and addresses", TENANTS_BYTES, "")
        if chosen.live_policies:
            yield MemoryPartBound(
                "policies that the cluster stores",
                MOST_BYTES_TOGETHER * COMPILED_FACTOR + MOST_VIEW_BYTES,
                "--live-policies",
            )
        if chosen.traces:
            yield MemoryPartBound("spans that wait for the collector", SPANS_BYTES, "--traces")
        if chosen.events:
            yield MemoryPartBound("Events that wait for the API server", EVENTS_BYTES, "--events")
        yield MemoryPartBound("connections", connections, "--max-connections")
        yield MemoryPartBound("data that connections hold", int(MAX_HELD_BYTES * HELD_FACTOR), "")
        yield MemoryPartBound("large bodies", chosen.max_inflight_body_bytes, "--max-inflight-body-bytes")
        yield MemoryPartBound("bodies that wait", MAX_WAITING * WAITING_BYTES, "")
        yield MemoryPartBound("the process that forks workers", FORK_SERVER_BYTES, "")
        yield MemoryPartBound(
            "workers", chosen.workers * (chosen.worker_memory + COPIED_BYTES), "--workers, --worker-memory"
        )

    @property
    def total(self) -> int:
        return sum(part.bytes for part in self.parts())

    def check(self, limit: int | None) -> None:
        """Refuse settings with parts that add up to more than `limit`; None accepts all.

        Raises:
            ConfigurationError: the message lists the memory of each part, and the setting that reduces it.
        """
        if limit is None or self.total <= limit:
            return
        parts = ", ".join(
            f"{part.name} {_mebibytes(part.bytes)}{f' ({part.setting})' if part.setting else ''}"
            for part in self.parts()
        )
        raise ConfigurationError(
            f"--memory: the server may need {_mebibytes(self.total)}, and the limit is {_mebibytes(limit)}: {parts}; "
            "lower one of these settings, or raise the memory limit of the container"
        )


def limit(settings: ServerSettings) -> int | None:
    """Return the bytes that the server may use: `--memory`, else the container's limit, else None."""
    return settings.memory if settings.memory is not None else operating_system.memory_limit()


def _mebibytes(size: int) -> str:
    return f"{-(-size // (1 << 20))}Mi"
