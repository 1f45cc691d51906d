"""Defines the deadline of a review, which reads the clock after certain amounts of work.

All code that works on a review shares one Deadline, and charges it for its work: iterations, entries, and texts by
their lengths. The clock is read after every STEP units, as in kube-apiserver (k8s.io/apiserver v0.36
pkg/apis/cel/config.go CheckFrequency, cel-go v0.26.0 interpreter evalFold). The costs of CEL are counted separately
(cel/cost.py): they are the same on every machine, and some calls with much work cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from time import monotonic
from typing import Final, TypeVar

from webhook.errors import BudgetExceeded

STEP: Final = 100
"""The units of work after which the clock is read. A unit is about one iteration of a loop: 0.1 to 1 microseconds."""
CHARACTERS: Final = 1000
"""The number of characters that count as one unit if CPython processes them in C: find, replace, compare, decode."""
PIECE: Final = 1000
"""The number of characters that are processed one by one before the clock is read again."""
PIECE_WORK: Final = STEP + 1
"""The charge for such a piece, which makes the next reading of the clock due."""
OVER_TIME: Final = "operation interrupted"
"""The text of the error. Source: cel-go v0.26.0 interpreter/interpretable.go, InterruptError."""

Item = TypeVar("Item")
_COLLECTIONS: Final = (list, tuple, dict)


class Deadline:
    """A time of time.monotonic(), and the work that may be done before the clock is read again.

    Not thread-safe. Without a time, the deadline never passes.
    """

    __slots__ = ("at", "left", "overrun")

    def __init__(self, at: float = math.inf, overrun: type[Exception] = BudgetExceeded) -> None:
        """Create a deadline without reading the clock.

        Args:
            at: the time of the deadline.
            overrun: makes the exception that is raised then, from the API server's text.
        """
        self.at = at
        self.left = STEP
        self.overrun = overrun

    def spend(self, work: int) -> None:
        """Charge for work before it is done.

        Raises:
            Exception: `overrun`, when it is too late.
        """
        self.left -= work
        if self.left < 0:
            self.check_clock()

    def spend_text(self, text: str | bytes) -> None:
        """Charge for processing a text once in C; see `spend`."""
        self.spend(len(text) // CHARACTERS)

    def check_clock(self) -> None:
        """Read the clock now; raise if the deadline has passed.

        Raises:
            Exception: `overrun`, when it is too late.
        """
        self.left = STEP
        if monotonic() > self.at:
            raise self.overrun(OVER_TIME)

    def require_time_for_call(self, seconds: float) -> None:
        """Read the clock before a call that takes `seconds` and cannot be interrupted.

        Raises:
            Exception: `overrun`, when the call would end too late.
        """
        self.check_clock()
        if monotonic() + seconds > self.at:
            raise self.overrun(OVER_TIME)

    def check_clock_before_slow_call(self, seconds: float) -> None:  # noqa: ARG002 - only the event loop asks how long
        """Read the clock before a call that cannot be interrupted and may take up to `seconds`, but mostly takes
        less.

        A process that is killed at the deadline may start the call; the event loop may not (server/scheduler.py).

        Raises:
            Exception: `overrun`, when it is too late.
        """
        self.spend(STEP)

    def charge_for_items(self, items: Collection[Item]) -> Iterable[Item]:
        """Return the items of a collection after charging for them; for many items, an iterator that reads the
        clock.
        """
        work = len(items)
        if work > STEP:
            return self._iterate_with_clock_checks(items)
        self.left -= work
        if self.left < 0:
            self.check_clock()
        return items

    def pieces(self, text: str) -> Iterator[str]:
        """Yield a text in pieces, and read the clock for each; for code that processes each character in Python."""
        for start in range(0, len(text), PIECE):
            self.spend(PIECE_WORK)
            yield text[start : start + PIECE]

    @property
    def is_over(self) -> bool:
        """Return whether the deadline has passed; reads the clock.

        Raises:
            Exception: `overrun`, if it differs from the exception of policies.
        """
        try:
            self.check_clock()
        except BudgetExceeded:
            return True
        return False

    def items_with_clock_checks(self, items: Iterable[Item]) -> Iterable[Item]:
        """Return the items, and read the clock at least every STEP items; for a short collection, charge at once."""
        if isinstance(items, _COLLECTIONS) and len(items) <= STEP:
            # as in `charge_for_items`, without a call: a review does this thousands of times
            self.left -= len(items)
            if self.left < 0:
                self.check_clock()
            return items
        return self._iterate_with_clock_checks(items)

    def _iterate_with_clock_checks(self, items: Iterable[Item]) -> Iterator[Item]:
        return chain.from_iterable(self._charged_chunks(iter(items)))  # resumes once for each chunk, not each item

    def _charged_chunks(self, source: Iterator[Item]) -> Iterator[list[Item]]:
        while chunk := list(islice(source, STEP)):
            self.spend(len(chunk))
            yield chunk
