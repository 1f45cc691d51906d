"""Tables of texts of users, bounded in bytes: by short texts, by identity, and one sum for all of them.

A user chooses the keys and their size, so the number of entries is not a bound. A caller that stores a value passes the
most bytes of the value.
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
"""Bytes of an entry, without its key and its value: its places in the dict, and a tuple for the key."""
_SHARE: Final = 8
"""An entry that needs more than this part of a table is not kept: it would push out everything else."""

_CACHES: Final[WeakSet[TwoGenerationCache]] = WeakSet()  # type: ignore[type-arg]


class TwoGenerationCache(Generic[Key, Value]):
    """A table of two generations: when the newer one has half of the bytes, it becomes the older one, which is dropped.

    So a frequent key is computed again once a generation, and a look-up in a table is a look-up in two dicts. A look-up
    while another thread adds an entry returns the entry or nothing; both threads may compute it. `newer` is for callers
    that first look only in the newer generation.
    """

    __slots__ = ("__weakref__", "_half", "_newer_bytes", "_older", "_older_bytes", "newer")

    def __init__(self, most_bytes: int) -> None:
        """Begin empty.

        Args:
            most_bytes: the bound for all entries together.
        """
        self._half = most_bytes // 2
        self.newer: dict[Key, Value] = {}
        self._older: dict[Key, Value] = {}
        self._newer_bytes = self._older_bytes = 0
        _CACHES.add(self)

    def get(self, key: Key, missing: Value) -> Value:
        """Return the value that is kept under a key, or `missing`."""
        value = self.newer.get(key, missing)
        return self._older.get(key, missing) if value is missing else value

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value.

        Args:
            key: its key.
            value: the value.
            size: the most bytes of the key, the value, and everything that only they keep alive.
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
        """Return how many bytes an entry may have to be kept."""
        return self._half // _SHARE - ENTRY

    @property
    def bytes(self) -> int:
        """Return how many bytes the entries take at most."""
        return self._newer_bytes + self._older_bytes


def json_bytes(json: object, most: int) -> int:
    """Return how many bytes of memory a JSON value needs; counting ends soon after `most`."""
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
    """Return how many bytes all tables of this process hold at most."""
    return sum(cache.bytes for cache in _CACHES)


LONGEST_KEPT: Final = 320
"""Characters of all texts of one call: a name with its domain has 317 at most, most images have fewer than 150."""
_VALUE: Final = 300
"""Bytes of an answer, without the texts in it."""
_MISSING: Final = object()

Function = TypeVar("Function", bound=Callable[..., Any])


def cache_for_short_texts(most_bytes: int) -> Callable[[Function], Function]:
    """Return a decorator that caches a function's answers, up to a number of bytes; the arguments are texts, by
    position.
    """

    def decorate(function: Function) -> Function:
        kept: TwoGenerationCache[tuple[str, ...], Any] = TwoGenerationCache(most_bytes)

        @wraps(function)
        def called(*texts: str) -> Any:
            answer = kept.newer.get(texts, _MISSING)  # as nearly always: without a call, dozens a review
            if answer is not _MISSING:
                return answer
            if sum(map(len, texts)) > LONGEST_KEPT:
                return function(*texts)
            answer = kept.get(texts, _MISSING)
            if answer is _MISSING:
                answer = function(*texts)
                kept.put(texts, answer, 2 * sum(map(getsizeof, texts)) + _VALUE)
            return answer

        return cast("Function", called)

    return decorate


class IdentityKey:
    """A key that is equal to another key only if both have the identical object. Made hundreds of times a request."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)
