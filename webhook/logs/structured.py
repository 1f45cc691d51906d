"""Log lines: a constant message and fields, as one JSON object a line, or as text for people.

A line of text has time, level, message, then `name=value` for each field. A value of more than a word is JSON, so that
a program can split a line into its fields. Control and bidirectional characters are escaped, so that no terminal obeys
them (terminal.py). A server gives its lines to a LogWriter and never waits for a reader. Without one a line is written
at once. Does not know the logged contents.

Never log objects, params or patches: an object may contain secrets, and more people read a log than the cluster.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal, TextIO, TypeAlias, get_args

import msgspec

from webhook.errors import fault_locations
from webhook.logs.writer import LogWriter
from webhook.text.terminal import escape_json_text, one_line

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
Format: TypeAlias = Literal["json", "text"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
Write: TypeAlias = Callable[[Level, str, dict[str, Any]], None]
"""Writes a line with its level, message and fields."""
LINES_PER_S: Final = 5
"""How many lines that clients can cause are written in a second. Five show the cause; a line has about 500 bytes."""
_WORD: Final = re.compile(r"[^\s\"'=\[\]{}\\]+")
_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str).encode
_LEVEL: Final = 7
"""Characters of the longest level, `warning`, so that messages are aligned."""
_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}
_ENCODE: Final = msgspec.json.Encoder(enc_hook=str).encode
_ENCODE_ANYTHING: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str).encode
"""For what no UTF-8 and no 64 bits hold, at ten times the cost."""


@dataclass(frozen=True, slots=True)
class Log:
    """Writes lines at or above its level. Thread-safe: a line is one write.

    Lines go to `writer` if there is one, otherwise to `stream`, otherwise to the current sys.stderr.
    """

    level: Level = "info"
    stream: TextIO | None = None
    clock: Callable[[], float] = time.time
    writer: LogWriter | None = None
    format: Format = "json"

    def debug(self, message: str, /, **fields: Any) -> None:
        """Write a line that only a developer wants to read."""
        self.write("debug", message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        """Write a line about what happened."""
        self.write("info", message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        """Write a line with a warning."""
        self.write("warning", message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        """Write a line with an error."""
        self.write("error", message, fields)

    def exception(self, message: str, error: BaseException, /, **fields: Any) -> None:
        """Write a line about an unexpected error, with its traceback."""
        lines = traceback.format_exception(error)
        self.write("error", message, {**fields, "error": str(error), "traceback": "".join(lines)})

    @property
    def dropped_line_count(self) -> int:
        """Return how many lines the writer dropped."""
        return self.writer.dropped if self.writer is not None else 0

    def describe_dropped_lines(self) -> str:
        """Return the writer's sentence that lines are being dropped, or ""."""
        return self.writer.describe_dropped_lines() if self.writer is not None else ""

    def write(self, level: Level, message: str, fields: dict[str, Any]) -> None:
        """Write one line with time, level, message and the fields that are not None."""
        if _RANK[level] < _RANK[self.level]:
            return
        head = {"time": _timestamp(self.clock()), "level": level, "message": message}
        line = {**head, **fields, **head}
        if None in line.values():
            line = {name: value for name, value in line.items() if value is not None}
        text = f"{log_line_as_text(line) if self.format == 'text' else escape_json_text(_fields_as_json(line))}\n"
        if self.writer is not None:
            self.writer.write(text)
            return
        stream = self.stream or sys.stderr
        stream.write(text)
        stream.flush()


def _fields_as_json(fields: dict[str, Any]) -> str:
    """Return the fields as JSON on one line, with a blank after each colon and comma."""
    try:
        return msgspec.json.format(_ENCODE(fields), indent=0).decode()
    except (UnicodeEncodeError, OverflowError, TypeError):
        return _ENCODE_ANYTHING(fields)


def _timestamp(seconds: float) -> str:
    """Return a time in RFC 3339, in UTC with milliseconds."""
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return f"{_second_as_rfc_3339(whole)}.{milliseconds:03d}Z"


@lru_cache(maxsize=2)
def _second_as_rfc_3339(seconds: int) -> str:
    """Return a time in RFC 3339 up to whole seconds, which many lines share."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


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
            import asyncio  # only a server has a loop

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


def capture_library_logs(log: Log) -> None:
    """Send what libraries log through the standard library to `log`, and errors in finalizers and callbacks too.

    Called once, by the command that serves.
    """
    handler = _LibraryLogHandler(log)
    logging.basicConfig(level=log.level.upper(), handlers=[handler], force=True)
    sys.unraisablehook = partial(_log_unraisable, log)


def _log_unraisable(log: Log, what: sys.UnraisableHookArgs) -> None:
    """Log an error in a finalizer or a callback: its type and place, never its text."""
    frames = traceback.extract_tb(what.exc_traceback)
    log.error("internal fault", error=what.exc_type.__name__, traceback=fault_locations(frames))


class _LibraryLogHandler(logging.Handler):
    """The standard library's records as lines; only a few a second, because clients can cause any number of them."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log
        self._second = 0.0
        self._lines = self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        now = self.log.clock()
        if not 0 <= now - self._second < 1:
            self._second, self._lines = now, 0
        self._lines += 1
        if self._lines > LINES_PER_S:
            self._left_out += 1
            return
        level: Level = "debug"
        for name in LEVELS:
            level = name if record.levelno >= logging.getLevelNamesMapping()[name.upper()] else level
        fields: dict[str, Any] = {"logger": record.name, "left_out": self._left_out or None}
        self._left_out = 0
        if record.exc_info and record.exc_info[1]:
            fields["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        self.log.write(level, record.getMessage(), fields)


def log_line_as_text(fields: Mapping[str, Any]) -> str:
    """Return one line without a line break.

    Args:
        fields: `time`, `level` and `message` first, then the others.
    """
    head = f"{fields['time']} {fields['level']:<{_LEVEL}} {one_line(str(fields['message']))}"
    named = (
        f"{name}={_field_value_as_text(value)}"
        for name, value in fields.items()
        if name not in ("time", "level", "message")
    )
    return " ".join((head, *named))


def _field_value_as_text(value: Any) -> str:
    if isinstance(value, str) and _WORD.fullmatch(value) and value.isprintable():
        return one_line(value)
    return escape_json_text(_AS_JSON(value))
