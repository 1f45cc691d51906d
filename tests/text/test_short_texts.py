"""Results for short texts are cached, and results for long texts are not."""

from __future__ import annotations

import pytest

from webhook.text.caches import LONGEST_KEPT, bytes_of_all_caches, cache_for_short_texts

HALF = LONGEST_KEPT // 2


@pytest.mark.parametrize(
    ("first", "second", "times"),
    [("", "", 1), ("a" * HALF, "b" * HALF, 1), ("a" * HALF, "b" * (HALF + 1), 2), ("a" * (LONGEST_KEPT + 1), "", 2)],
    ids=["empty", "exactly as long as allowed", "texts that are too long together", "one text that is too long"],
)
def test_a_function_is_called_again_for_long_texts(first: str, second: str, times: int) -> None:
    asked = []

    @cache_for_short_texts(1 << 20)
    def join(one: str, other: str) -> str:
        asked.append((one, other))
        return one + other

    assert [join(first, second), join(first, second)] == [first + second] * 2
    assert len(asked) == times


def test_cached_answers_are_bounded_by_bytes() -> None:
    asked = []
    before = bytes_of_all_caches()

    @cache_for_short_texts(1 << 20)
    def upper(text: str) -> str:
        asked.append(text)
        return text.upper()

    texts = [f"{number:05}{'x' * 100}" for number in range(3000)]
    assert list(map(upper, [*texts, texts[-1], texts[0]])) == [text.upper() for text in [*texts, texts[-1], texts[0]]]
    assert asked == [*texts, texts[0]]
    assert 0 < bytes_of_all_caches() - before <= 1 << 20


def test_none_is_cached_too() -> None:
    asked = []

    @cache_for_short_texts(1 << 20)
    def nothing(text: str) -> None:
        asked.append(text)

    assert [nothing("a"), nothing("a")] == [None, None]
    assert asked == ["a"]
