"""Runs one piece of work in a forked child of this process, with a deadline and a memory limit.

A child has exactly what the process has at the moment of the fork: policies, context and view of the cluster, without
a copy being sent. So a reload in between can never mix two sets in one answer, nothing has to be kept in step, and all
memory is given back when the child ends. A fork of a server that holds the shipped policies costs 1 to 3 ms.

Weighed and left: a pool of long-lived workers (each reload and each event of a watch would have to be sent to all of
them, and be the same in all when an answer is made), a pool forked anew at each reload (a live view changes every
second), subinterpreters (they share the process: one cannot be killed, and its memory not bounded), threads (neither,
and they hold the interpreter's lock).

A fork copies only the thread that calls it. What other threads hold at that moment stays held in the child: so the
child logs nothing, takes no lock of the server's, closes every inherited socket, and is killed at its deadline whatever
it waits for. Linux and macOS; knows nothing of reviews.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, process_time
from typing import Final, NoReturn

from webhook.server.operating_system import trim_heap

HEAD: Final = struct.Struct("!Qd")
"""The header before an answer: the length of the answer and the processor seconds that it took."""
_NICENESS: Final = 10
"""The nice value of a child: the loop gets nine tenths of a core that it shares with a child."""
_LINGER_S: Final = 1.0
"""Seconds after its deadline at which a child ends itself when its parent is gone."""
_OOM_SCORE: Final = "500"
"""The score that makes the kernel end children before the server when a node runs out of memory."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running child: its answer comes through `channel` (non-blocking), then end of file."""

    pid: int
    channel: socket.socket

    def kill(self) -> None:
        """Kill the process now; does nothing when it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def try_reap(self) -> bool:
        """Return whether the process has ended, after removing it from the process table."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True


def start(work: Callable[[], bytes], deadline: float, memory_bytes: int) -> Child:
    """Run `work` in a forked child, and return the child.

    Args:
        work: gives the answer. What it raises ends the child without one.
        deadline: a moment of the monotonic clock after which the child ends itself, should nobody do it before.
        memory_bytes: what the child may take beyond what it shares with this process; more is a MemoryError in it.

    Raises:
        OSError: the system cannot start another process.
    """
    ours, its = socket.socketpair()
    try:
        pid = _fork_without_warning()
    except OSError:
        ours.close()
        its.close()
        raise
    if pid == 0:
        _run_child(work, its, deadline, memory_bytes)
    its.close()
    ours.setblocking(False)
    return Child(pid, ours)


def _fork_without_warning() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of every fork of a process with threads; the module's text says what is done about them
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _run_child(  # pragma: no cover - in a child, whose lines nobody counts
    work: Callable[[], bytes], channel: socket.socket, deadline: float, memory_bytes: int
) -> NoReturn:
    """Run the child: prepare the process, send the answer of `work`, and exit without returning to the server's
    code.
    """
    code = 1
    try:
        sys.unraisablehook = _report_unraisable
        gc.freeze()  # or the first collection would copy every page that it walks
        _detach_from_parent(channel, deadline)
        trim_heap()  # what the server has free at this moment would stay with the child, even when the server trims it
        _limit_memory(memory_bytes)
        answer = work()
        channel.sendall(HEAD.pack(len(answer), process_time()))
        channel.sendall(answer)
        code = 0
    finally:
        os._exit(code)


def _report_unraisable(what: sys.UnraisableHookArgs) -> None:
    """Report an error that Python cannot raise, except MemoryError, which the answer reports."""
    if not issubclass(what.exc_type, MemoryError):
        sys.__unraisablehook__(what)


def _detach_from_parent(channel: socket.socket, deadline: float) -> None:
    """Reset signal handlers, close all inherited sockets but the child's own, set the alarm and lower the priority."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the server decides
    signal.setitimer(signal.ITIMER_REAL, max(0.0, deadline - monotonic()) + _LINGER_S)
    keep = channel.fileno()
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
    os.nice(_NICENESS)


def _limit_memory(memory_bytes: int) -> None:
    if sys.platform != "linux":
        return
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123
        score.write(_OOM_SCORE)
    with open("/proc/self/statm", encoding="ascii") as sizes:  # noqa: PTH123 - a child imports nothing more
        data = int(sizes.read().split()[5]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = data + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
