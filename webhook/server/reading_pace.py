"""At which pace bytes are read of several clients together, so that to decrypt them does not take the whole loop.

Knows numbers and moments, nothing of who sends.
"""

from __future__ import annotations


class ReadingPace:
    """A pace that all readers share, with a burst that costs nobody a pause."""

    __slots__ = ("_burst_s", "_bytes_per_s", "_read_until")

    def __init__(self, bytes_per_s: float, burst_bytes: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._burst_s = burst_bytes / bytes_per_s
        self._read_until = 0.0

    def took(self, size: int, now: float) -> float:
        """Note bytes that were read at a moment of the monotonic clock; seconds until their reader may read more."""
        self._read_until = max(self._read_until, now - self._burst_s) + size / self._bytes_per_s
        return max(0.0, self._read_until - now)
