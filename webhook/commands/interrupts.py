"""Handles Ctrl-C in a command that writes a report: the present object is finished, and the report is ended
properly.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Final, Self

EXIT_CODE: Final = 130
"""128 and the number of SIGINT, as in shells."""


class Interrupts:
    """Records the first SIGINT while the context is open; the second one ends the command at once."""

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
