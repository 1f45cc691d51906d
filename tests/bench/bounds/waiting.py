"""Measures how long a thread waited for a processor and how long it ran, as Linux counts both.

/proc/PID/schedstat has the run time and the waiting time of the first thread of a process
(Documentation/scheduler/sched-stats.rst). In the server, this thread is the event loop. On a busy machine, the run time
until an answer is the best measure: it excludes all waiting, also that for Python's lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter


@dataclass
class Took:
    """One answer: the seconds until it arrived, and the waits for a processor within them.

    Attributes:
        seconds: wall clock time.
        client_s: wait of the client's own thread.
        server_s: wait of the server's event loop; 0 if the kernel does not report it.
        loop_s: run time of the server's event loop, for all clients, until the answer arrived; 0 if the kernel does not
            report it.
    """

    seconds: float = 0.0
    client_s: float = 0.0
    server_s: float = 0.0
    loop_s: float = 0.0

    @property
    def answer_s(self) -> float:
        """Return the time without the client's own wait for a processor, which is no fault of the server."""
        return max(0.0, self.seconds - self.client_s)

    @property
    def work_s(self) -> float:
        """Return the time without any wait for a processor."""
        return max(0.0, self.seconds - self.client_s - self.server_s)

    def less(self, seconds: float) -> Took:
        """Return the times as if the request had been sent this much later. The waits are assumed to be spread
        evenly.
        """
        share = (self.seconds - seconds) / self.seconds
        return Took(self.seconds - seconds, self.client_s * share, self.server_s * share, self.loop_s * share)


class Stopwatch:
    """Measures the times of answers of one server. Each thread of a client needs its own stopwatch."""

    def __init__(self, pid: int) -> None:
        self._own = _opened("/proc/thread-self/schedstat")
        self._server = _opened(f"/proc/{pid}/schedstat") if pid else None

    @contextmanager
    def timing(self) -> Iterator[Took]:
        """Measure a block. The values are filled in at the end of the block, also after an error."""
        took, (_, own), (ran, server), started = (
            Took(),
            _ran_and_waited_s(self._own),
            _ran_and_waited_s(self._server),
            perf_counter(),
        )
        try:
            yield took
        finally:
            took.seconds = perf_counter() - started
            took.client_s = _ran_and_waited_s(self._own)[1] - own
            now_ran, now_waited = _ran_and_waited_s(self._server)
            took.server_s, took.loop_s = now_waited - server, now_ran - ran


def _opened(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:  # the kernel has no CONFIG_SCHED_INFO, or is not Linux
        return None


def _ran_and_waited_s(file: int | None) -> tuple[float, float]:
    if file is None:
        return 0.0, 0.0
    try:
        ran, waited = os.pread(file, 100, 0).split()[:2]
    except (OSError, ValueError):  # the process has ended
        return 0.0, 0.0
    return int(ran) / 1e9, int(waited) / 1e9
