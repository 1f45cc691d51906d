"""Limits how many bytes a second are read from several clients together, so that decryption does not fill the loop.

Knows numbers and moments, nothing of who sends.
"""

from __future__ import annotations


class ReadingPace:
    """A rate limit that all readers share, with a burst that is free."""

    __slots__ = ("_burst_s", "_bytes_per_s", "_read_until")

    def __init__(self, bytes_per_s: float, burst_bytes: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._burst_s = burst_bytes / bytes_per_s
        self._read_until = 0.0

    def record_read(self, size: int, now: float) -> float:
        """Note that `size` bytes were read at `now`, and return the seconds until their reader may read more."""
        self._read_until = max(self._read_until, now - self._burst_s) + size / self._bytes_per_s
        return max(0.0, self._read_until - now)
