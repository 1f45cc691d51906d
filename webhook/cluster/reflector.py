"""One watch: a thread that lists the objects of an interest and follows their changes.

The thread works as the reflector of client-go (k8s.io/client-go v0.36.1 tools/cache/reflector.go). It resumes at the
last resourceVersion, lists again after a 410, and waits longer after each further error. Each object is reduced to the
fields that are read. The name of an unreadable object is noted and the watch continues: no user can end the watch with
one object.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic
from typing import Final

from webhook.apimachinery.attributes import JSON, NAMESPACE
from webhook.cluster.connection import METADATA, METADATA_LIST, WHOLE, Connection, LineStream, ServerRefused
from webhook.cluster.discovery import Discovery, KindNotServed, ServedResource
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.freshness import DEFAULT_TIMES, ServerUnreachable, StreamBroken, WatchTimes
from webhook.cluster.interest import BY_NAME, Index, Interest
from webhook.cluster.object_reader import CHANGES, Event, ObjectReader
from webhook.cluster.packed import PackedObject
from webhook.cluster.store import ObjectStore, Place, UnreadableObject
from webhook.cluster.view_memory import ViewMemory
from webhook.errors import LookupFailed
from webhook.logs.structured import Log

PAGE: Final = "500"
"""The objects of one page of a list, as in client-go."""


NOT_INSTALLED: Final = "not installed"
"""The cause of kinds that the API server does not serve. Such a cause is normal: no cluster has all controllers."""
SERVER_AWAY: Final = "server away"
UNAUTHORIZED: Final = f"code {HTTPStatus.UNAUTHORIZED}"
CAUSES_OF_ALL_KINDS: Final = frozenset((SERVER_AWAY, UNAUTHORIZED))
"""Causes that affect all kinds, so messages name no kind."""


def cause_of_error(error: LookupFailed) -> str:
    """Return the cause of a failure, without the name of the kind.

    A broken stream has the cause "". Streams break often, and this is a fault only if the next attempt also fails.
    """
    if isinstance(error, StreamBroken):
        return ""
    if isinstance(error, KindNotServed):
        return NOT_INSTALLED
    if isinstance(error, ServerUnreachable):
        return SERVER_AWAY
    return f"code {error.code}" if isinstance(error, ServerRefused) else str(error)


@dataclass(eq=False, slots=True)
class Reflector:
    """The objects of one interest, and the thread that keeps them up to date.

    Attributes:
        failure, cause: why the last attempt failed (`cause_of_error`).
        before: the reflector of an earlier interest in the same objects, which answers until the first list is
            complete.
        heard_at: the time of the API server's last message about the objects, on the monotonic clock.
        listed_at: the time when the last list began.
        memory: bounds the objects of all watches of the view.
    """

    interest: Interest
    connection: Connection
    discovery: Discovery
    log: Log
    failure_log: FailureLog
    backoff_s: tuple[float, float]
    before: Reflector | None = None
    times: WatchTimes = DEFAULT_TIMES
    memory: ViewMemory = field(default_factory=ViewMemory)
    heard_at: float = 0.0
    listed_at: float = 0.0
    failure: str = "not synced yet"
    cause: str = ""
    failed: int = 0
    resource: ServedResource | None = None
    settled: threading.Event = field(default_factory=threading.Event)
    _store: ObjectStore = field(init=False)
    _earlier: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _lines: LineStream | None = None
    _wait_s: float = 0.0

    def __post_init__(self) -> None:
        are_namespaces = self.interest.gvk == NAMESPACE
        self._store = ObjectStore(self.memory, self.interest.indexes, are_namespaces=are_namespaces)

    def start(self) -> None:
        threading.Thread(target=self._list_and_watch, name=f"watch-{self.interest.gvk.kind}", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self.settled.set()
        if (lines := self._lines) is not None:
            lines.stop()
        if (before := self.before) is not None:
            before.stop()
        self._store.stop_counting_memory()
        self.failure_log.forget(self)

    @property
    def is_synced(self) -> bool:
        return self._answering_reflector._store.is_listed  # noqa: SLF001 - of the same class

    @property
    def was_never_installed(self) -> bool:
        """Return whether the API server has not served the kind since the start."""
        return bool(self.failure) and self.cause == NOT_INSTALLED and not self.heard_at

    @property
    def age_s(self) -> float:
        """Return the seconds since the last message about the objects; 0 before the first list."""
        return monotonic() - self._answering_reflector.heard_at if self.is_synced else 0.0

    @property
    def _answering_reflector(self) -> Reflector:
        before = self.before
        return before._answering_reflector if before is not None and not self._store.is_listed else self  # noqa: SLF001

    @property
    def change_count(self) -> int:
        """Return the number of changes of the objects that lookups return."""
        before = self.before
        return self._store.changes + (before.change_count if before is not None else self._earlier)

    def version(self) -> object:
        """Return a value that stays equal while lookups have the same answers; the caller holds the memory's lock."""
        before = self.before
        failure = "" if self._store.is_listed else self.failure  # after the first list, a failure changes no answer
        return self, self.change_count, failure, self.resource, before.version() if before is not None else None

    def get(self, namespace: str, name: str) -> JSON | None:
        """Return the object, or None if it does not exist. Raise LookupFailed if the answer is not known."""
        answering = self._answering_reflector
        if not answering._store.is_listed:  # noqa: SLF001 - of the same class
            raise LookupFailed(f"{self.interest.gvk.kind}: {self.failure}")
        place = namespace if answering.is_namespaced else "", name
        obj = answering._store.get(place)  # noqa: SLF001 - of the same class
        if obj is None:
            answering._require_complete_namespace(place[0])  # noqa: SLF001 - of the same class
        if isinstance(obj, UnreadableObject):
            raise answering._unreadable_object_error(place, obj)  # noqa: SLF001 - of the same class
        return obj.read() if isinstance(obj, PackedObject) else obj

    def list(self, namespace: str | None) -> Sequence[JSON]:
        """Return the objects of a namespace (None: of all).

        Raises:
            LookupFailed: nothing was listed yet, objects were dropped, or one of the objects is unreadable.
        """
        answering = self._answering_reflector
        listed_namespace = namespace if answering.is_namespaced else None
        objects = answering._store.list(listed_namespace)  # noqa: SLF001 - of the same class
        answering._require_complete_list(listed_namespace)  # noqa: SLF001 - of the same class
        return objects

    def list_indexed(self, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects that an index has under a key, unsorted; `namespace` None means all.

        Raises:
            LookupFailed: as for `list`, or the view does not have the index.
        """
        answering = self._answering_reflector
        if index != BY_NAME and index not in answering.interest.indexes:
            raise LookupFailed(f"{self.interest.gvk.kind} list: not indexed by {index.name}")
        listed_namespace = namespace if answering.is_namespaced else None
        matching = answering._store.list_indexed(listed_namespace, index, key)  # noqa: SLF001 - of the same class
        answering._require_complete_list(listed_namespace)  # noqa: SLF001 - of the same class
        return matching

    @property
    def dropped_namespaces(self) -> frozenset[str]:
        """Return the namespaces with dropped objects; "" means cluster-scoped objects."""
        return self._answering_reflector._store.not_held  # noqa: SLF001 - of the same class

    def unreadable_objects(self, max_count: int) -> Sequence[tuple[Place, UnreadableObject]]:
        """Return some existing objects that are too large or unreadable for the view."""
        return self._answering_reflector._store.unreadable_objects(None, max_count)  # noqa: SLF001 - of the same class

    @property
    def unreadable_count(self) -> int:
        """Return the number of existing objects that are too large or unreadable."""
        return self._answering_reflector._store.unreadable_count  # noqa: SLF001 - of the same class

    def _require_complete_list(self, namespace: str | None) -> None:
        if not self._store.is_listed:
            raise LookupFailed(f"{self.interest.gvk.kind}: {self.failure}")
        self._require_complete_namespace(namespace)
        for place, unreadable in self._store.unreadable_objects(namespace, 1):
            raise self._unreadable_object_error(place, unreadable)

    def _require_complete_namespace(self, namespace: str | None) -> None:
        missing = self._store.not_held
        if missing and (namespace is None or namespace in missing):
            limit = f"{(self.memory.most_bytes or 0) >> 20}Mi"
            which = min(missing) if namespace is None else namespace
            place = f"of namespace `{which}`" if which else "of the cluster"
            shared = f"all objects that policies look up take more than {limit}, most of them in this namespace"
            reason = (
                shared if which else f"the objects without a namespace that policies look up take more than {limit}"
            )
            fix = "delete some of them, bound them by a ResourceQuota, or raise --view-memory"
            raise LookupFailed(f"{self.interest.gvk.kind} {place} are not in the view: {reason}; {fix}")

    def _unreadable_object_error(self, place: Place, unreadable: UnreadableObject) -> LookupFailed:
        return LookupFailed(f"{self.interest.gvk.kind} {'/'.join(filter(None, place))}: it {unreadable.why}")

    @property
    def is_namespaced(self) -> bool:
        """Return whether objects have namespaces; True before the API server has answered."""
        return self.resource is None or self.resource.is_namespaced

    def _list_and_watch(self) -> None:
        """List and watch. After each failure, wait and try again."""
        while not self._stopped.is_set():
            try:
                self.resource = self.discovery.find_resource(self.interest.gvk)
                version = self._list_and_replace(self.resource)
                self.failure_log.note_list(self.interest.gvk)
                self._watch_from_version(self.resource, version)
            except LookupFailed as error:
                self._note_failure_and_wait(error)
            except Exception as error:  # noqa: BLE001 - without this thread, nothing updates the view
                self._note_failure_and_wait(
                    LookupFailed(f"the API server sent an answer that cannot be read: {error!r}")
                )

    def _note_failure_and_wait(self, error: LookupFailed) -> None:
        if not self._stopped.is_set():
            self._note_failure(error)
            self._wait_before_next_try()

    def _wait_before_next_try(self) -> None:
        """Wait twice as long after each further failure."""
        first, longest = self.backoff_s
        self._wait_s = min(self._wait_s * 2, longest) or first
        self._stopped.wait(self._wait_s * random.uniform(1, 2))  # noqa: S311 - spreads load, hides nothing

    def _note_failure(self, error: LookupFailed) -> None:
        # a start does not wait for a kind that is not served, or that the API server refuses
        cause = cause_of_error(error)
        is_same = self.cause == cause if isinstance(error, ServerRefused) else self.failure == str(error)
        is_new = not (self.failure and is_same)  # without the role, first the watch fails, then each list
        self.failure, self.cause = str(error), cause
        if isinstance(error, KindNotServed):
            self._store.clear()
            self._drop_previous_reflector()
        else:  # a kind that is not installed is not a failure; claimgate asks for the kind every half minute
            self.failed += 1
        if isinstance(error, KindNotServed | ServerRefused):
            self.settled.set()
        self.failure_log.note_failure(self, self.interest.gvk, error, is_new=is_new)

    def _log_watch_too_old(self, error: ServerRefused) -> None:
        # the next step lists all objects again
        gvk = self.interest.gvk
        with suppress(OSError, ValueError):  # a failure to write the log must not end this thread
            self.log.info("watch too old", group=gvk.group, kind=gvk.kind, code=error.code, error=str(error))

    def _reset_failures(self) -> None:
        self.failure, self._wait_s = "", 0.0
        self.heard_at = monotonic()
        self.failure_log.note_success(self, self.interest.gvk)

    def _drop_previous_reflector(self) -> None:
        # from now on, this reflector answers lookups
        before = self.before
        if before is not None:
            self._earlier = before.change_count  # first, so that the change count never falls
            self.before = None
            before.stop()

    def _query_of_scope(self) -> dict[str, str]:
        scope = self.interest.scope
        by_name = {"fieldSelector": f"metadata.name={scope.name}"} if scope.name else {}
        return by_name | ({"labelSelector": scope.labels} if scope.labels else {})

    def _list_and_replace(self, resource: ServedResource) -> str:
        """List the objects, and return the resourceVersion for the watch."""
        self.listed_at = monotonic()
        self._store.begin_list()
        path, selectors = resource.path(self.interest.scope.namespace), {**self._query_of_scope(), "limit": PAGE}
        accept = METADATA_LIST if self.interest.reads_only_metadata else WHOLE
        query = selectors
        while True:
            page = self.connection.page(path, query, accept, self._reader(resource).read_item)
            for place, kept in page:
                if self._is_in_scope(place):
                    self._store.add_listed(place, kept)
            version, more = page.metadata["resourceVersion"], page.metadata.get("continue")
            if not more:
                break
            query = {**selectors, "continue": more}
        self.heard_at = monotonic()
        self._store.end_list()
        self.settled.set()
        self._drop_previous_reflector()
        return str(version)

    def _reader(self, resource: ServedResource) -> ObjectReader:
        return ObjectReader(self.interest, resource, self.memory)

    def _is_in_scope(self, place: Place) -> bool:
        return not self.interest.only or self.interest.includes(*place)

    def _watch_from_version(self, resource: ServedResource, version: str) -> None:
        # a broken stream is resumed; the watch ends at 410, or to list objects that did not fit into the view
        # failures are reset only after a watch has begun: with the right to list but not to watch, claimgate would
        # otherwise list everything each second
        is_first = True
        while not self._stopped.is_set() and not self._should_retry_dropped_objects():
            try:
                lines, lasting_s = self._open_watch(resource, version)
                if is_first:
                    is_first = False
                    self._reset_failures()
                for event in self._events_of_watch(lines, lasting_s):
                    self._apply_event(event)
                    version = event.version
                    self._reset_failures()
            except ServerRefused as error:
                if error.code != HTTPStatus.GONE:
                    raise
                self._log_watch_too_old(error)
                return
            except LookupFailed as error:
                self._note_failure_and_wait(error)

    def _should_retry_dropped_objects(self) -> bool:
        return self._store.has_dropped_objects and monotonic() - self.listed_at > self.times.retry_s

    def _open_watch(self, resource: ServedResource, version: str) -> tuple[LineStream, int]:
        query = {
            **self._query_of_scope(),
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(lasting_s := self.times.random_timeout_s()),
        }
        accept = METADATA if self.interest.reads_only_metadata else WHOLE
        path = resource.path(self.interest.scope.namespace)
        read_event = self._reader(resource).read_event
        self._lines = lines = self.connection.stream(path, query, lasting_s + self.times.slack_s, accept, read_event)
        return lines, lasting_s

    def _events_of_watch(self, lines: LineStream, lasting_s: int) -> Iterator[Event]:
        beginning = self.heard_at = monotonic()
        count = -1
        try:
            for count, event in enumerate(lines):  # noqa: B007 - the last count says whether there was any
                if event.type == "ERROR":
                    raise ServerRefused(event.status.get("code", 500), str(event.status.get("message")))
                yield event
        finally:
            self._lines = None
        self.heard_at = monotonic()
        if count < 0 and monotonic() - beginning < lasting_s / 2:
            self._wait_before_next_try()  # otherwise a server that ends every watch at once gets endless requests

    def _apply_event(self, event: Event) -> None:
        if event.type in CHANGES and self._is_in_scope(event.place):
            if event.type == "DELETED":
                self._store.drop(event.place)
            else:
                self._store.put(event.place, event.kept)
