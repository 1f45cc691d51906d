"""Processor time of a server and of all its worker processes, as Linux counts it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def spent_s(pid: int) -> float:
    seconds = 0.0
    for number in (pid, *_descendants(pid)):
        with suppress(OSError):  # a child process that has ended meanwhile counts with its parent
            seconds += time.clock_gettime(_clock(number)) + _ended_children_s(number)
    return seconds


def _clock(pid: int) -> int:
    """Return the processor time of a process. clock_getcpuclockid(3) is exact, and /proc has only hundredths of a
    second.
    """
    return (~pid << 3) | 2


def _ended_children_s(pid: int) -> float:
    # the name of the program may contain any character
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")  # cutime and cstime: proc(5)


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield int(child)
                yield from _descendants(int(child))
