"""What holds the event loop: `python -m tests.bench.bounds.loop_recorder FILE serve …` serves, and writes each long callback.

A line for each callback of the loop that took the processor for LONG_S or more: milliseconds of the processor's time, of
the clock, whose callback it was, and where it was when somebody looked. Likewise for each round of the loop, all
callbacks between two looks at the sockets: how many of which kind took how long. Time in which the loop's thread waited
for a processor is the clock's alone. It serves on asyncio's own loop, whose callbacks can be timed; uvloop runs the
same ones.
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
from typing import IO

LONG_S, LONG_ROUND_S = 0.010, 0.020
_LOOK_S = 0.003
_FRAMES, _KINDS = 7, 5


class Recorder:
    """Times every callback of the loop of this thread."""

    def __init__(self, lines: IO[str]) -> None:
        self._lines = lines
        self._begun = 0.0
        self._seen: deque[str] = deque(maxlen=1)
        self._main = threading.get_ident()
        self._kinds: dict[str, list[float]] = {}

    def install(self) -> None:
        """From now on, in this process; its children run no loop."""
        inner = asyncio.Handle._run
        asyncio.Handle._run = lambda handle: self._timed(handle, inner)  # type: ignore[method-assign]
        around = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]
        asyncio.BaseEventLoop._run_once = lambda loop: self._round(loop, around)  # type: ignore[attr-defined]
        threading.Thread(target=self._look, daemon=True).start()

    def _round(self, loop: asyncio.BaseEventLoop, around: Callable[[asyncio.BaseEventLoop], None]) -> None:
        self._kinds.clear()
        begun = thread_time()
        around(loop)
        if (used := thread_time() - begun) >= LONG_ROUND_S:
            most = sorted(self._kinds.items(), key=lambda kind: -sum(kind[1]))[:_KINDS]
            shown = ", ".join(f"{len(times)} x {kind} {sum(times) * 1000:.1f}" for kind, times in most)
            self._lines.write(f"{used * 1000:.1f} ms, a round: {shown}\n")

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


def main() -> None:
    """Serve and record."""
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # uvicorn takes asyncio's loop then
    lines = Path(sys.argv.pop(1)).open("a", buffering=1)  # noqa: SIM115 - as long as the process
    Recorder(lines).install()
    from webhook.__main__ import main as claimgate

    claimgate()


if __name__ == "__main__":
    main()
