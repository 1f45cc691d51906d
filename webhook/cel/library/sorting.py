"""Sorts many keys in parts, and reads the clock between the parts.

Python's own sort is one call of C that nothing interrupts. A long list of keys is therefore divided into parts by
random keys (a sample sort), and Python sorts each part. This takes about the same time and gives the same order,
because equal keys go into one part in their order. Long texts are numbered first: a list may have the same text a
hundred thousand times, and a comparison reads all of it. Knows no CEL values.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Any, Final

from webhook.deadline import Deadline

PART: Final = 2_000
"""How many keys are sorted in one call of C: less than a millisecond."""
DRAWN: Final = 500
"""How many sampled keys divide the others into parts; a part of more than PART keys is divided again."""


LONG: Final = 64
"""The average length of texts that are compared as quickly as numbers."""


def indexes_in_ascending_order(deadline: Deadline, keys: list[Any]) -> list[int]:
    """Return the indexes of the keys in ascending order of the keys; equal keys keep their order."""
    is_text = bool(keys) and isinstance(keys[0], str | bytes)
    is_long = is_text and sum(map(len, keys)) > LONG * len(keys)
    return _sorted_indexes(deadline, _ranks_of_texts(deadline, keys) if is_long else keys)


def _ranks_of_texts(deadline: Deadline, texts: list[Any]) -> list[int]:
    """Return numbers in the order of the texts, so that equal texts are compared only once."""
    each_once = list(dict.fromkeys(deadline.charge_for_items(texts)))
    order = _sorted_indexes(deadline, each_once)
    numbers = {each_once[place]: number for number, place in enumerate(deadline.charge_for_items(order))}
    return [numbers[text] for text in deadline.charge_for_items(texts)]


def _sorted_indexes(deadline: Deadline, keys: list[Any]) -> list[int]:
    order: list[int] = []
    pending = [(list(range(len(keys))), False)]
    while pending:
        places, is_sorted = pending.pop()
        if not is_sorted and len(places) > PART:
            pending.extend(reversed(_partitioned(deadline, keys, places)))
            continue
        if not is_sorted:
            deadline.spend(len(places))
            places.sort(key=keys.__getitem__)
        order += places
    return order


def _partitioned(deadline: Deadline, keys: list[Any], places: list[int]) -> list[tuple[list[int], bool]]:
    """Divide the places into parts with ascending keys; return each part and whether all its keys are equal."""
    drawn = Random(len(places)).sample(places, DRAWN)  # noqa: S311 - nothing is kept secret by it
    bounds = sorted({keys[place] for place in drawn})
    if len(bounds) == 1:  # so that most keys are equal
        return _partitioned_by_pivot(deadline, keys, places, bounds[0])
    parts: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    for place in deadline.items_with_clock_checks(places):
        parts[bisect_right(bounds, keys[place])].append(place)
    return [(part, False) for part in parts if part]


def _partitioned_by_pivot(
    deadline: Deadline, keys: list[Any], places: list[int], pivot: Any
) -> list[tuple[list[int], bool]]:
    """Divide the places into those with keys less than the pivot, equal to it and greater."""
    before: list[int] = []
    equal: list[int] = []
    after: list[int] = []
    for place in deadline.items_with_clock_checks(places):
        key = keys[place]
        (equal if key == pivot else before if key < pivot else after).append(place)
    return [(before, False), (equal, True), (after, False)]
