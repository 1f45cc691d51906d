"""Which texts are durations of Go."""

from __future__ import annotations

import pytest

from webhook.schema.values import is_duration


@pytest.mark.parametrize("text", ["0", "1s", "-2m", ".5s", "1.s", "1.5h30m", "1ms5us"])
def test_a_duration_that_go_reads_is_valid(text):
    assert is_duration(text)


@pytest.mark.parametrize("text", ["", "1", "s", "1s2", ".s", "1..5s", "00"])
def test_a_text_that_go_refuses_is_not_a_duration(text):
    assert not is_duration(text)


@pytest.mark.parametrize(
    "text", ["9" * 1_000_000, "1s" * 500_000 + "x", "1." * 500_000], ids=["digits", "terms", "points"]
)
def test_a_long_text_is_read_once(text):
    assert not is_duration(text)
