"""Lists and maps behave like those of Python, and their walks are charged."""

import pytest

from webhook.deadline import STEP, Deadline
from webhook.errors import BudgetExceeded
from webhook.typed.collections import Entries, Items

LONG = 10 * STEP


def test_items_behave_like_a_list():
    items = Items(["a", "b", "c"], Deadline())
    assert (len(items), items[1], list(items[1:]), "c" in items, bool(Items((), Deadline()))) == (
        3,
        "b",
        ["b", "c"],
        True,
        False,
    )
    assert items == ["a", "b", "c"]
    assert items != ["a"]
    assert items != "abc"


def test_other_values_are_charged_like_the_list():
    with pytest.raises(BudgetExceeded):
        list(Items((), Deadline(at=0)).of(range(LONG)))


def test_items_share_values_with_a_set():
    items = Items(["a", "b"], Deadline())
    assert [items.has_any_of(frozenset(values)) for values in ("bc", "cd", "")] == [True, False, False]


def test_entries_behave_like_a_map():
    entries = Entries({"a": 1, "b": 2}, Deadline())
    assert (len(entries), entries["a"], entries.get("c"), entries.get("c", 3), "b" in entries) == (2, 1, None, 3, True)
    assert (list(entries), list(entries.keys()), list(entries.values())) == (["a", "b"], ["a", "b"], [1, 2])
    assert dict(entries.items()) == {"a": 1, "b": 2} == {**entries}
    assert entries == {"a": 1, "b": 2}
    assert entries == Entries({"b": 2, "a": 1}, Deadline())


@pytest.mark.parametrize(
    "walk",
    [
        list,
        lambda items: -1 in items,
        lambda items: items == [0],
        lambda items: [pair for pair in zip(items, items, strict=True)],  # noqa: C416
    ],
)
def test_a_walk_over_a_long_list_ends_with_the_time(walk):
    with pytest.raises(BudgetExceeded):
        walk(Items(range(LONG), Deadline(at=0)))


@pytest.mark.parametrize("walk", [list, Entries.keys, Entries.values, lambda entries: list(entries.items())])
def test_a_walk_over_a_long_map_ends_with_the_time(walk):
    with pytest.raises(BudgetExceeded):
        walk(Entries({str(index): 0 for index in range(LONG)}, Deadline(at=0)))


def test_many_short_walks_end_with_the_time():
    items = Items(["a"], Deadline(at=0))
    with pytest.raises(BudgetExceeded):
        [list(items) for _ in range(2 * STEP)]


def test_reading_one_entry_charges_no_time():
    deadline = Deadline()
    items, entries = Items(["a"], deadline), Entries({"a": 1}, deadline)
    for _ in range(STEP):
        assert (items[0], entries["a"], entries.get("b")) == ("a", 1, None)
    assert deadline.left == STEP
