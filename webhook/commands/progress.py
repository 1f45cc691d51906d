"""Shows the progress of a long command on a terminal, and handles Ctrl-C.

After Ctrl-C, a command finishes the present object and ends its report properly.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

_QUIET_S: Final = 1.0
"""Seconds before a bar appears."""


class Progress:
    """A bar on stderr with rate and time left. A context manager, which removes the bar at the end.

    Only terminals show the bar. With the variable CI, no bar is shown, because logs of CI keep each line.

    Args:
        total_bytes: the number of bytes to read; 0 if unknown.
        what: the name of the counted things, in the plural.
        is_shown: whether a bar may be shown, because no text goes to the same terminal meanwhile.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, total_bytes: int, what: str, *, is_shown: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bar: Any = None
        self._what = what
        self._count = 0
        self._size_bytes = 0
        self._total_bytes = total_bytes
        self._clock, self._began = clock, clock()
        self._may_show = is_shown and sys.stderr.isatty() and not os.environ.get("CI")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, size_bytes: int, count: int) -> None:
        """Add to the bytes that were read, and to the counted things."""
        self._count += count
        self._size_bytes += size_bytes
        elapsed = self._clock() - self._began
        if not self._may_show or elapsed < _QUIET_S:
            return
        if self._bar is None:
            self._bar = _rich_progress_bar()
            self._task = self._bar.add_task(self._what, total=self._total_bytes or None, counted="")
            self._bar.start()
        rate = f"{self._count:,} {self._what}, {self._count / elapsed:,.0f}/s"
        self._bar.update(self._task, completed=self._size_bytes, counted=rate)


def _rich_progress_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[counted]}"), TimeRemainingColumn())
    return Bar(*columns, console=Console(stderr=True), transient=True)


EXIT_CODE: Final = 130
"""128 plus the number of SIGINT, as in shells."""


class Interrupts:
    """Records the first SIGINT. The second SIGINT ends the command at once."""

    def __init__(self) -> None:
        self.is_set = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle_sigint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle_sigint(self, _number: int, _frame: FrameType | None) -> None:
        self.is_set = True
        signal.signal(signal.SIGINT, self._before)
