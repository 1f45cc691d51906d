"""Evaluates questions in separate processes, with bounded time and memory.

The processes are children of server/child_process.py, as for heavy reviews of the server. They need `fork`, so the
playground works only on Linux and macOS.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from webhook.errors import CallError
from webhook.server import child_process

_TIMEOUT_S: Final = 10.0
"""Seconds until an evaluation is stopped: the default timeout of API servers for a webhook."""
_MEMORY_BYTES: Final = 256 << 20
_AT_ONCE: Final = 2
_WAITING: Final = 8
_MOST_ANSWER: Final = 32 << 20


@dataclass(slots=True)
class Workers:
    """Runs at most two children at a time. A few more questions wait. Further questions are refused, and can be sent
    again.
    """

    timeout_s: float = _TIMEOUT_S
    memory_bytes: int = _MEMORY_BYTES
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _waiting: int = 0

    async def run(self, work: Callable[[], dict[str, Any]]) -> bytes:
        """Run some work in a child process and return its answer as JSON.

        Raises:
            CallError: 503 if too many questions wait, 504 for work that took too long, 500 if there is no answer or the
                answer is too large.
        """
        if self._waiting >= _WAITING:
            raise CallError(503, "ServiceUnavailable", "too many evaluations wait: try again in a few seconds")
        self._waiting += 1
        try:
            async with self._turns:
                return await self._run_in_child(work)
        finally:
            self._waiting -= 1

    async def _run_in_child(self, work: Callable[[], dict[str, Any]]) -> bytes:
        child = child_process.start(lambda: _answer_as_json(work), monotonic() + self.timeout_s, self.memory_bytes)
        try:
            return await asyncio.wait_for(_read_answer(child), self.timeout_s)
        except TimeoutError:
            text = f"the evaluation took longer than {self.timeout_s:g} seconds and was stopped"
            raise CallError(504, "Timeout", text) from None
        finally:
            child.kill()
            child.channel.close()
            await _wait_for_killed_child(child)


def _answer_as_json(work: Callable[[], dict[str, Any]]) -> bytes:
    """Return the result of some work as JSON; an error if the memory is used up, or the input is nested too deeply."""
    try:
        return json.dumps(work()).encode()
    except MemoryError:
        return b'{"errors": [{"text": "", "line": 0, "message": "the evaluation needs more memory than it may use"}]}'
    except RecursionError:
        return b'{"errors": [{"text": "", "line": 0, "message": "the input is nested too deeply"}]}'


async def _read_answer(child: child_process.Child) -> bytes:
    head = _require_whole(await child_process.read_exactly(child.channel, child_process.HEAD.size))
    length, _ = child_process.HEAD.unpack(head)
    if length > _MOST_ANSWER:
        raise CallError(500, "InternalError", f"the answer has more than {_MOST_ANSWER >> 20} MiB")
    return _require_whole(await child_process.read_exactly(child.channel, length))


def _require_whole(received: bytes | None) -> bytes:
    if received is None:
        raise CallError(500, "InternalError", "the evaluation ended early, most likely for lack of memory")
    return received


async def _wait_for_killed_child(child: child_process.Child) -> None:
    """A killed child ends at once."""
    with suppress(asyncio.CancelledError):
        for _ in range(200):
            if child.try_reap():
                return
            await asyncio.sleep(0.01)
