"""Runs coroutines in the background, and starts a coroutine again after it fails.

asyncio does not report a failed task: if the watch of policy files ended, the server would stay ready and never serve
changed policies. The log has the type and place of a failure, without its text, which may quote an object.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from webhook.errors import describe_fault
from webhook.logs.structured import Log
from webhook.server.counters import Counters

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Creates the coroutine of one attempt."""

BACKOFF_S: Final = (1.0, 30.0)
"""The first and the longest wait before a new attempt; the wait doubles. A lasting fault costs two lines a minute."""
REMEMBERED_S: Final = 600.0
"""How long a failure is reported; a task without a failure in this time is healthy."""


@dataclass(slots=True)
class _Failures:
    fault: str
    at: float
    restarts: int = 0


@dataclass(slots=True)
class Supervisor:
    """Runs the background tasks of one server and restarts them after failures.

    Use an instance on one event loop only.
    """

    counters: Counters
    log: Log
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    _failed: dict[str, _Failures] = field(default_factory=dict)

    def restart_after_failures(self, name: str, work: Work) -> Work:
        """Return a coroutine function that restarts `work` after each failure until it ends or is cancelled."""

        async def supervised() -> None:
            wait_s, longest_s = BACKOFF_S
            while True:
                started = self.clock()
                try:
                    await work()
                except Exception as error:  # noqa: BLE001 - any failure must be logged
                    self._record_failure(name, error)
                else:
                    return
                if self.clock() - started > longest_s:
                    wait_s = BACKOFF_S[0]
                await self.sleep(wait_s)
                wait_s = min(2 * wait_s, longest_s)
                self._failed[name].restarts += 1

        return supervised

    def describe_recent_failures(self) -> str:
        """Return which tasks failed in the last ten minutes and why; "" if none failed."""
        oldest = self.clock() - REMEMBERED_S
        return "; ".join(
            f"{name}: {failed.fault}, restarted {_number_of_times(failed.restarts)}"
            for name, failed in self._failed.items()
            if failed.at >= oldest
        )

    def _record_failure(self, name: str, error: Exception) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} at {PurePath(last.filename).name}:{last.lineno} in {last.name}"
        self._failed.setdefault(name, _Failures(fault, 0.0))
        self._failed[name].fault, self._failed[name].at = fault, self.clock()
        self.counters.background[name,] += 1
        self.log.error("background task failed", task=name, **describe_fault(error))


def _number_of_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
