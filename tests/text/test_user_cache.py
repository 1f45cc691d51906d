"""Tables of user input hold a bounded number of bytes, and one sum counts all tables."""

from __future__ import annotations

import random
import sys

from webhook.text.caches import ENTRY, TwoGenerationCache, bytes_of_all_caches, json_bytes

LARGEST = 10_000
MOST = 16 * (LARGEST + ENTRY)


def table() -> TwoGenerationCache[int, int | None]:
    return TwoGenerationCache(MOST)


def test_a_cached_value_is_found() -> None:
    cache = table()
    cache.put(1, 10, 100)
    assert (cache.get(1, None), cache.get(2, None)) == (10, None)


def test_a_table_never_holds_more_than_its_bytes() -> None:
    cache, chosen = table(), random.Random(5)
    for number in range(10_000):
        cache.put(number, number, chosen.randrange(2 * LARGEST))
        assert cache.bytes <= MOST
    assert cache.get(0, None) is None


def test_a_full_cache_keeps_the_latest_half() -> None:
    cache = table()
    for number in range(100):
        cache.put(number, number, LARGEST)
        assert all(cache.get(earlier, None) == earlier for earlier in range(max(0, number - 7), number + 1))


def test_one_entry_does_not_push_out_all_others() -> None:
    cache = table()
    cache.put(1, 1, 10)
    cache.put(2, 2, LARGEST + 1)
    assert (cache.get(1, None), cache.get(2, None), cache.largest_entry_bytes) == (1, None, LARGEST)


def test_all_tables_are_counted() -> None:
    before = bytes_of_all_caches()
    cache = table()
    cache.put(1, 1, 1000)
    assert bytes_of_all_caches() == before + 1000 + ENTRY
    del cache
    assert bytes_of_all_caches() == before


def test_json_is_encoded_as_these_bytes() -> None:
    assert json_bytes("abc", 1000) == sys.getsizeof("abc")
    assert json_bytes({"a": ["x" * 500]}, 10_000) > 500
    assert json_bytes([[i] for i in range(10**5)], 1000) > 1000
