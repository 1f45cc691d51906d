"""What is remembered of the latest tenants, so many at most: those that nothing was noted of for longest are forgotten.

A user can invent names without end, so no table of theirs may grow with them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
MOST: Final = 4096


class Latest(Generic[Key, Value]):
    """A map of at most MOST entries, for one thread alone."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """What was noted last; reading it keeps nothing from being forgotten."""
        return self._entries.get(key)

    def note(self, key: Key, value: Value) -> None:
        """Remember a value, and forget the entry that is oldest where there are too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > MOST:
            self._entries.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Remember nothing of it any more."""
        self._entries.pop(key, None)
