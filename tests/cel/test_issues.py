"""The issues of one expression are few and short, with any number of mistakes."""

from __future__ import annotations

import tracemalloc

import pytest

from webhook.cel import compiled_engine
from webhook.cel.environment import Environment
from webhook.cel.syntax.issues import IssueList
from webhook.cel.types import INT, optional_of
from webhook.errors import CompileError
from webhook.text.terminal import message_lines

ENVIRONMENT = Environment(variables={"x": INT, "maybe": optional_of(INT)})


def error_of(source: str, environment: Environment = ENVIRONMENT) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compiled_engine().compile(source, environment)
    return caught.value


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param(f"[{', '.join(['a'] * 8_000)}]", 8_000, id="unknown names"),
        pytest.param("x == 1 && " * 100 + "#" * 8_000, 8_001, id="characters that begin no token"),
        pytest.param(" || ".join(["maybe"] * 3_000), 3_000, id="values that are not bools"),
        pytest.param(f"[{', '.join(['9' * 20] * 2_000)}]", 2_000, id="numbers that are too large"),
        pytest.param(" || ".join(['"a".matches("(")'] * 2_000), 2_000, id="constants that fail"),
    ],
)
def test_ten_issues_are_printed_with_a_part_of_their_line(source: str, count: int) -> None:
    error = error_of(source)
    assert error.count == count
    assert len(error.issues) == 10
    lines = str(error).splitlines()
    assert lines[-1] == f" | and {count - 10} more"
    assert max(map(len, lines)) < 500
    assert message_lines(str(error)) == lines  # a terminal shows the same lines


def test_a_line_that_is_short_is_printed_whole() -> None:
    assert str(error_of("x == 1 &&\n\tunknown == x")) == (
        "ERROR: <input>:2:2: undeclared reference to 'unknown' (in container '')\n |  unknown == x\n | .^"
    )


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (0, 300, "unknown == x && x == 1"),
        (60, 0, "x == 1 && unknown"),
        (60, 60, "x == 1 && unknown == x && x == 1"),
    ],
)
def test_the_caret_is_below_the_place_of_a_long_line(before: int, after: int, shown: str) -> None:
    _, line, caret = str(error_of("x == 1 && " * before + "unknown == x" + " && x == 1" * after)).splitlines()
    assert shown in line
    assert line[caret.index("^") :].startswith("unknown")
    assert len(line) < 210


def test_repeated_issues_of_a_macro_are_counted_and_not_copied() -> None:
    """cel-go repeats the issues of the operand of `optMap`, so each nesting doubles their number."""
    source = "unknown" + ".optMap(a, a)" * 60
    tracemalloc.start()
    error = error_of(source, Environment(variables={}, extensions=frozenset({"optional"})))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.count >= 2**50
    assert "and millions more" in str(error)
    assert most < 20 << 20


def test_memory_for_many_issues_is_that_of_the_tree() -> None:
    source = f"[{', '.join(['a'] * 8_000)}]"
    tracemalloc.start()
    text = str(error_of(source))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(text) < 10_000
    assert most < 60 << 20  # 8,000 copies of the line alone needed 256 MB


def test_places_are_computed_only_for_kept_issues() -> None:
    issues = IssueList("a\nb")
    for _ in range(1_000):
        issues.report("wrong", 2)
    issues.repeat_since(0)
    assert (issues.count, len(issues.kept), issues.kept[0].line) == (2_000, 100, 2)
