"""Lines on their way to stderr: a bounded queue, and a separate thread that writes them in batches.

Knows bytes and a file descriptor, and not the contents of a line. Logging never waits for the reader of the log: if a
pipe is not read, or stderr is closed, lines are dropped and counted, with no other effect.

The descriptor is a copy of the process's stderr, so that a file or socket that gets its number later is never written
to. A process that is forked off has the queue but not the thread: it must not log, and it writes nothing at its end.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from webhook.text.wording import counted

MOST_LINES: Final = 10_000
MOST_CHARACTERS: Final = 4 * 1024 * 1024
"""The most lines that wait, including the batch that is being written. A line of a review has some 400 characters. The
bound allows three seconds of the busiest measured replica (3,250 reviews a second)."""
GATHER_S: Final = 0.02
"""How long the first line of a batch waits for others: at 1,000 reviews a second, one write for twenty."""
FLUSH_S: Final = 1.0
"""How long a stop waits for the last lines to be read."""
REMARK_S: Final = 60.0
"""How long dropped lines are reported."""
_ATTEMPT_S: Final = 0.1


class LogWriter:
    """Writes lines to a file descriptor. `write` may be called from any thread, and never blocks or raises.

    Attributes:
        dropped: lines that were thrown away.
    """

    def __init__(
        self,
        descriptor: int | None,
        *,
        most_lines: int = MOST_LINES,
        most_characters: int = MOST_CHARACTERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with an empty queue; descriptor None means a closed stderr."""
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
        """Return a writer to this process's stderr, which also flushes when the process ends by an error."""
        try:
            descriptor = os.dup(sys.stderr.fileno())
        except (AttributeError, OSError, ValueError):  # no stderr (None), a closed one, or not a file
            descriptor = None
        made = cls(descriptor)
        atexit.register(made.stop)
        return made

    def write(self, line: str) -> None:
        """Take one line with its line break, or drop it when too much is waiting."""
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
        """Return a sentence that lines are being dropped, with the time of the last one, or "" when none was for a
        minute.
        """
        ago_s = self._clock() - self._dropped_at
        if not self.dropped or ago_s > REMARK_S:
            return ""
        reason = self._reason or "is not read as fast as lines are written"
        when = f"{self._time_of_last_drop:%Y-%m-%dT%H:%M:%SZ}, {ago_s:.0f} s ago"
        return f"stderr {reason}: {counted(self.dropped, 'log line')} dropped since the start, the last one at {when}"

    def stop(self, timeout_s: float = FLUSH_S) -> bool:
        """Write what waits, for `timeout_s` at most, and return whether all was written; later lines are dropped."""
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
        with self._lock:  # the reader is gone
            self._most_lines = 0
            self._count_dropped_lines(len(self._lines))
            self._lines = []

    def _write_batch(self, batch: list[str]) -> None:
        text = "".join(batch)
        try:
            self._write_bytes(text.encode("utf-8", "backslashreplace"))
        except OSError as error:  # closed, its reader went away, or no space on its file system
            self._reason = f"cannot be written: {error.strerror.lower()}" if error.strerror else "is closed"
            with self._lock:
                self._count_dropped_lines(len(batch))
        else:
            self._reason = ""
        with self._lock:
            self._waiting_lines -= len(batch)
            self._waiting_characters -= len(text)

    def _write_bytes(self, data: bytes) -> None:
        """Write all the bytes, in one system call if the reader accepts them all.

        Raises:
            OSError: it cannot be written.
        """
        if self._descriptor is None:
            raise OSError
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another process that shares the file made it non-blocking
                select.select([], [self._descriptor], [], _ATTEMPT_S)

    def _count_dropped_lines(self, count: int) -> None:
        """Count dropped lines; the caller has the lock."""
        if count:
            self.dropped += count
            self._dropped_at, self._time_of_last_drop = self._clock(), datetime.now(UTC)
