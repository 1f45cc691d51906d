"""The narrow table of edits between two words gives the same number as the whole table."""

from __future__ import annotations

import random

import pytest

from webhook.text.similar_names import count_edits


def edits_by_definition(one: str, other: str) -> int:
    """Return the number of edits between two words, by every cell of the table."""
    table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            best = min(table[i - 1, j], table[i, j - 1]) + 1
            best = min(best, table[i - 1, j - 1] + (one[i - 1] != other[j - 1]))
            if one[i - 2 : i] == other[j - 2 : j][::-1] and len(one[i - 2 : i]) == 2:
                best = min(best, table[i - 2, j - 2] + 1)
            table[i, j] = best
    return table[len(one), len(other)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_narrow_table_gives_the_same_number_as_the_whole_table(limit: int):
    chance = random.Random(limit)
    for _ in range(5_000):
        one, other = ("".join(chance.choices("ab-", k=chance.randint(0, 7))) for _ in range(2))
        assert count_edits(one, other, limit) == min(edits_by_definition(one, other), limit), (one, other)
