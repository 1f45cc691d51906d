"""Which tasks of a Job wait for each other in a cycle."""

from __future__ import annotations

import pytest

from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.facts.volcano.job_dependencies_and_deadlocks import find_names_waiting_in_cycles
from webhook.typed.view import ReadingContext, Typed


@pytest.mark.parametrize(
    ("targets", "waiting"),
    [
        ({"a": [], "b": ["a"], "c": ["a", "b"]}, []),
        ({"a": ["a"]}, ["a"]),
        ({"a": ["b"], "b": ["a"], "c": []}, ["a", "b"]),
        ({"a": [], "b": ["c", "a"], "c": ["b"], "d": ["b"]}, ["b", "c", "d"]),
        ({"a": [], "b": ["a", "a"]}, []),
    ],
    ids=["a chain", "itself", "two", "one that waits for a cycle", "one name twice"],
)
def test_names_that_wait_in_a_cycle_are_found(targets: dict[str, list[str]], waiting: list[str]) -> None:
    assert find_names_waiting_in_cycles(targets, Typed.of({})) == waiting


def test_a_large_graph_ends_with_the_time() -> None:
    targets = {"a": [], "b": ["a"] * 10, **{str(number): ["a"] for number in range(1000)}}
    with pytest.raises(BudgetExceeded):
        find_names_waiting_in_cycles(targets, Typed.of({}, (), ReadingContext(Deadline(at=0))))
