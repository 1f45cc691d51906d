"""Log lines that clients can cause without end: a few are written each second, the others are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from webhook.logs.structured import Level

LINES_PER_S: Final = 5
"""Whoever looks for the cause needs no more; a line has about 500 bytes."""

Write: TypeAlias = Callable[[Level, str, dict[str, Any]], None]


class LimitedLog:
    """Writes a few lines a second with one message, and counts the others. Used on the event loop only."""

    def __init__(self, write: Write, message: str, period_s: float = 1.0) -> None:
        """Limit the lines with `message`; `write` takes level, message and fields."""
        self._write = write
        self._message = message
        self._period_s = period_s
        self._lines = self._left_out = 0

    def write(self, level: Level, fields: dict[str, Any]) -> None:
        """Write the line, or count it when the period has enough lines already."""
        if not self._lines:
            asyncio.get_running_loop().call_later(self._period_s, self._end_period)
        self._lines += 1
        if self._lines <= LINES_PER_S:
            self._write(level, self._message, fields)
        else:
            self._left_out += level != "debug"

    def _end_period(self) -> None:
        left_out, self._lines, self._left_out = self._left_out, 0, 0
        if left_out:
            self._write("warning", self._message, {"left_out": left_out})
