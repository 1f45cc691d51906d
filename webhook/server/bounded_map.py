"""A map of bounded size that drops its oldest entries, for what is remembered of tenants, which clients can invent."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
MAX_ENTRIES: Final = 4096
"""About 1 MB in all; a cluster has fewer namespaces with traffic within the seconds that are remembered."""


class BoundedMap(Generic[Key, Value]):
    """A map of at most MAX_ENTRIES; setting one more drops the entry that was set longest ago. For one thread alone."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Return the value that was last set for the key, or None."""
        return self._entries.get(key)

    def discard(self, key: Key) -> None:
        """Remove the key and its value, if it is there."""
        self._entries.pop(key, None)

    def set(self, key: Key, value: Value) -> None:
        """Set the value of a key, and drop the entry that was set longest ago when the map is full."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > MAX_ENTRIES:
            self._entries.popitem(last=False)
