"""Asks the operating system to take memory back and to allow enough open files, and reads memory limits.

Without glibc (musl, macOS), the allocator keeps its defaults.
"""

from __future__ import annotations

import ctypes
import fcntl
import resource
import select
import sys
import termios
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 256 * 1024
"""Blocks of at least this size come from the system and return to it.

By default, glibc raises this size from 128 KB to the largest freed block, up to 32 MB. Then one small object above such
blocks prevents their return."""
_TRIM_BYTES: Final = 8 * 1024 * 1024
_GROWN_BYTES: Final = 16 * 1024 * 1024
_HELPED_BYTES: Final = 1024 * 1024
_MAX_PAUSE: Final = 4
_UNLIMITED: Final = 1 << 60


@cache
def _c_library() -> ctypes.CDLL:
    # a CDLL creates a class in a reference cycle: a CDLL for each look would take megabytes in a few hours
    return ctypes.CDLL(None)


def tune_glibc_allocator() -> None:
    """Tell glibc to return large freed blocks, and to keep one heap for all threads.

    Threads rarely allocate at the same time, and each further heap would have more holes.
    """
    with suppress(AttributeError, OSError):
        for option, value in {_M_MMAP_THRESHOLD: _LARGE_BYTES, _M_TRIM_THRESHOLD: _TRIM_BYTES, _M_ARENA_MAX: 1}.items():
            _c_library().mallopt(option, value)


def trim_heap() -> None:
    """Return the free pages of the heap to the system."""
    with suppress(AttributeError, OSError):
        _c_library().malloc_trim(0)


class MemoryTrimmer:
    """Returns free heap memory to the system when the process has grown; call `trim_if_grown` regularly.

    Many half-read bodies leave free pages in the middle of the heap. To return these pages takes some milliseconds. If
    a trim frees little, the memory is in use, and the next trim comes later.
    """

    def __init__(self) -> None:
        self._least = 0
        self._pause = self._looks = 1

    def trim_if_grown(self) -> bool:
        """Trim the heap if the process has grown by 16 MiB over its least size; return whether a trim was tried."""
        resident = resident_bytes()
        self._least = min(self._least or resident, resident)
        self._looks += 1
        if resident - self._least < _GROWN_BYTES or self._looks < self._pause:
            return False
        self._looks = 0
        trim_heap()
        has_helped = resident - resident_bytes() > _HELPED_BYTES
        self._pause = 1 if has_helped else min(self._pause * 2, _MAX_PAUSE)
        return True


def unsent_bytes(connected: Any) -> int:
    """Return the sent bytes of a socket that the other end has not accepted; 0 if the system does not report the
    number.
    """
    try:
        buffer = fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):  # the socket is closed
        return 0
    return int.from_bytes(buffer, sys.byteorder)


def is_readable(connected: Any) -> bool:
    """Return whether a socket has bytes to read or its other end is closed."""
    waiting = select.poll()
    waiting.register(connected.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def resident_bytes() -> int:
    """Return the resident bytes of this process; 0 without /proc."""
    return _resident_and_of_files()[0]


def unreclaimable_bytes() -> int:
    """Return the resident bytes that no file backs, which the system cannot reclaim; 0 without /proc."""
    resident, of_files = _resident_and_of_files()
    return resident - of_files


def _resident_and_of_files() -> tuple[int, int]:
    try:
        _, resident, of_files = map(int, Path("/proc/self/statm").read_text(encoding="ascii").split()[:3])
    except OSError:
        return 0, 0
    return resident * resource.getpagesize(), of_files * resource.getpagesize()


def memory_limit(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes that the container may use; None without a limit, or if the limit is unknown.

    A container's own control group is the root: `memory.max` of version 2, or `memory.limit_in_bytes` of version 1,
    which is nearly 2**63 without a limit.
    """
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (root / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        return int(text) if text.isdigit() and int(text) < _UNLIMITED else None
    return None


def raise_open_file_limit(count: int) -> None:
    """Raise the soft limit of open files to `count`, at most to the hard limit. Never lower the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
