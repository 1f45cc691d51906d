"""Writes log lines with a constant message and fields, as JSON objects or as text for people.

A line of text has time, level and message, then `name=value` for each field. A value that is not one word is JSON, so
that programs can split a line. Control and bidirectional characters are escaped (terminal.py).

Never log objects, params or patches: an object may contain secrets, and more people read a log than the cluster.

A server's LogWriter writes to stderr in batches, in a separate thread, and never waits for the reader of the log. If a
pipe is not read, or stderr is closed, lines are dropped and counted. Without a LogWriter, a line is written at once.
The descriptor is a copy of stderr's: after stderr is closed, another file could get its number. A forked process has
the queue but not the thread, so it must not log.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import select
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final, Literal, TextIO, TypeAlias, get_args

import msgspec

from webhook.errors import fault_locations
from webhook.text.terminal import escape_json_text, one_line
from webhook.text.wording import counted

MOST_LINES: Final = 10_000
MOST_CHARACTERS: Final = 4 * 1024 * 1024
"""The maximum number of characters of waiting lines; MOST_LINES bounds their number. A review's line has about 400
characters. Both bounds are enough for three seconds of the busiest measured replica (3,250 reviews a second).
"""
GATHER_S: Final = 0.02
"""Seconds that the first line of a batch waits for more lines: twenty lines at 1,000 reviews a second."""
FLUSH_S: Final = 1.0
"""Seconds that a stop waits for the last lines."""
REMARK_S: Final = 60.0
"""Seconds for which /readyz reports dropped lines."""
_ATTEMPT_S: Final = 0.1


class LogWriter:
    """Writes lines to a file descriptor. Any thread may call `write`, which never blocks or raises.

    Attributes:
        dropped: the number of dropped lines.
    """

    def __init__(
        self,
        descriptor: int | None,
        *,
        most_lines: int = MOST_LINES,
        most_characters: int = MOST_CHARACTERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`descriptor` None means a closed stderr."""
        self.dropped = 0
        self._descriptor = descriptor
        self._most_lines = most_lines
        self._most_characters = most_characters
        self._clock = clock
        self._dropped_at = 0.0
        self._time_of_last_drop = datetime.now(UTC)
        self._reason = ""
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._waiting_lines = self._waiting_characters = 0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._write_batches_until_stopped, name="log-writer", daemon=True)
        self._thread.start()

    @classmethod
    def to_stderr(cls) -> LogWriter:
        """Return a writer to stderr, which also writes the last lines of a process that ends with an error."""
        try:
            descriptor = os.dup(sys.stderr.fileno())
        except (AttributeError, OSError, ValueError):  # stderr is missing, closed, or not a file
            descriptor = None
        writer = cls(descriptor)
        atexit.register(writer.stop)
        return writer

    def write(self, line: str) -> None:
        """Queue a line with its line break; drop it if the queue is full."""
        with self._lock:
            if self._waiting_lines >= self._most_lines or self._waiting_characters + len(line) > self._most_characters:
                self._count_dropped_lines(1)
                return
            self._waiting_lines += 1
            self._waiting_characters += len(line)
            is_first = not self._lines
            self._lines.append(line)
        if is_first:
            self._wake.set()

    def describe_dropped_lines(self) -> str:
        """Return a sentence about lines that were dropped in the last minute, or ""."""
        ago_s = self._clock() - self._dropped_at
        if not self.dropped or ago_s > REMARK_S:
            return ""
        reason = self._reason or "is not read as fast as lines are written"
        when = f"{self._time_of_last_drop:%Y-%m-%dT%H:%M:%SZ}, {ago_s:.0f} s ago"
        return f"stderr {reason}: {counted(self.dropped, 'log line')} dropped since the start, the last one at {when}"

    def stop(self, timeout_s: float = FLUSH_S) -> bool:
        """Write the waiting lines, for at most `timeout_s`. Drop later lines. Return whether all waiting lines were
        written.
        """
        if os.getpid() != self._process:
            return True
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _write_batches_until_stopped(self) -> None:
        is_last = False
        while not is_last:
            self._wake.wait()
            self._stopping.wait(GATHER_S)
            is_last = self._stopping.is_set()
            self._wake.clear()
            with self._lock:
                batch, self._lines = self._lines, []
            if batch:
                self._write_batch(batch)
        with self._lock:  # the reader has closed the pipe
            self._most_lines = 0
            self._count_dropped_lines(len(self._lines))
            self._lines = []

    def _write_batch(self, batch: list[str]) -> None:
        text = "".join(batch)
        try:
            self._write_bytes(text.encode("utf-8", "backslashreplace"))
        except OSError as error:  # stderr or its reader is closed, or the disk is full
            self._reason = f"cannot be written: {error.strerror.lower()}" if error.strerror else "is closed"
            with self._lock:
                self._count_dropped_lines(len(batch))
        else:
            self._reason = ""
        with self._lock:
            self._waiting_lines -= len(batch)
            self._waiting_characters -= len(text)

    def _write_bytes(self, data: bytes) -> None:
        # one system call if the reader accepts all bytes; raises OSError
        if self._descriptor is None:
            raise OSError
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another process made the file non-blocking
                select.select([], [self._descriptor], [], _ATTEMPT_S)

    def _count_dropped_lines(self, count: int) -> None:
        if count:
            self.dropped += count
            self._dropped_at, self._time_of_last_drop = self._clock(), datetime.now(UTC)


Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
Format: TypeAlias = Literal["json", "text"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
Write: TypeAlias = Callable[[Level, str, dict[str, Any]], None]
"""Writes a line with its level, message and fields."""
LINES_PER_S: Final = 5
"""The maximum number of lines a second with one message that clients can cause."""
_WORD: Final = re.compile(r"[^\s\"'=\[\]{}\\]+")
_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str).encode
_LEVEL: Final = 7
"""The length of `warning`, the longest level."""
_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}
_ENCODE: Final = msgspec.json.Encoder(enc_hook=str).encode
_ENCODE_ANYTHING: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str).encode
"""Also encodes texts that are not UTF-8 and integers above 64 bits, but takes ten times as long."""


@dataclass(frozen=True, slots=True)
class Log:
    """Writes lines at or above a level to `writer`, otherwise to `stream`, otherwise to sys.stderr. Thread-safe."""

    level: Level = "info"
    stream: TextIO | None = None
    clock: Callable[[], float] = time.time
    writer: LogWriter | None = None
    format: Format = "json"

    def debug(self, message: str, /, **fields: Any) -> None:
        """Write a line for developers."""
        self.write("debug", message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        """Write a line about a normal event."""
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
        """Return the writer's sentence about dropped lines, or ""."""
        return self.writer.describe_dropped_lines() if self.writer is not None else ""

    def write(self, level: Level, message: str, fields: dict[str, Any]) -> None:
        """Write one line, without fields that are None, if the level is enabled."""
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
    # on one line, with a blank after each colon and comma
    try:
        return msgspec.json.format(_ENCODE(fields), indent=0).decode()
    except (UnicodeEncodeError, OverflowError, TypeError):
        return _ENCODE_ANYTHING(fields)


def _timestamp(seconds: float) -> str:
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return f"{_second_as_rfc_3339(whole)}.{milliseconds:03d}Z"


@lru_cache(maxsize=2)
def _second_as_rfc_3339(seconds: int) -> str:
    # cached, because many lines are written in the same second
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


class LimitedLog:
    """Writes at most LINES_PER_S lines of one message in each period, and counts the others. Only for an event loop."""

    def __init__(self, write: Write, message: str, period_s: float = 1.0) -> None:
        """`write` writes a line."""
        self._write = write
        self._message = message
        self._period_s = period_s
        self._lines = self._left_out = 0

    def write(self, level: Level, fields: dict[str, Any]) -> None:
        """Write or count a line."""
        if not self._lines:
            import asyncio  # only a server has an event loop

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
    """Send log records of libraries, and errors in finalizers and callbacks, to `log`. Call this function once."""
    handler = _LibraryLogHandler(log)
    logging.basicConfig(level=log.level.upper(), handlers=[handler], force=True)
    sys.unraisablehook = partial(_log_unraisable, log)


def _log_unraisable(log: Log, what: sys.UnraisableHookArgs) -> None:
    # the text of the error is not logged, because it may have secrets
    frames = traceback.extract_tb(what.exc_traceback)
    log.error("internal fault", error=what.exc_type.__name__, traceback=fault_locations(frames))


class _LibraryLogHandler(logging.Handler):
    """Writes log records of libraries, at most LINES_PER_S each second, because clients can cause any number."""

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
    """Return one line without a line break: time, level and message, then the other fields."""
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
