"""A process that forks the workers, and keeps the state that the server had at one moment.

A fork of the server stops the event loop for some milliseconds. Afterwards the loop copies each page that it changes
while a worker runs. Ten workers a second took a tenth of the loop, and small reviews took 10 ms instead of 1 ms. So the
server forks this process, and this process forks all workers, with pages that do not change. worker_lane.py replaces
this process when the state of the server changes, and after a second.

All messages of the server have one size: start a worker (with a socket attached), or kill a worker. The process and its
workers end with the server, or when the server closes the socket to the process. A job and its answer use the worker's
socket.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import struct
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final, NoReturn, TypeAlias

from webhook.server.child_process import (
    Child,
    answer_and_exit,
    detach_from_parent,
    fork_with_channel,
    fork_without_warning,
)

Work: TypeAlias = Callable[[socket.socket], bytes]
"""The work of a worker: reads the job from the socket and returns the answer. If the work raises an error, the worker
ends without an answer.
"""
_MESSAGE: Final = struct.Struct("!BQd")
"""The command, the number of the worker, its deadline (monotonic clock)."""
_START: Final = 1
_KILL: Final = 2
_LOOK_MS: Final = 50
"""Milliseconds between two checks for ended workers."""
_REAP_S: Final = 0.05
_REAP_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class Worker:
    """A running worker; `channel` (non-blocking) carries the job and the answer, then the end of the file."""

    number: int
    channel: socket.socket
    forked_by: ForkServer

    def end(self) -> None:
        """Kill the worker if it still runs; must be called once."""
        self.channel.close()
        self.forked_by.end_worker(self.number)


class ForkServer:
    """One process that forks workers, seen from the server's event loop.

    Attributes:
        is_retired: the process forks no more workers.
    """

    def __init__(self, work: Work, memory_bytes: int) -> None:
        """Fork the process.

        Raises:
            OSError: the system cannot start another process.
        """
        self._process = fork_with_channel(lambda control: _fork_workers_and_exit(control, work, memory_bytes))
        self._numbers = count(1)
        self._running: set[int] = set()
        self.is_retired = False
        self._end = weakref.finalize(self, self._process.channel.close)

    def start_worker(self, deadline: float) -> Worker:
        """Fork a worker that ends itself soon after `deadline` (monotonic clock).

        Raises:
            OSError: the process has ended, or no socket is available.
        """
        channel_of_server, channel_of_worker = socket.socketpair()
        number = next(self._numbers)
        try:
            socket.send_fds(
                self._process.channel, [_MESSAGE.pack(_START, number, deadline)], [channel_of_worker.fileno()]
            )
        except OSError:
            channel_of_server.close()
            raise
        finally:
            channel_of_worker.close()
        channel_of_server.setblocking(False)
        self._running.add(number)
        return Worker(number, channel_of_server, self)

    def end_worker(self, number: int) -> None:
        """Kill a worker. If the process is retired and has no other worker, end the process."""
        self._running.discard(number)
        with suppress(OSError):  # the process and its workers have ended
            self._process.channel.send(_MESSAGE.pack(_KILL, number, 0.0))
        self._end_if_unused()

    def retire(self) -> None:
        """Fork no more workers, and end the process when its last worker has ended."""
        self.is_retired = True
        self._end_if_unused()

    def _end_if_unused(self) -> None:
        if self.is_retired and not self._running and self._end.alive:
            self._end()
            _reap(self._process, _REAP_TRIES)


def _reap(process: Child, tries: int) -> None:
    # tried again until the process has ended; the last attempt kills it
    if not process.try_reap() and tries:
        if tries == 1:
            process.kill()
        asyncio.get_running_loop().call_later(_REAP_S, _reap, process, tries - 1)


# ---- the process itself


def _fork_workers_and_exit(  # pragma: no cover - in a child, where coverage is not measured
    control: socket.socket, work: Work, memory_bytes: int
) -> NoReturn:
    code = 1
    running: dict[int, int] = {}
    try:
        detach_from_parent(control)
        poller = select.poll()
        poller.register(control, select.POLLIN)
        while True:
            messages = poller.poll(_LOOK_MS if running else None)
            _forget_ended_workers(running)
            if messages and not _follow_message(control, running, work, memory_bytes):
                break
        code = 0
    finally:
        for pid in running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)  # otherwise process 1, in a container the server, must reap the worker
        os._exit(code)


def _forget_ended_workers(running: dict[int, int]) -> None:  # pragma: no cover - as above
    for number, pid in tuple(running.items()):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            del running[number]


def _follow_message(  # pragma: no cover - as above
    control: socket.socket, running: dict[int, int], work: Work, memory_bytes: int
) -> bool:
    message, sockets, _, _ = socket.recv_fds(control, _MESSAGE.size, 1)
    if len(message) != _MESSAGE.size:
        return False
    request, number, deadline = _MESSAGE.unpack(message)
    if request == _KILL:
        if number in running:
            os.kill(running[number], signal.SIGKILL)
        return True
    # if the fork fails, the server reads the end of the channel
    with socket.socket(fileno=sockets[0]) as channel, suppress(OSError):
        pid = fork_without_warning()
        if pid == 0:
            answer_and_exit(lambda: work(channel), channel, deadline, memory_bytes)
        running[number] = pid
    return True
