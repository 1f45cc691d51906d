"""A live view: a watch cache for exactly the kinds that somebody asks for.

One thread a kind lists, then watches, as client-go's reflector does (k8s.io/client-go v0.36.1
tools/cache/reflector.go): resume at the last resourceVersion, list anew on 410, back off on errors. Once synced, a kind
keeps answering from what it has while the API server is away; a kind that is not served, or not yet synced, raises
LookupFailed. Reads only.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.connection import Connection, Lines, ServerRefused
from webhook.errors import LookupFailed
from webhook.logs import Log

PAGE: Final = "500"
"""Objects of one page of a list: client-go's default."""
WATCH_S: Final = 300
"""A watch is asked to end after this many seconds, so that half-open connections do not stay."""
BACKOFF_S: Final = (0.8, 30.0)
"""First and longest wait after an error, doubled in between: those of client-go's reflector."""
_GONE: Final = 410


class WatchCluster:
    """Watch caches of the given kinds. start() begins, wait() waits for the first lists, close() ends the threads."""

    def __init__(
        self,
        connection: Connection,
        kinds: Iterable[GroupVersionKind],
        log: Log,
        backoff_s: tuple[float, float] = BACKOFF_S,
    ) -> None:
        self._connection = connection
        self._log = log
        self._backoff_s = backoff_s
        self._caches: dict[tuple[str, str], _Cache] = {}
        self._started = False
        self.watch(kinds)

    def start(self) -> None:
        """Begin listing and watching."""
        self._started = True
        for cache in self._caches.values():
            cache.start()

    def watch(self, kinds: Iterable[GroupVersionKind]) -> None:
        """Hold exactly these kinds from now on; kinds already held stay as they are."""
        wanted = {(gvk.group, gvk.kind): gvk for gvk in kinds}
        caches = {
            key: self._caches.get(key) or _Cache(gvk, self._connection, self._log, self._backoff_s)
            for key, gvk in wanted.items()
        }
        old, self._caches = self._caches, caches
        for key in old.keys() - caches.keys():
            old[key].stop()
        if self._started:
            for key in caches.keys() - old.keys():
                caches[key].start()

    def wait(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> bool:
        """Wait until every kind is synced or is known not to be served; False when the time is over."""
        end = clock() + timeout_s
        return all(cache.settled.wait(max(0.0, end - clock())) for cache in self._caches.values())

    def failures(self) -> Mapping[GroupVersionKind, str]:
        """Why kinds are not synced, for readiness and logs."""
        return {cache.gvk: cache.failure for cache in self._caches.values() if cache.objects is None}

    def close(self) -> None:
        """End the threads."""
        for cache in self._caches.values():
            cache.stop()

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """The object, or None when the cache does not hold it.

        Raises:
            LookupFailed: the kind is not watched, not served, or not synced yet.
        """
        cache, objects = self._objects(gvk)
        return objects.get((namespace if cache.is_namespaced else "", name))

    def list(self, gvk: GroupVersionKind, namespace: str | None) -> Sequence[JSON]:
        """The objects of a kind, by namespace and name.

        Raises:
            LookupFailed: the kind is not watched, not served, or not synced yet.
        """
        cache, objects = self._objects(gvk)
        wanted = namespace if cache.is_namespaced else None
        with cache.lock:
            held = sorted(objects.items(), key=lambda item: item[0])
        return [found for place, found in held if wanted in (None, place[0])]

    def synced(self, gvk: GroupVersionKind) -> bool:
        """Whether lookups of this kind are answered."""
        cache = self._caches.get((gvk.group, gvk.kind))
        return cache is not None and cache.objects is not None

    def _objects(self, gvk: GroupVersionKind) -> tuple[_Cache, dict[tuple[str, str], JSON]]:
        cache = self._caches.get((gvk.group, gvk.kind))
        if cache is None:
            raise LookupFailed(f"{gvk.kind}: not watched")
        objects = cache.objects
        if objects is None:
            raise LookupFailed(f"{gvk.kind}: {cache.failure}")
        return cache, objects


@dataclass(eq=False, slots=True)
class _Cache:
    """The objects of one kind, and the thread that keeps them. objects is None until the first list is there."""

    gvk: GroupVersionKind
    connection: Connection
    log: Log
    backoff_s: tuple[float, float]
    objects: dict[tuple[str, str], JSON] | None = None
    failure: str = "not synced yet"
    is_namespaced: bool = True
    settled: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    lines: Lines | None = None
    wait_s: float = 0.0

    def start(self) -> None:
        threading.Thread(target=self.run, name=f"watch-{self.gvk.kind}", daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()
        self.settled.set()
        if (lines := self.lines) is not None:
            lines.stop()

    def run(self) -> None:
        """List and watch until stopped; every failure is noted, waited out and tried again."""
        while not self.stopped.is_set():
            try:
                path = self.discover()
                version = self.replace(path)
                self.wait_s = 0.0
                self.follow(path, version)
            except LookupFailed as error:
                self.back_off(error)
            except Exception as error:  # noqa: BLE001 - the thread must not die: its kind would grow old unseen
                self.back_off(LookupFailed(f"the API server answered something else than expected: {error!r}"))

    def back_off(self, error: LookupFailed) -> None:
        """Note a failure and wait."""
        if not self.stopped.is_set():
            self.note(error)
            self.pause()

    def pause(self) -> None:
        """Wait, each time twice as long, until something succeeds."""
        first, longest = self.backoff_s
        self.wait_s = min(self.wait_s * 2, longest) or first
        self.stopped.wait(self.wait_s * random.uniform(1, 2))  # noqa: S311 - spreads load, hides nothing

    def note(self, error: LookupFailed) -> None:
        """Remember why; a kind that is not served or not allowed is settled, and holds nothing any more if gone."""
        self.failure = str(error)
        refused = isinstance(error, ServerRefused)
        if isinstance(error, _NotServed):
            self.objects = None
        if refused or isinstance(error, _NotServed):
            self.settled.set()
        self.log.warning("watch failed", group=self.gvk.group, kind=self.gvk.kind, error=str(error))

    def discover(self) -> str:
        """The path of the kind's collection: in its version, else in the version that the server prefers.

        Raises:
            LookupFailed: the kind is not served.
        """
        versions = [self.gvk.version]
        if self.gvk.group:
            versions += self.served_versions()
        for version in versions:
            root = f"/apis/{self.gvk.group}/{version}" if self.gvk.group else f"/api/{version}"
            try:
                resources = self.connection.get(root, {}).get("resources") or []
            except ServerRefused as error:
                if error.code != 404:
                    raise
                continue
            for resource in resources:
                if resource["kind"] == self.gvk.kind and "/" not in resource["name"]:
                    self.is_namespaced = bool(resource["namespaced"])
                    return f"{root}/{resource['name']}"
        raise _NotServed(f"{self.gvk.kind} is not served by the API server; install its CustomResourceDefinition")

    def served_versions(self) -> list[str]:
        """The versions of the group, the preferred one first."""
        try:
            group = self.connection.get(f"/apis/{self.gvk.group}", {})
        except ServerRefused as error:
            if error.code != 404:
                raise
            return []
        preferred = group.get("preferredVersion") or {}
        return [entry["version"] for entry in (preferred, *(group.get("versions") or [])) if "version" in entry]

    def replace(self, path: str) -> str:
        """List everything, page by page, and swap it in whole; the resourceVersion to watch from."""
        objects: dict[tuple[str, str], JSON] = {}
        query = {"limit": PAGE}
        while True:
            page = self.connection.get(path, query)
            typed = {"apiVersion": page["apiVersion"], "kind": self.gvk.kind}
            objects.update((_place(item), _lean({**typed, **item})) for item in page.get("items") or [])
            metadata = page["metadata"]
            if not metadata.get("continue"):
                break
            query = {"limit": PAGE, "continue": metadata["continue"]}
        self.objects, self.failure = objects, ""
        self.settled.set()
        return str(metadata["resourceVersion"])

    def follow(self, path: str, version: str) -> None:
        """Watch from a resourceVersion on; a broken stream is resumed, one too old (410) means listing anew."""
        while not self.stopped.is_set():
            try:
                for event in self.events(path, version):
                    version = self.take(event)
                    self.wait_s = 0.0
            except ServerRefused as error:
                if error.code == _GONE:
                    return
                raise
            except LookupFailed as error:
                self.back_off(error)

    def events(self, path: str, version: str) -> Iterator[JSON]:
        """The events of one watch."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(WATCH_S, 2 * WATCH_S)),  # noqa: S311 - spreads load
        }
        self.lines = self.connection.stream(path, query, 2.0 * WATCH_S + 30)
        count = -1
        try:
            for count, event in enumerate(self.lines):  # noqa: B007 - the last count says whether there was any
                if event["type"] == "ERROR":
                    raise ServerRefused(event["object"].get("code", 500), str(event["object"].get("message")))
                yield event
        finally:
            self.lines = None
        if count < 0:  # or a server that ends every watch at once would be asked without end
            self.pause()

    def take(self, event: JSON) -> str:
        """One event; the resourceVersion that it brings us to."""
        changed = event["object"]
        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
            assert self.objects is not None
            with self.lock:
                if event["type"] == "DELETED":
                    self.objects.pop(_place(changed), None)
                else:
                    self.objects[_place(changed)] = _lean(changed)
        return str(changed["metadata"]["resourceVersion"])


class _NotServed(LookupFailed):
    """The API server knows no such kind."""


def _place(found: JSON) -> tuple[str, str]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def _lean(found: JSON) -> JSON:
    """The object without its field managers: half of its size, and no rule asks for them."""
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key != "managedFields"}}
