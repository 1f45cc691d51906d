"""Iterates over a long range and reads the clock after every hundred elements.

Between two reads of the clock, a loop runs over the iterator of a list as usual. A loop that ends early asks for the
number of remaining elements, as with the iterator of a list. Knows no expressions and no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import length_hint
from typing import Any

from webhook.deadline import STEP, Deadline


class ClockCheckingIterator:
    """Iterates over elements and reads the clock before each STEP of them."""

    __slots__ = ("_chunk", "_deadline", "_left", "_source")

    def __init__(self, source: Iterable[Any], deadline: Deadline) -> None:
        self._left = length_hint(source)
        self._source = iter(source)
        self._deadline = deadline
        self._chunk: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._chunks_after_clock_checks())

    def _chunks_after_clock_checks(self) -> Iterator[Iterator[Any]]:
        while chunk := list(islice(self._source, STEP)):
            self._deadline.check_clock()
            self._left -= len(chunk)
            self._chunk = iter(chunk)
            yield self._chunk

    def __length_hint__(self) -> int:
        """Return how many elements are left; exact when the range has an exact length."""
        return self._left + length_hint(self._chunk)
