"""The order of many keys, found in parts between which the clock is read.

Python's own sort is one call of C that nothing interrupts. So many keys are first dealt into parts by keys drawn from
among them (a sample sort), each of which is sorted by that call: about the same time, and the same order, since equal
keys come into one part in the order in which they stood. Knows no CEL values.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Any, Final

from webhook.deadline import Deadline

PART: Final = 2_000
"""Keys that are sorted in one call of C: less than a millisecond."""
DRAWN: Final = 500
"""Keys that the others are dealt by; a part of more than PART keys is dealt again."""


def ascending(deadline: Deadline, keys: list[Any]) -> list[int]:
    """The places of the keys in the order of the keys; equal ones stay in order."""
    order: list[int] = []
    pending = [list(range(len(keys)))]
    while pending:
        places = pending.pop()
        deadline.spend(len(places) if len(places) <= PART else 0)
        if len(places) <= PART or not (parts := _dealt(deadline, keys, places)):
            places.sort(key=keys.__getitem__)
            order += places
        else:
            pending.extend(reversed(parts))
    return order


def _dealt(deadline: Deadline, keys: list[Any], places: list[int]) -> list[list[int]]:
    """Parts of the places with ascending keys; none when all keys drawn are equal, so that most keys are."""
    drawn = Random(len(places)).sample(places, DRAWN)  # noqa: S311 - nothing is kept secret by it
    bounds = sorted({keys[place] for place in drawn})
    if len(bounds) == 1:
        return []
    parts: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    for place in deadline.paced(places):
        parts[bisect_right(bounds, keys[place])].append(place)
    return [part for part in parts if part]
