"""The known name that a misspelt one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable

_FARTHEST = 2  # edits: a letter missing, doubled, swapped or wrong, twice; more and it is another word


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name with the fewest edits to `name`, at most two and fewer than a third of it; "" when none is."""
    best, distance = "", min(_FARTHEST, (len(name) - 1) // 3) + 1
    for candidate in known:
        if abs(len(candidate) - len(name)) < distance and candidate != name:
            found = _edits(name, candidate, distance)
            if found < distance:
                best, distance = candidate, found
    return best


def _edits(one: str, other: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words, or `limit` when not fewer."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        current = [i]
        for j, opposite in enumerate(other, start=1):
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (letter != opposite))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == opposite:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) >= limit:
            return limit
        before, row = row, current
    return min(row[-1], limit)
