"""Bounds the memory of the watches of one view, also while a watch reads a list.

Above the bound, the objects of one kind in one namespace are dropped, and lookups of these objects fail. The namespace
is the namespace with the most bytes, and the kind is its kind with the most bytes. A Namespace counts for the namespace
with the same name, because the creator of a Namespace chooses its labels. Administrators create the other
cluster-scoped objects. Cluster-scoped objects of a kind are dropped only if all cluster-scoped objects together
exceed the bound.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator
from sys import getsizeof
from typing import Final, Protocol

from webhook.apimachinery.attributes import JSON

PLACE_BYTES: Final = 320
"""Bytes of an object without its values: namespace, name, and entries in tables and lists."""


class EvictableStore(Protocol):
    """A store of one watch that can drop a namespace."""

    def drop_namespace(self, namespace: str) -> None:
        """Drop the objects of a namespace, so that their lookups fail."""
        ...


_OF_CLUSTER: Final = ""
"""The namespace for which the bytes of cluster-scoped objects count."""
_MOST_SHARED: Final = 4096
_LONGEST_SHARED: Final = 64
"""The maximum length of a shared key, in characters. The longest field name of Kubernetes has 47 characters."""


class SharedKeys:
    """The keys that objects of a view share: the first keys that arrive, for as long as the view lives.

    There are about a hundred field names. Users may write any number of other keys, so the bytes of keys that are not
    shared are counted with their objects.
    """

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def share(self, key: str) -> str:
        """Return the shared copy of a key, or the key itself."""
        shared = self._keys.get(key)
        if shared is not None:
            return shared
        if len(key) <= _LONGEST_SHARED and len(self._keys) < _MOST_SHARED:
            self._keys[key] = key
        return key


class ViewMemory:
    """Counts the bytes of each namespace for all watches of a view. Only the threads of watches change the counts.

    Attributes:
        most_bytes: the bound; None means no bound.
        lock: held while a watch changes stored objects; lookups never wait for it.
        decoding: held while a watch decodes and reduces one object: only one whole object takes memory at a time.
        bytes: the bytes of all objects.
        dropped: how many times a kind of a namespace was dropped.
        keys: the shared keys; changed only under `decoding`.
    """

    __slots__ = ("_namespaces", "_totals", "bytes", "decoding", "dropped", "keys", "lock", "most_bytes")

    def __init__(self, most_bytes: int | None = None) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.RLock()
        self.decoding = threading.Lock()
        self.bytes = 0
        self.dropped = 0
        self.keys = SharedKeys()
        self._namespaces: dict[str, dict[EvictableStore, int]] = {}
        self._totals: dict[str, int] = {}

    def add_bytes(self, keeper: EvictableStore, namespace: str, size: int) -> None:
        """Add to the bytes of a watch for a namespace. `size` is negative for removed objects. The caller holds the
        lock.

        Objects are dropped until the bytes fit the bound, perhaps also the object that was just added.
        """
        sizes = self._namespaces.setdefault(namespace, {})
        sizes[keeper] = sizes.get(keeper, 0) + size
        self._add_to_total(namespace, size)
        if not sizes[keeper]:
            self.forget_namespace(keeper, namespace)
        while self.most_bytes is not None and self.bytes > self.most_bytes:
            self._drop_largest_namespace()

    def forget_namespace(self, keeper: EvictableStore, namespace: str) -> None:
        """Subtract the bytes of a watch for one namespace. The caller holds the lock."""
        sizes = self._namespaces.get(namespace, {})
        self._add_to_total(namespace, -sizes.pop(keeper, 0))
        if not sizes:
            self._namespaces.pop(namespace, None)
            self._totals.pop(namespace, None)

    def forget_all(self, keeper: EvictableStore) -> None:
        """Subtract all bytes of a watch. The caller holds the lock."""
        for namespace in [name for name, sizes in self._namespaces.items() if keeper in sizes]:
            self.forget_namespace(keeper, namespace)

    def _add_to_total(self, namespace: str, size: int) -> None:
        self._totals[namespace] = self._totals.get(namespace, 0) + size
        self.bytes += size

    def _drop_largest_namespace(self) -> None:
        totals, of_cluster = self._totals, self._totals.get(_OF_CLUSTER, 0)
        if of_cluster > (self.most_bytes or 0):
            namespace = _OF_CLUSTER
        else:
            namespace = max((name for name in totals if name != _OF_CLUSTER), key=totals.__getitem__)
        sizes = self._namespaces[namespace]
        keeper = max(sizes, key=sizes.__getitem__)
        keeper.drop_namespace(namespace)
        self.forget_namespace(keeper, namespace)
        self.dropped += 1


def bytes_of_object(obj: JSON, shared: Container[str] = ()) -> int:
    """Return the bytes of an object without its shared keys."""
    return PLACE_BYTES + sum(map(getsizeof, _all_nested_values(obj, shared)))


def _all_nested_values(json: JSON, shared: Container[str]) -> Iterator[JSON]:
    """Yield a value, all values in it, and its keys that are not shared."""
    waiting = [json]
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, dict):
            waiting += value.values()
            yield from (key for key in value if key not in shared)
        elif isinstance(value, list):
            waiting += value
