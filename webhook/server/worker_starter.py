"""Starts workers that have the policies and the view of the cluster that the server has at this moment.

A fork server (fork_server.py) is used for as long as it holds what the server has: the version of the server's state
is compared for each worker. It is forked anew when anything has changed, when a change is under way, and after a
second, because the server learns (compiled texts of users), because each page that the server changes meanwhile takes
memory twice, and because whatever another thread held at the moment of the fork stays held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from webhook.server.fork_server import ForkServer, Work, Worker

LIVES_S: Final = 1.0
"""Seconds for which a fork server is used, so it costs the server a fork a second at most. After five seconds of an
attack 28 MB of its pages were its own, after one second 14 to 20."""


class WorkerStarter:
    """The fork server of this moment, forked anew whenever the state of the server has changed; for one event loop."""

    def __init__(self, work: Work, memory_bytes: int, version: Callable[[], object | None]) -> None:
        """Fork nothing yet.

        Args:
            work: what workers do.
            memory_bytes: what a worker may take beyond what it shares.
            version: returns what says by `==` whether the state of the server is the same, and None while it changes.
        """
        self._work = work
        self._memory_bytes = memory_bytes
        self._version = version
        self._current: ForkServer | None = None
        self._held_version: object | None = None

    def start_worker(self, deadline: float) -> Worker:
        """Start a worker that has the state of this moment.

        Raises:
            OSError: the system cannot start another process.
        """
        version = self._version()
        current = self._current
        if current is not None and not current.is_retired and version is not None and version == self._held_version:
            with suppress(OSError):  # something ended it, such as the kernel short of memory
                return current.start_worker(deadline)
        return self._renew(version).start_worker(deadline)

    def _renew(self, version: object | None) -> ForkServer:
        """Replace the fork server; the version was read before the fork, so that later changes are noticed."""
        if self._current is not None:
            self._current.retire()
            self._current = None
        made = ForkServer(self._work, self._memory_bytes)
        self._current, self._held_version = made, version
        asyncio.get_running_loop().call_later(LIVES_S, made.retire)
        return made
