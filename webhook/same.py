"""A key by identity, under which is kept what was made of a thing that never changes.

A view gives the same object, or sequence of objects, until it changes. Knows nothing of what is kept.
"""

from __future__ import annotations

from typing import Any


class IdentityKey:
    """A key that is equal to another one only if both hold the very same thing. Made hundreds of times a request."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)
