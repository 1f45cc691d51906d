"""Many keys of any kind are sorted as by Python's own sort, and sorting checks the clock."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.cel.test_work import Counted, Late
from webhook.cel.library.extended_lists import PART, indexes_in_ascending_order
from webhook.deadline import STEP
from webhook.errors import BudgetExceeded

MANY = 10 * PART
LONG_TEXTS = ["x" * 500 + end for end in "cab"]
KEYS: dict[str, list[Any]] = {
    "none": [],
    "few numbers": [3, 1, 2, 1],
    "numbers": [number * 7919 % 1000 for number in range(MANY)],
    "equal numbers": [1] * MANY,
    "nearly equal numbers": [0 if number == 7 else 2 if number == 9 else 1 for number in range(MANY)],
    "texts": [f"{number * 7919 % 1000}" for number in range(MANY)],
    "equal long texts": [LONG_TEXTS[0]] * MANY,
    "three long texts": Random(1).choices(LONG_TEXTS, k=MANY),
    "long and short texts": Random(2).choices([*LONG_TEXTS, "", "x", "é"], weights=(1, 1, 1, 1, 1, 90), k=MANY),
    "bytes": Random(3).choices([text.encode() for text in LONG_TEXTS], k=MANY),
    "pairs": [(number % 3 == 0, -number) for number in range(MANY)],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS.keys())
def test_the_order_is_that_of_pythons_sort(keys: list[Any]) -> None:
    assert indexes_in_ascending_order(Counted(), keys) == sorted(range(len(keys)), key=keys.__getitem__)


@pytest.mark.parametrize("keys", [each for each in KEYS.values() if len(each) == MANY])
def test_sorting_checks_the_clock_for_each_part(keys: list[Any]) -> None:
    """A single call that sorts a hundred thousand equal texts of 100 KB takes a tenth of a second."""
    counted = Counted()
    indexes_in_ascending_order(counted, keys)
    assert counted.looks >= MANY // STEP // 2
    with pytest.raises(BudgetExceeded):
        indexes_in_ascending_order(Late(looks=MANY // STEP // 4), keys)


class Compared(str):
    __slots__ = ()
    times = 0

    def __lt__(self, other: str) -> bool:
        type(self).times += 1
        return str.__lt__(self, other)


def test_a_repeated_long_text_is_compared_once() -> None:
    texts = Random(4).choices([Compared(text) for text in LONG_TEXTS], k=MANY)
    indexes_in_ascending_order(Counted(), texts)
    assert 0 < Compared.times <= len(LONG_TEXTS) ** 2
