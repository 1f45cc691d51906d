"""Finds what holds the event loop: `python -m tests.bench.bounds.loop_recorder LOOP FILE serve …` serves and records.

FILE gets a line for each callback that used the processor for LONG_S or more: milliseconds of processor time and of the
clock, the owner, and the stack. A thread samples the stack while the callback runs. For each long round of the loop, a
line has the number and time of each kind of callback. A round is all callbacks between two polls of the sockets. Only
the wall clock includes time in which the loop's thread waited for a processor.

LOOP is `asyncio`, or `uvloop` as in production. uvloop does not report its callbacks, so a timer of one millisecond
marks the end of a round, and a long round has a sampled stack.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import clock_gettime, perf_counter, pthread_getcpuclockid, sleep, thread_time
from typing import IO, Any

LONG_S, LONG_ROUND_S = 0.010, 0.020
_LOOK_S, _BEAT_S = 0.003, 0.001
_FRAMES, _KINDS = 7, 5


class Recorder:
    beating: asyncio.Task[None] | None = None

    def __init__(self, lines: IO[str]) -> None:
        self._lines = lines
        self._begun = 0.0
        self._seen: deque[str] = deque(maxlen=1)
        self._main = threading.get_ident()
        self._kinds: dict[str, list[float]] = {}

    def install(self) -> None:
        """Measure the event loop of this process from now on. Child processes have no event loop."""
        inner = asyncio.Handle._run
        asyncio.Handle._run = lambda handle: self._timed(handle, inner)  # type: ignore[method-assign]
        around = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]
        asyncio.BaseEventLoop._run_once = lambda loop: self._round(loop, around)  # type: ignore[attr-defined]
        self.look_on()

    def _round(self, loop: asyncio.BaseEventLoop, around: Callable[[asyncio.BaseEventLoop], None]) -> None:
        self._kinds.clear()
        begun = thread_time()
        around(loop)
        if (used := thread_time() - begun) >= LONG_ROUND_S:
            most = sorted(self._kinds.items(), key=lambda kind: -sum(kind[1]))[:_KINDS]
            shown = ", ".join(f"{len(times)} x {kind} {sum(times) * 1000:.1f}" for kind, times in most)
            self._lines.write(f"{used * 1000:.1f} ms, a round: {shown}\n")

    async def beat(self) -> None:
        """Write a line if the time between two runs of a timer is long. The event loop runs the timer once a round."""
        begun = thread_time()
        while True:
            self._seen.clear()
            self._begun = begun = thread_time()
            await asyncio.sleep(_BEAT_S)
            if (used := thread_time() - begun) >= LONG_S:
                self._lines.write(
                    f"{used * 1000:.1f} ms, rounds of uvloop: at {self._seen[0] if self._seen else '?'}\n"
                )

    def look_on(self) -> None:
        """Start a thread that records the stack of the event loop during long callbacks."""
        threading.Thread(target=self._look, daemon=True).start()

    def _timed(self, handle: asyncio.Handle, inner: Callable[[asyncio.Handle], None]) -> None:
        about, started = handle._callback, perf_counter()  # type: ignore[attr-defined]
        self._seen.clear()
        self._begun = begun = thread_time()
        try:
            inner(handle)
        finally:
            used, self._begun = thread_time() - begun, 0.0
            self._kinds.setdefault(_kind(about), []).append(used)
            if used >= LONG_S:
                clock_ms, at = (perf_counter() - started) * 1000, self._seen[0] if self._seen else "?"
                self._lines.write(f"{used * 1000:.1f} ms, {clock_ms:.1f} by the clock: {_whose(about)} at {at}\n")

    def _look(self) -> None:
        clock = pthread_getcpuclockid(self._main)
        while True:
            sleep(_LOOK_S)
            begun = self._begun
            if begun and clock_gettime(clock) - begun > LONG_S / 2 and not self._seen:
                frame = sys._current_frames().get(self._main)
                stack = [one for one in traceback.extract_stack(frame) if "importlib" not in one.filename][-_FRAMES:]
                self._seen.append(" > ".join(f"{Path(one.filename).stem}.{one.name}:{one.lineno}" for one in stack))


def _whose(callback: object) -> str:
    owner = getattr(callback, "__self__", None)
    return f"task {owner.get_coro()!r}" if isinstance(owner, asyncio.Task) else repr(callback)[:120]


def _kind(callback: object) -> str:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"task {getattr(owner.get_coro(), '__qualname__', '?')}"
    return getattr(callback, "__qualname__", type(callback).__name__)


def _record_uvloop(recorder: Recorder) -> None:
    from webhook.server.listener import Listener

    inner = Listener.startup

    async def startup(listener: Listener, sockets: list[Any] | None = None) -> None:
        recorder.look_on()
        recorder.beating = asyncio.create_task(recorder.beat())
        await inner(listener, sockets)

    Listener.startup = startup  # type: ignore[method-assign]


def main() -> None:
    loop, file = sys.argv.pop(1), sys.argv.pop(1)
    recorder = Recorder(Path(file).open("a", buffering=1))  # noqa: SIM115 - as long as the process
    if loop == "uvloop":
        _record_uvloop(recorder)
    else:
        sys.modules["uvloop"] = None  # type: ignore[assignment]  # uvicorn takes asyncio's loop then
        recorder.install()
    from webhook.__main__ import main as claimgate

    claimgate()


if __name__ == "__main__":
    main()
