"""A map of bounded size that drops its oldest entries, for what is remembered of tenants, which clients can invent."""

from __future__ import annotations

from collections import OrderedDict
from sys import getsizeof
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound="str | tuple[str, ...]")
Value = TypeVar("Value")
MAX_ENTRIES: Final = 4096
"""A cluster has fewer namespaces with traffic within the seconds that are remembered."""
MAX_KEY_BYTES: Final = 512 * 1024
"""What the names take together: 4,096 names of 79 characters, or as many as fit of those that clients make longer."""


class BoundedMap(Generic[Key, Value]):
    """A map of at most MAX_ENTRIES, whose keys take at most MAX_KEY_BYTES. For one thread alone.

    Setting one more drops the entries that were set longest ago.
    """

    __slots__ = ("_entries", "_key_bytes")

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._key_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Return the value that was last set for the key, or None."""
        return self._entries.get(key)

    def discard(self, key: Key) -> None:
        """Remove the key and its value, if it is there."""
        if key in self._entries:
            del self._entries[key]
            self._key_bytes -= _bytes_of_key(key)

    def set(self, key: Key, value: Value) -> None:
        """Set the value of a key, and drop the entries that were set longest ago while the map is too large."""
        if key not in self._entries:
            self._key_bytes += _bytes_of_key(key)
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_ENTRIES or self._key_bytes > MAX_KEY_BYTES:
            oldest, _ = self._entries.popitem(last=False)
            self._key_bytes -= _bytes_of_key(oldest)


def _bytes_of_key(key: str | tuple[str, ...]) -> int:
    return getsizeof(key) if isinstance(key, str) else sum(map(getsizeof, key))
