"""Asks the operating system to take memory back and to allow enough open files, and reads memory limits.

Knows glibc and POSIX, nothing of the server. Elsewhere (musl, Windows) it does nothing.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 256 * 1024
"""Blocks of at least this size are allocated from the system and returned to it. uvloop keeps a buffer of exactly 256
KB for each TLS connection and uses few of its bytes. On a heap with pages of earlier work, the whole buffer would be
resident. By default, glibc raises this size from 128 KB to the largest block that was freed, up to 32 MB: one small
object above such blocks on the heap then keeps them from being given back, and 24 bodies of 20 MB left the process at
530 MB for good."""
_TRIM_BYTES: Final = 8 * 1024 * 1024
_GROWN_BYTES: Final = 16 * 1024 * 1024
_HELPED_BYTES: Final = 1024 * 1024
_MAX_PAUSE: Final = 4


@cache
def _c_library() -> ctypes.CDLL:
    """Return the C library of this process. Each CDLL creates a class in a reference cycle, which waits for the garbage
    collector. A new CDLL for each look at the heap would use megabytes in a few hours.
    """
    return ctypes.CDLL(None)


def tune_glibc_allocator() -> bool:
    """Tell glibc to return large freed blocks to the system, and to keep one heap for all threads; return whether it
    accepted that. Threads rarely allocate at the same time, but each thread would leave holes in its own heap.
    """
    try:
        mallopt = _c_library().mallopt
    except (AttributeError, OSError, TypeError):
        return False
    wanted = {_M_MMAP_THRESHOLD: _LARGE_BYTES, _M_TRIM_THRESHOLD: _TRIM_BYTES, _M_ARENA_MAX: 1}
    return all(mallopt(option, value) for option, value in wanted.items())


def trim_heap() -> bool:
    """Return the free pages of the heap to the system, and return whether that was possible."""
    try:
        _c_library().malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return False
    return True


class MemoryTrimmer:
    """Returns free heap memory to the system when the process has grown; call `trim_if_grown` every few seconds.

    Many connections with half a body each leave pages that are free but not at the end of the heap. Returning them
    takes a few milliseconds, so they are returned only if the process has grown. If that frees little, the memory is
    in use, and the next attempt comes later.
    """

    def __init__(self) -> None:
        self._least = 0
        self._pause = self._looks = 1

    def trim_if_grown(self) -> bool:
        """Trim the heap if the process has grown by 16 MiB over its least size; return whether it tried."""
        resident = resident_bytes()
        self._least = min(self._least or resident, resident)
        self._looks += 1
        if resident - self._least < _GROWN_BYTES or self._looks < self._pause:
            return False
        self._looks = 0
        if not trim_heap():
            return False
        has_helped = resident - resident_bytes() > _HELPED_BYTES
        self._pause = 1 if has_helped else min(self._pause * 2, _MAX_PAUSE)
        return True


def unsent_bytes(connected: Any) -> int:
    """Return how many sent bytes of a socket the other end has not accepted yet; 0 if the system cannot tell."""
    try:
        import fcntl
        import termios

        buffer = fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, bytes(4))
    except (ImportError, OSError, AttributeError):
        return 0
    return int.from_bytes(buffer, sys.byteorder)


def is_readable(connected: Any) -> bool:
    """Return whether a socket has bytes to read or its other end is closed."""
    waiting = select.poll()
    waiting.register(connected.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def resident_bytes() -> int:
    """Return the bytes of memory that this process has resident; 0 if /proc is missing."""
    resident, _ = _resident_and_of_files()
    return resident


def unreclaimable_bytes() -> int:
    """Return the resident bytes that no file backs, so that the system cannot reclaim them when memory is short;
    0 if /proc is missing.
    """
    resident, of_files = _resident_and_of_files()
    return resident - of_files


def _resident_and_of_files() -> tuple[int, int]:
    """Return the resident bytes of this process, and those among them that are of files."""
    try:
        _, resident, of_files = Path("/proc/self/statm").read_text(encoding="ascii").split()[:3]
    except OSError:
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return int(resident) * page, int(of_files) * page


def memory_limit(root: Path = Path("/sys/fs/cgroup"), unlimited: int = 1 << 60) -> int | None:
    """Return the bytes that the container may use; None if it has no limit, or the system cannot tell.

    A container sees its own control group at the root: `memory.max` of version 2, `memory.limit_in_bytes` of version 1,
    which is nearly 2**63 without a limit.
    """
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (root / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        return int(text) if text.isdigit() and int(text) < unlimited else None
    return None


def raise_open_file_limit(count: int) -> None:
    """Raise the soft limit of open files to `count`, as far as the hard limit allows; never lower it."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
