"""How long one review blocks the event loop, and how long it runs without a check of the clock."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from time import monotonic, thread_time
from types import FrameType
from typing import Any, Final, NamedTuple

from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.errors import InlineBudgetSpent, InputError
from webhook.server.scheduler import LIGHT_S, InlineTimeSlice

YOUNG_OBJECTS: Final = 150_000
"""As in webhook/server/runtime.py."""
_FRAMES: Final = 4
_Place = tuple[tuple[str, int], ...]


class LoopTime(NamedTuple):
    """How long a review used the processor in ms, and its longest interval without a check of the clock. `where` has
    the lines at both ends of the interval.
    """

    whole: float
    longest: float
    where: str


class WatchedSlice(InlineTimeSlice):
    """The time slice of one review. It also records the longest interval between two checks of the clock."""

    __slots__ = ("longest", "place", "seen", "where")

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.longest, self.where, self.place = thread_time(), 0.0, "", ()

    def check_clock(self) -> None:
        """Record the interval that ends here, then read the clock."""
        self.note(_place(sys._getframe(1)))
        super().check_clock()

    def note(self, place: _Place = ()) -> None:
        stretch = thread_time() - self.seen
        if stretch > self.longest:
            self.longest, self.where = stretch, f"{_as_text(self.place)} .. {_as_text(place)}"
        self.place, self.seen = place, thread_time()


def _place(frame: FrameType | None) -> _Place:
    """Return the innermost lines of the stack, without those in deadline.py."""
    lines: list[tuple[str, int]] = []
    while frame is not None and len(lines) < _FRAMES:
        if not frame.f_code.co_filename.endswith("deadline.py"):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


def _as_text(place: _Place) -> str:
    return " < ".join(f"{file.rpartition('webhook/')[2]}:{line}" for file, line in place) or "end"


def collect_garbage_as_the_server() -> None:
    """Set the garbage collector as the server does: without the current objects, and so rarely that no review waits."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def loop_time(body: bytes, phase: Phase, policies: Any, cluster: Any) -> LoopTime:
    """Measure a review on the event loop. The times are 0 if the review is refused before it begins."""
    gc.collect()
    begun = thread_time()
    try:
        attributes = decode_review_bytes(body)
    except InputError:
        return LoopTime(0.0, 0.0, "")
    time_slice = WatchedSlice()
    time_slice.limit_evaluation(LIGHT_S, monotonic() + 20)
    with suppress(InlineBudgetSpent):
        answer_request(attributes, policies, cluster, phase=phase, deadline=time_slice)
    time_slice.note()
    del attributes  # freeing the objects also takes time of the event loop
    return LoopTime((thread_time() - begun) * 1000, time_slice.longest * 1000, time_slice.where)
