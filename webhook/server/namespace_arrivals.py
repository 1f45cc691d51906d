"""Lets reviews wait a moment for their namespace, which an API server may know before the view of the cluster does. A
namespace and its first Pod may be created at the same moment, before the watch delivers the namespace. Without its
labels no namespaceSelector can be decided. So the review waits without blocking the event loop; all waiting reviews
share one poll of the view. After that time the policies' failurePolicy decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final

from webhook.apimachinery.attributes import NAMESPACE, Attributes
from webhook.cluster import Cluster
from webhook.errors import LookupFailed

WAIT_S: Final = 0.2
"""The most seconds after its arrival for which a review waits."""
_LOOK_S: Final = 0.005
_MOST: Final = 1_000
"""How many namespaces are waited for at a time; a review of one more does not wait."""


class NamespaceArrivals:
    """The reviews that wait for namespaces, on one event loop."""

    def __init__(self, view: Callable[[], Cluster]) -> None:
        """Let nothing wait yet; `view` returns the view of the cluster of this moment."""
        self._view = view
        self._waiting: dict[str, _Arrival] = {}
        self._looking: asyncio.Task[None] | None = None

    def is_awaited(self, attributes: Attributes | None) -> bool:
        """Return whether the namespace of a request is missing from a view that could have it."""
        if attributes is None or not attributes.namespace or attributes.resource.resource == "namespaces":
            return False
        return not self._is_there(self._view(), attributes.namespace)

    async def wait_for(self, namespace: str, until: float) -> None:
        """Wait until the view has a namespace, at most until a moment of the monotonic clock."""
        arrival = self._waiting.get(namespace)
        if arrival is None:
            if len(self._waiting) >= _MOST:
                return
            arrival = self._waiting[namespace] = _Arrival()
        arrival.until = max(arrival.until, until)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_until_nobody_waits())
        with suppress(TimeoutError):
            async with asyncio.timeout(until - monotonic()):
                await arrival.wait()

    async def _look_until_nobody_waits(self) -> None:
        seen: object = None
        while self._waiting:
            view, now = self._view(), monotonic()
            revision = view.revision(NAMESPACE)
            changed, seen = revision != seen, revision
            for namespace, arrival in list(self._waiting.items()):
                if now >= arrival.until or (changed and self._is_there(view, namespace)):
                    del self._waiting[namespace]
                    arrival.set()
            await asyncio.sleep(_LOOK_S)

    @staticmethod
    def _is_there(view: Cluster, namespace: str) -> bool:
        """Return whether a namespace is in the view, or cannot be, so that waiting does not help."""
        try:
            return view.get(NAMESPACE, "", namespace) is not None
        except LookupFailed:
            return True


class _Arrival(asyncio.Event):
    """The arrival of one namespace; `until` is the last moment at which a review waits for it."""

    until = 0.0
