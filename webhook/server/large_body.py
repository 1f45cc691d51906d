"""The body of one large call in memory of its own, which goes back to the system when the call is answered.

Knows bytes and mappings, nothing of calls. On the heap, bodies that come in turns of 64 KB leave holes below other
objects, and every process that is forked keeps those of the moment of its fork for as long as it lives: measured with
36 MiB of bodies, a worker kept 113 MB that the server had given back long ago. A mapping that is shared costs nothing
there, and such a process lets go of it (`close_all_bodies`).
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterable, Iterator
from typing import Final

BEGINNING_BYTES: Final = 128 * 1024
LONG_BEGINNING_BYTES: Final = 4 * 1024 * 1024
"""More than kube-apiserver accepts from a user: no field before the object is longer."""


class LargeBody:
    """The bytes of a body that have arrived so far."""

    __slots__ = ("__weakref__", "_memory", "_size")

    def __init__(self, capacity: int, came: Iterable[bytes] = ()) -> None:
        """Map memory for `capacity` bytes, and store the pieces that came already."""
        self._memory = mmap.mmap(-1, max(1, capacity))
        self._size = 0
        _HELD.add(self)
        for piece in came:
            self.append(piece)

    def __len__(self) -> int:
        return self._size

    def append(self, piece: bytes) -> None:
        """Store the next piece; bytes beyond the capacity are dropped."""
        end = min(self._size + len(piece), len(self._memory))
        self._memory[self._size : end] = piece[: end - self._size]
        self._size = end

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces of at most BEGINNING_BYTES."""
        for begin in range(0, self._size, BEGINNING_BYTES):
            yield self._memory[begin : min(self._size, begin + BEGINNING_BYTES)]

    def beginnings(self) -> Iterator[bytes]:
        """Yield the beginning of the body twice: at most BEGINNING_BYTES of it, then at most LONG_BEGINNING_BYTES."""
        for most in (BEGINNING_BYTES, LONG_BEGINNING_BYTES):
            yield self._memory[: min(self._size, most)]

    def close(self) -> None:
        """Give the memory back; the body is empty afterwards."""
        self._memory.close()
        self._size = 0


_HELD: Final[weakref.WeakSet[LargeBody]] = weakref.WeakSet()
"""All open bodies of this process, which a fork inherits."""


def close_all_bodies() -> None:
    """Close the bodies of all calls in a process that was forked just now."""
    for body in tuple(_HELD):
        body.close()
