"""BoundedMap drops its oldest entries when it has too many."""

from sys import getsizeof

from webhook.server.usage import MAX_ENTRIES, MAX_KEY_BYTES, BoundedMap


def test_the_oldest_entry_is_dropped_first():
    values: BoundedMap[str, str] = BoundedMap()
    for number in range(MAX_ENTRIES):
        values.set(str(number), "old")
    values.set("0", "new")
    values.set("one more", "one more")
    assert (values.get("0"), values.get("1"), values.get("one more"), len(values)) == (
        "new",
        None,
        "one more",
        MAX_ENTRIES,
    )


def test_names_count_by_bytes_and_not_only_by_entries():
    """A hostile client sends another user name in every review, with 512 characters of four bytes."""
    values: BoundedMap[tuple[str, ...], int] = BoundedMap()
    for number in range(MAX_ENTRIES):
        values.set((f"{number}\N{GRINNING FACE}" * 100, "same"), number)
        values.set((f"{number}\N{GRINNING FACE}" * 100, "same"), number + 1)
    assert 0 < len(values) < MAX_ENTRIES / 2
    sizes = [sum(map(getsizeof, (f"{number}\N{GRINNING FACE}" * 100, "same"))) for number in range(MAX_ENTRIES)]
    assert sum(sizes[-len(values) :]) <= MAX_KEY_BYTES < sum(sizes[-len(values) - 1 :])
    assert values.get((f"{MAX_ENTRIES - 1}\N{GRINNING FACE}" * 100, "same")) == MAX_ENTRIES


def test_discarded_entries_use_no_memory():
    values: BoundedMap[str, int] = BoundedMap()
    for number in range(MAX_ENTRIES):
        values.set("x" * (MAX_KEY_BYTES // 2), number)
        values.discard("x" * (MAX_KEY_BYTES // 2))
        values.discard("never set")
    values.set("a", 1)
    values.set("b" * (MAX_KEY_BYTES // 2), 2)
    assert (values.get("a"), len(values)) == (1, 2)
