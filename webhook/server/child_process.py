"""Runs one piece of work in a forked child of this process, with a deadline and a memory limit.

A child has the policies, the context and the view of the cluster that this process had at the fork. So a reload never
mixes two sets of policies in one answer, and all memory is returned when the child ends. A separate process forks the
server's workers (fork_server.py).

Alternatives: a reload or a watch event would have to reach all long-lived workers at the same moment. A subinterpreter
or a thread cannot be killed, and cannot have a memory limit.

A fork copies only the thread that calls it, and locks of other threads stay locked in the child. So the child logs
nothing, takes no lock of the server, closes every inherited socket, and is killed at its deadline. This module works on
Linux and macOS.
"""

from __future__ import annotations

import asyncio
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
"""The header of an answer: its length, and its processor seconds."""
_NICENESS: Final = 10
"""The least nice value of a child. On a core that the server and the child share, the server gets nine tenths."""
_LINGER_S: Final = 1.0
"""A child without a parent ends itself this many seconds after its deadline."""
_OOM_SCORE: Final = "500"
"""The kernel ends children before the server when a node runs out of memory."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running child; `channel` (non-blocking) has its answer, then the end of the file."""

    pid: int
    channel: socket.socket

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def try_reap(self) -> bool:
        """Remove an ended process from the process table, and return whether it has ended."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True


def start(work: Callable[[], bytes], deadline: float, memory_bytes: int) -> Child:
    """Run `work` in a forked child.

    Args:
        work: returns the answer. If `work` raises an error, the child ends without an answer.
        deadline: when the parent should have killed the child (monotonic clock). A child that still runs ends itself a
            second later.
        memory_bytes: the memory of the child beyond the memory shared with this process; more raises MemoryError there.

    Raises:
        OSError: the system cannot start another process.
    """
    return fork_with_channel(lambda channel: answer_and_exit(work, channel, deadline, memory_bytes))


def fork_with_channel(run: Callable[[socket.socket], NoReturn]) -> Child:
    """Fork this process. The child calls `run` with one end of a channel, and the returned Child has the other end.

    Raises:
        OSError: the system cannot start another process.
    """
    channel_of_parent, channel_of_child = socket.socketpair()
    with channel_of_child:
        try:
            pid = fork_without_warning()
        except OSError:
            channel_of_parent.close()
            raise
        if pid == 0:
            run(channel_of_child)
    channel_of_parent.setblocking(False)
    return Child(pid, channel_of_parent)


async def read_exactly(channel: socket.socket, count: int) -> bytes | None:
    """Read `count` bytes from the channel of a child; None if the channel ends earlier."""
    loop, received = asyncio.get_running_loop(), bytearray()
    while len(received) < count:
        try:
            chunk = await loop.sock_recv(channel, min(count - len(received), 1 << 20))
        except ConnectionResetError:
            return None
        if not chunk:
            return None
        received += chunk
    return bytes(received)


def fork_without_warning() -> int:
    """Fork this process; return the process id of the child, and 0 in the child.

    Raises:
        OSError: the system cannot start another process.
    """
    with warnings.catch_warnings():
        # Python 3.12 warns of every fork of a process with threads; see the module's docstring
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def answer_and_exit(  # pragma: no cover - in a child, where coverage is not measured
    work: Callable[[], bytes], channel: socket.socket, deadline: float, memory_bytes: int
) -> NoReturn:
    """Send the answer of `work` and exit, in a process that was just forked; the arguments are those of `start`."""
    code = 1
    try:
        detach_from_parent(channel)
        signal.setitimer(signal.ITIMER_REAL, max(0.0, deadline - monotonic()) + _LINGER_S)
        _limit_memory(memory_bytes)
        answer = work()
        channel.sendall(HEAD.pack(len(answer), process_time()))
        channel.sendall(answer)
        code = 0
    finally:
        os._exit(code)


def detach_from_parent(channel: socket.socket) -> None:
    """Make a process that was just forked independent of its parent.

    Only `channel` stays open. Signals get their defaults, and the priority is lower than the server's.
    """
    sys.unraisablehook = _report_unraisable
    gc.freeze()  # otherwise the first collection would copy every page that it walks
    _reset_signals()
    keep = channel.fileno()
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
    os.nice(max(0, _NICENESS - os.nice(0)))
    trim_heap()  # otherwise the child would keep memory that is free in the server, even after the server trims it


def _report_unraisable(raised: sys.UnraisableHookArgs) -> None:
    # the answer reports a MemoryError
    if not issubclass(raised.exc_type, MemoryError):
        sys.__unraisablehook__(raised)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    # Ctrl-C reaches all processes of the group, and the server ends its children
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _limit_memory(memory_bytes: int) -> None:
    if sys.platform != "linux":
        return
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123
        score.write(_OOM_SCORE)
    with open("/proc/self/statm", encoding="ascii") as sizes:  # noqa: PTH123 - a child imports nothing more
        data = int(sizes.read().split()[5]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = data + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
