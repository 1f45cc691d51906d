"""Any pattern of a user is compiled within bounds of time and memory. A pattern above these bounds is not called
invalid.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.random_patterns import random_pattern
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.library import patterns
from webhook.cel.library.patterns import (
    LARGE_BYTES,
    SMALL_BYTES,
    PatternTable,
    compile_policy_pattern,
    compile_user_pattern,
)
from webhook.cel.types import STRING
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CompileError, TooLargeToCompile
from webhook.text.caches import bytes_of_all_caches

LARGE = r"\pL{100}"
"""Forty thousand instructions: too many for the event loop."""
TOO_LARGE = r"(\pL{900}|\PN{900})"
"""Go accepts this pattern, which has 1,800 instructions in Go and 800,000 in RE2."""


class Asked(Deadline):
    """A deadline that records the longest announced time of a call, and refuses calls above a limit."""

    def __init__(self, most_s: float) -> None:
        super().__init__()
        self.most_s = most_s
        self.seconds = 0.0

    def require_time_for_call(self, seconds: float) -> None:
        self.seconds = max(self.seconds, seconds)
        if seconds > self.most_s:
            raise BudgetExceeded


def test_a_cached_pattern_is_not_compiled_again() -> None:
    assert compile_user_pattern("a+b", Deadline()) is compile_user_pattern("a+b", Deadline())


def test_a_large_pattern_reserves_time_and_is_not_cached() -> None:
    with pytest.raises(BudgetExceeded):
        compile_user_pattern(LARGE, Asked(0.1))
    before = bytes_of_all_caches()
    assert compile_user_pattern(LARGE, Deadline()).bytes > LARGE_BYTES
    assert bytes_of_all_caches() == before
    assert compile_user_pattern(LARGE, Deadline()) is not compile_user_pattern(LARGE, Deadline())


def test_many_classes_take_time_to_read() -> None:
    asked = Asked(0.1)
    with pytest.raises(BudgetExceeded):
        compile_user_pattern(r"(?i)" + "|".join([r"\pL"] * 1000), asked)


@pytest.mark.parametrize("expression", [f"text.matches(r'{TOO_LARGE}')", f"text.find(r'{TOO_LARGE}') == ''"])
def test_a_too_large_pattern_is_not_called_invalid(expression: str) -> None:
    environment = Environment(variables={"text": STRING})
    with pytest.raises(TooLargeToCompile, match="is too large: simplify it"):
        compiled_engine().compile(expression, environment, deadline=Deadline())


@pytest.mark.parametrize("call", ["text.matches(pattern) || true", "text.find(pattern) == '' || true"])
def test_the_error_of_a_too_large_pattern_is_not_absorbed(call: str) -> None:
    program = compiled_engine().compile(call, Environment(variables={"text": STRING, "pattern": STRING}))
    with pytest.raises(TooLargeToCompile):
        program.evaluate({"text": "a", "pattern": TOO_LARGE}, CostMeter(deadline=Deadline()))


def test_a_wrong_pattern_is_called_invalid() -> None:
    with pytest.raises(CompileError, match="invalid matches argument"):
        compiled_engine().compile("text.matches('(')", Environment(variables={"text": STRING}), deadline=Deadline())


def test_constant_patterns_of_one_expression_are_bounded_together() -> None:
    found = PatternTable(Deadline())
    found.compiled_pattern(LARGE + "1")
    found.compiled_pattern(LARGE + "2")
    with pytest.raises(TooLargeToCompile, match="too large together"):
        found.compiled_pattern(LARGE + "3")


def test_patterns_of_a_policy_are_not_limited_by_the_user_cache() -> None:
    assert compile_policy_pattern(LARGE) is compile_policy_pattern(LARGE) is compile_user_pattern(LARGE, Asked(0.0))


def test_the_time_to_search_a_long_text_is_reserved() -> None:
    assert compile_user_pattern("(x?){500}x{500}y", Deadline()).step_s > 1e-5
    assert compile_policy_pattern("(x?){500}x{500}y").step_s == 0


def test_random_patterns_stay_within_the_bounds() -> None:
    """RE2 stops at its memory bound. tests/bench/bounds measures its time."""
    chosen, counts = random.Random(11), {"small": 0, "large": 0, "refused": 0}
    for _ in range(1000):
        text, asked = random_pattern(chosen, chosen.randrange(2, 7)), Asked(0.1)
        try:
            counts["small"] += compile_user_pattern(text, asked).bytes < 2 * SMALL_BYTES + len(text) * 8192
        except BudgetExceeded:
            counts["large"] += 1
        except ValueError:
            counts["refused"] += 1
    assert min(counts.values()) > 50
    assert sum(counts.values()) == 1000
    assert patterns._KEPT.bytes <= 8 << 20


@pytest.mark.parametrize(
    "compiled", [compile_policy_pattern, lambda text: compile_user_pattern(text, Deadline())], ids=["policy", "user"]
)
def test_a_pattern_for_any_byte_is_refused_as_in_go(compiled: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match="invalid escape sequence"):
        compiled(r"\C")
