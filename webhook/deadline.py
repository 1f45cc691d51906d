"""The deadline of a review, which reads the clock after certain amounts of work.

All code of a review shares one Deadline, and charges it for its work: iterations, entries, and texts by length. The
clock is read after every STEP units, as in kube-apiserver (k8s.io/apiserver v0.36 pkg/apis/cel/config.go
CheckFrequency, cel-go v0.26.0 interpreter evalFold). CEL costs are counted separately (cel/cost.py), because costs are
equal on every machine, and some calls with much work cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from time import monotonic
from typing import Final, TypeVar

from webhook.errors import BudgetExceeded

STEP: Final = 100
"""The units between two readings of the clock. A unit is about one iteration: 0.1 to 1 microseconds."""
CHARACTERS: Final = 1000
"""The characters of one unit if CPython processes them in C: find, replace, compare, decode."""
PIECE: Final = 1000
"""The maximum number of characters that Python code processes one by one between two readings of the clock."""
PIECE_WORK: Final = STEP + 1
"""The charge for PIECE characters. The charge is so large that the clock is read."""
OVER_TIME: Final = "operation interrupted"
"""The text of the error (cel-go v0.26.0 interpreter/interpretable.go, InterruptError)."""

Item = TypeVar("Item")
_COLLECTIONS: Final = (list, tuple, dict)


class Deadline:
    """A time of a clock, and the work until the clock is read; not thread-safe. The default is no limit."""

    __slots__ = ("at", "clock", "left", "overrun")

    def __init__(
        self,
        at: float = math.inf,
        overrun: type[Exception] = BudgetExceeded,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """After the moment `at` of the clock, raise the exception that `overrun` makes from the API server's text."""
        self.at = at
        self.clock = clock
        self.left = STEP
        self.overrun = overrun

    def spend(self, work: int) -> None:
        """Charge for work before it is done.

        Raises:
            Exception: `overrun`, after the deadline.
        """
        self.left -= work
        if self.left < 0:
            self.check_clock()

    def spend_text(self, text: str | bytes) -> None:
        """Charge for processing a text once in C; see `spend`."""
        self.spend(len(text) // CHARACTERS)

    def check_clock(self) -> None:
        """Read the clock now.

        Raises:
            Exception: `overrun`, after the deadline.
        """
        self.left = STEP
        if self.clock() > self.at:
            raise self.overrun(OVER_TIME)

    def require_time_for_call(self, seconds: float) -> None:
        """Read the clock before a call that takes `seconds` and cannot be interrupted.

        Raises:
            Exception: `overrun`, if the call would end too late.
        """
        self.check_clock()
        if self.clock() + seconds > self.at:
            raise self.overrun(OVER_TIME)

    def check_clock_before_slow_call(self, seconds: float) -> None:  # noqa: ARG002 - only the event loop asks how long
        """Read the clock before a call that cannot be interrupted and takes at most `seconds`, usually less.

        A process that is killed at the deadline may start the call; the event loop may not (server/scheduler.py).

        Raises:
            Exception: `overrun`, after the deadline.
        """
        self.spend(STEP)

    def charge_for_items(self, items: Collection[Item]) -> Iterable[Item]:
        """Return the items and charge for them; for many items, return an iterator that reads the clock."""
        work = len(items)
        if work > STEP:
            return self._iterate_with_clock_checks(items)
        self.left -= work
        if self.left < 0:
            self.check_clock()
        return items

    def pieces(self, text: str) -> Iterator[str]:
        """Yield a text in pieces, and read the clock before each piece.

        For code that processes each character in Python.
        """
        for start in range(0, len(text), PIECE):
            self.spend(PIECE_WORK)
            yield text[start : start + PIECE]

    @property
    def is_over(self) -> bool:
        """Read the clock and return whether the deadline has passed.

        Raises:
            Exception: `overrun`, if it differs from the exception of policies.
        """
        try:
            self.check_clock()
        except BudgetExceeded:
            return True
        return False

    def items_with_clock_checks(self, items: Iterable[Item]) -> Iterable[Item]:
        """Return the items, and read the clock at least every STEP items."""
        if isinstance(items, _COLLECTIONS) and len(items) <= STEP:
            # as in `charge_for_items`, without a call: thousands of times a review
            self.left -= len(items)
            if self.left < 0:
                self.check_clock()
            return items
        return self._iterate_with_clock_checks(items)

    def _iterate_with_clock_checks(self, items: Iterable[Item]) -> Iterator[Item]:
        return chain.from_iterable(self._charged_chunks(iter(items)))  # resumes once a chunk, not once an item

    def _charged_chunks(self, source: Iterator[Item]) -> Iterator[list[Item]]:
        while chunk := list(islice(source, STEP)):
            self.spend(len(chunk))
            yield chunk
