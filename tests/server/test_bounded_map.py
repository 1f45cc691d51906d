"""A map that forgets."""

from webhook.server.bounded_map import MAX_ENTRIES, BoundedMap


def test_what_was_set_longest_ago_is_forgotten_first():
    values: BoundedMap[int, str] = BoundedMap()
    for number in range(MAX_ENTRIES):
        values.set(number, "old")
    values.set(0, "new")
    values.set(-1, "one more")
    assert (values.get(0), values.get(1), values.get(-1), len(values)) == ("new", None, "one more", MAX_ENTRIES)
