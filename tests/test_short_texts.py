"""Answers about short texts are kept, those about long ones are not."""

from __future__ import annotations

import pytest

from webhook.short_texts import LONGEST_KEPT, kept_for_short_texts

HALF = LONGEST_KEPT // 2


@pytest.mark.parametrize(
    ("first", "second", "times"),
    [("", "", 1), ("a" * HALF, "b" * HALF, 1), ("a" * HALF, "b" * (HALF + 1), 2), ("a" * (LONGEST_KEPT + 1), "", 2)],
    ids=["empty", "as long as may be", "together too long", "one too long"],
)
def test_a_function_is_asked_again_of_long_texts(first: str, second: str, times: int) -> None:
    asked = []

    @kept_for_short_texts(10)
    def join(one: str, other: str) -> str:
        asked.append((one, other))
        return one + other

    assert [join(first, second), join(first, second)] == [first + second] * 2
    assert len(asked) == times


def test_only_the_latest_answers_are_kept() -> None:
    asked = []

    @kept_for_short_texts(2)
    def upper(text: str) -> str:
        asked.append(text)
        return text.upper()

    assert [upper(each) for each in "abca"] == ["A", "B", "C", "A"]
    assert asked == ["a", "b", "c", "a"]
