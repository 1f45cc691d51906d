"""Caches for texts of users. Each cache is bounded in bytes, and the sum of all bounds is known.

Users choose the size of the keys, so a limit on the number of entries would not bound the memory. Callers pass an upper
bound for the bytes of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from sys import getsizeof
from typing import Any, Final, Generic, TypeVar, cast
from weakref import WeakSet

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ENTRY: Final = 200
"""The bytes of an entry without key and value: places in the dict, a tuple for the key."""
_SHARE: Final = 8
"""An entry that needs more than this part of a cache is not kept, because it would replace many other entries."""

_CACHES: Final[WeakSet[TwoGenerationCache]] = WeakSet()  # type: ignore[type-arg]


class TwoGenerationCache(Generic[Key, Value]):
    """A cache of two generations. Once the newer generation has half of the bytes, it replaces the older generation.

    A frequent key is computed once for each generation. A look-up may read two dicts; a caller can first read `newer`
    alone. While a thread adds an entry, other threads may not find the entry and compute it too.
    """

    __slots__ = ("__weakref__", "_half", "_newer_bytes", "_older", "_older_bytes", "newer")

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes` bounds all entries together."""
        self._half = most_bytes // 2
        self.newer: dict[Key, Value] = {}
        self._older: dict[Key, Value] = {}
        self._newer_bytes = self._older_bytes = 0
        _CACHES.add(self)

    def get(self, key: Key, missing: Value) -> Value:
        """Return the value of a key, or `missing` if the cache does not have it."""
        value = self.newer.get(key, missing)
        return self._older.get(key, missing) if value is missing else value

    def put(self, key: Key, value: Value, size: int) -> None:
        """Store a value, unless the value is too large.

        `size`: an upper bound for the bytes of the key, the value, and all objects that only the key and the value keep
        alive.
        """
        size += ENTRY
        if size > self._half // _SHARE:
            return
        if self._newer_bytes + size > self._half:
            self._older, self._older_bytes = self.newer, self._newer_bytes
            self.newer, self._newer_bytes = {}, 0
        self.newer[key] = value
        self._newer_bytes += size

    @property
    def largest_entry_bytes(self) -> int:
        """Return the bytes of the largest entry that the cache stores."""
        return self._half // _SHARE - ENTRY

    @property
    def bytes(self) -> int:
        """Return an upper bound for the bytes that the entries take."""
        return self._newer_bytes + self._older_bytes


def json_bytes(json: object, most: int) -> int:
    """Return how many bytes of memory a JSON value needs. Above `most`, the count is incomplete."""
    total, waiting = 0, [json]
    while waiting:
        value = waiting.pop()
        total += getsizeof(value)
        if total > most:
            break
        if isinstance(value, dict):
            total += sum(map(getsizeof, value))
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
    return total


def bytes_of_all_caches() -> int:
    """Return an upper bound for the bytes that the entries of all caches of this process take."""
    return sum(cache.bytes for cache in _CACHES)


LONGEST_KEPT: Final = 320
"""The maximum number of characters of all texts of a call. A name with its domain has at most 317, and most images have
fewer than 150.
"""
_RESULT_BYTES: Final = 300
"""The bytes of a result, without the texts in it."""
_MISSING: Final = object()

Function = TypeVar("Function", bound=Callable[..., Any])


def cache_for_short_texts(most_bytes: int) -> Callable[[Function], Function]:
    """Return a decorator that caches results of a function of positional texts, in up to `most_bytes`."""

    def decorate(function: Function) -> Function:
        kept: TwoGenerationCache[tuple[str, ...], Any] = TwoGenerationCache(most_bytes)

        @wraps(function)
        def called(*texts: str) -> Any:
            answer = kept.newer.get(texts, _MISSING)  # saves the call of `get`: a review has dozens of look-ups
            if answer is not _MISSING:
                return answer
            if sum(map(len, texts)) > LONGEST_KEPT:
                return function(*texts)
            answer = kept.get(texts, _MISSING)
            if answer is _MISSING:
                answer = function(*texts)
                kept.put(texts, answer, 2 * sum(map(getsizeof, texts)) + _RESULT_BYTES)
            return answer

        return cast("Function", called)

    return decorate


class IdentityKey:
    """A key that is equal to another key only if both have the identical object. Each request creates hundreds of these
    keys.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
