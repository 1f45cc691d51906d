"""Bounds what the watches of one view keep of objects in namespaces, which their users may write.

Above the bound, the namespace that has most loses the kind that it has most of: lookups of these objects then fail,
which policies report as unknown, and other namespaces keep theirs. Objects without a namespace are as many as whoever
runs the cluster has made, and are kept whatever they take. Knows namespaces and bytes, and nothing of objects.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from sys import getsizeof
from typing import Final, Protocol

from webhook.attributes import JSON

PLACE_BYTES: Final = 320
"""Bytes of an object beside its values: namespace and name, its places in two tables."""


class EvictableStore(Protocol):
    """A store of one watch's objects, which can drop those of a namespace."""

    def drop_namespace(self, namespace: str) -> None:
        """Drop the objects of a namespace, and answer from now on that they are not held."""
        ...


class ViewMemory:
    """Counts the bytes of each namespace for all watches of a view; their threads change it, any thread reads it.

    Attributes:
        most_bytes: the bound; None is none.
        lock: held by a thread of a watch while it changes what is kept; lookups never wait for it.
        bytes: of all namespaces together.
        dropped: how often a kind of a namespace was let go.
    """

    __slots__ = ("_namespaces", "bytes", "dropped", "lock", "most_bytes")

    def __init__(self, most_bytes: int | None = None) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.RLock()
        self.bytes = 0
        self.dropped = 0
        self._namespaces: dict[str, dict[EvictableStore, int]] = {}

    def add_bytes(self, keeper: EvictableStore, namespace: str, size: int) -> None:
        """Add bytes, negative ones where objects went, to those that a watch keeps of a namespace; the caller has the
        lock.

        What exceeds the bound is let go, which may be what was just added.
        """
        if not namespace:
            return
        sizes = self._namespaces.setdefault(namespace, {})
        sizes[keeper] = sizes.get(keeper, 0) + size
        self.bytes += size
        if not sizes[keeper]:
            del sizes[keeper]
            if not sizes:
                del self._namespaces[namespace]
        while self.most_bytes is not None and self.bytes > self.most_bytes:
            self._drop_largest_namespace()

    def forget_namespace(self, keeper: EvictableStore, namespace: str) -> None:
        """Remove the bytes of a namespace from those that are counted for a watch; the caller has the lock."""
        sizes = self._namespaces.get(namespace, {})
        self.bytes -= sizes.pop(keeper, 0)
        if not sizes:
            self._namespaces.pop(namespace, None)

    def forget_all(self, keeper: EvictableStore) -> None:
        """Remove all bytes that are counted for a watch; the caller has the lock."""
        for namespace in [name for name, sizes in self._namespaces.items() if keeper in sizes]:
            self.forget_namespace(keeper, namespace)

    def _drop_largest_namespace(self) -> None:
        namespace = max(self._namespaces, key=lambda name: sum(self._namespaces[name].values()))
        sizes = self._namespaces[namespace]
        keeper = max(sizes, key=sizes.__getitem__)
        keeper.drop_namespace(namespace)
        self.forget_namespace(keeper, namespace)
        self.dropped += 1


def bytes_of_object(obj: JSON) -> int:
    """Return how many bytes an object takes in a view, whose keys are shared by all objects."""
    return PLACE_BYTES + sum(map(getsizeof, _all_nested_values(obj)))


def _all_nested_values(json: JSON) -> Iterator[JSON]:
    waiting = [json]
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
