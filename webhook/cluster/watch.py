"""A live view with watches of only the objects that are looked up.

After the first list, lookups are answered from memory, also while the API server is away. A lookup raises LookupFailed
if the kind is not watched, not served or not listed yet, because the objects may exist.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, NAMESPACE, GroupVersionKind
from webhook.cluster.connection import Connection
from webhook.cluster.discovery import Discovery
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.freshness import (
    DEFAULT_TIMES,
    NOT_EVALUATED,
    WatchTimes,
    describe_old_answers,
    describe_staleness,
)
from webhook.cluster.interest import Index, Interest, combine_interests, includes_all_fields
from webhook.cluster.lookup import describe_lookup, namespace_and_name
from webhook.cluster.reflector import CAUSES_OF_ALL_KINDS, NOT_INSTALLED, Reflector
from webhook.cluster.view_memory import ViewMemory
from webhook.errors import LookupFailed
from webhook.logs.structured import Log

BACKOFF_S: Final = (0.8, 30.0)
"""The first and the longest wait after an error; the wait doubles, as in client-go's reflector."""
_SHOWN: Final = 5
_LOOK_S: Final = 0.05
_STALE: Final = "stale"
_UNWATCHED: Final = "not watched: no loaded policy looks it up"


class WatchCluster:
    """The watches of all interests."""

    def __init__(
        self,
        connection: Connection,
        interests: Iterable[Interest],
        log: Log,
        backoff_s: tuple[float, float] = BACKOFF_S,
        *,
        times: WatchTimes = DEFAULT_TIMES,
        most_bytes: int | None = None,
        failure_log: FailureLog | None = None,
    ) -> None:
        """Create the watches of these interests.

        Args:
            connection: the API server.
            interests: the objects and fields that policies look up.
            log: the log for failures.
            backoff_s: the first and the longest wait after an error.
            times: the times of watches.
            most_bytes: the maximum size of all kept objects; None means no bound.
            failure_log: shared by several views, so that an outage is logged once; None creates a log.
        """
        self.memory = ViewMemory(most_bytes)
        self._connection = connection
        self._discovery = Discovery(connection, times.discovery_s)
        self._log = log
        self._failure_log = failure_log or FailureLog(log)
        self._backoff_s = backoff_s
        self._times = times
        self._reflectors: dict[Interest, Reflector] = {}
        self._kinds: Mapping[tuple[str, str], Sequence[Reflector]] = {}
        self._failed = 0
        self._started = False
        self.watch(interests)

    def start(self) -> None:
        """Start the threads, one for each interest, which list and watch its objects."""
        self._started = True
        for reflector in self._reflectors.values():
            reflector.start()

    def watch(self, interests: Iterable[Interest]) -> None:
        """Replace the watched interests. A replaced watch answers until the new watch is ready."""
        old = self._reflectors
        reflectors = {each: old.get(each) or self._new_reflector(each) for each in combine_interests(interests)}
        kinds: dict[tuple[str, str], tuple[Reflector, ...]] = {}
        for each, reflector in reflectors.items():
            kinds[each.kind] = (*kinds.get(each.kind, ()), reflector)
        self._reflectors, self._kinds = reflectors, kinds
        still_answering = {reflector.before for reflector in reflectors.values()}
        for each, reflector in old.items():
            if each not in reflectors:
                self._failed += reflector.failed
                if reflector not in still_answering:
                    reflector.stop()
        for each, reflector in reflectors.items() if self._started else ():
            if each not in old:
                reflector.start()

    def _new_reflector(self, interest: Interest) -> Reflector:
        before = next(
            (each for known_interest, each in self._reflectors.items() if _covers_interest(known_interest, interest)),
            None,
        )
        before = before if self._started else None
        return Reflector(
            interest,
            self._connection,
            self._discovery,
            self._log,
            self._failure_log,
            self._backoff_s,
            before,
            self._times,
            self.memory,
        )

    def wait_until_synced(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> bool:
        """Wait until each kind is listed, refused or not served; False if the time ends first."""
        end = clock() + timeout_s
        return all(each.settled.wait(max(0.0, end - clock())) for each in self._reflectors.values())

    def wait_for_first_lists(self, timeout_s: float) -> bool:
        """Wait as `wait_until_synced`, but return False once the API server is known to be unreachable."""
        end = time.monotonic() + timeout_s
        while not self.wait_until_synced(_LOOK_S):
            if self._failure_log.is_unreachable or time.monotonic() >= end:
                return False
        return True

    def failures(self) -> Mapping[GroupVersionKind, str]:
        """Return the reason for each kind that is stale or was not listed."""
        failures: dict[GroupVersionKind, dict[str, None]] = {}
        for each in self._reflectors.values():
            if not each.is_synced:
                failures.setdefault(each.interest.gvk, {})[each.failure] = None
            elif each.age_s > self._times.stale_s:
                failures.setdefault(each.interest.gvk, {})[describe_staleness(each.age_s)] = None
        return {gvk: "; ".join(reasons) for gvk, reasons in failures.items()}

    def describe_failures(self) -> Sequence[str]:
        """Return a line for each reason, with some of the kinds that are stale or were not listed.

        Kinds that were never installed are left out.
        """
        failures: dict[str, _Failure] = {}
        for each in self._reflectors.values():
            is_failing = not each.is_synced or bool(each.failure and each.cause)
            is_stale = each.is_synced and each.age_s > self._times.stale_s
            if (is_failing and not each.was_never_installed) or is_stale:
                cause, text = (each.cause or each.failure, each.failure) if is_failing else (_STALE, "")
                failure = failures.setdefault(cause, _Failure(cause, text))
                failure.kinds.add(each.interest.gvk.kind)
                # the oldest age of all watches, because a failing watch without objects has the age 0
                failure.age_s = self.age_s if cause in CAUSES_OF_ALL_KINDS else max(failure.age_s, each.age_s)
        return [each.line for each in failures.values()]

    def describe_missing_kinds(self) -> str:
        """Return the names of some kinds that the API server never served since the start; "" if it served all
        kinds.
        """
        missing = {each.interest.gvk.kind for each in self._reflectors.values() if each.was_never_installed}
        return _some_of(missing, len(missing))

    def why_never_listed(self, gvk: GroupVersionKind) -> str:
        """Return why a watched kind was never listed; "" if the kind was listed."""
        unread = (each.failure for each in self._reflectors.values() if each.interest.gvk == gvk and not each.is_synced)
        return next(unread, "")

    def describe_dropped_objects(self) -> Sequence[str]:
        """Return a line for each reason why objects are missing: no room, or too large or unreadable."""
        dropped = {
            f"{each.interest.gvk.kind} of {f'`{name}`' if name else 'the cluster'}"
            for each in self._reflectors.values()
            for name in each.dropped_namespaces
        }
        unreadable = {
            f"{each.interest.gvk.kind} {'/'.join(filter(None, place))} {obj.why}"
            for each in self._reflectors.values()
            for place, obj in each.unreadable_objects(_SHOWN)
        }
        groups = (
            ("not in the view, too large for --view-memory", dropped, len(dropped)),
            ("not in the view, because of size or depth", unreadable, max(len(unreadable), self.unreadable_count)),
        )
        return [f"{title}: {_some_of(which, count)}" for title, which, count in groups if which]

    @property
    def unreadable_count(self) -> int:
        """Return the number of existing objects that are too large or unreadable for the view."""
        return sum(each.unreadable_count for each in self._reflectors.values())

    @property
    def age_s(self) -> float:
        """Return the seconds since the last message, for the watch that has waited longest."""
        return max((each.age_s for each in self._reflectors.values()), default=0.0)

    @property
    def failure_count(self) -> int:
        """Return the number of failed lists and watches since the start."""
        return self._failed + sum(each.failed for each in self._reflectors.values())

    def close(self) -> None:
        for reflector in self._reflectors.values():
            reflector.stop()

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object, or None if it does not exist.

        Raises:
            LookupFailed: the object is not watched, or its kind is not served or not synced yet.
        """
        reflectors = self._reflectors_of_kind(gvk)
        for each in reflectors:
            if each.interest.includes(namespace, name):
                return each.get(namespace, name)
        for each in reflectors:
            if each.interest.scope.labels and (obj := each.get(namespace, name)) is not None:
                return obj
        raise LookupFailed(f"{describe_lookup(gvk, namespace, name)}: {_UNWATCHED}")

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:
        """Return the objects of a kind, sorted by namespace and name, perhaps also objects without the labels.

        Raises:
            LookupFailed: not all objects are watched, or the kind is not served or not synced yet.
        """
        reflectors = self._reflectors_of_kind(gvk)
        for chosen_labels in (labels, ""):
            for each in reflectors:
                scope = each.interest.scope
                is_all = not scope.name and scope.namespace in ("", namespace) and not each.interest.only
                if is_all and scope.labels == chosen_labels:
                    objects = each.list(namespace)
                    return _add_objects_watched_by_name(objects, reflectors, namespace) if chosen_labels else objects
        raise LookupFailed(f"{gvk.kind} list: {_UNWATCHED}")

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects that an index has under a key in a namespace (None: in all), unsorted.

        Raises:
            LookupFailed: as for `list`, or the view does not have the index.
        """
        for each in self._reflectors_of_kind(gvk):
            scope = each.interest.scope
            if not (scope.name or scope.labels or each.interest.only) and scope.namespace in ("", namespace):
                return each.list_indexed(namespace, index, key)
        raise LookupFailed(f"{gvk.kind} list: {_UNWATCHED}")

    def is_namespaced(self, gvk: GroupVersionKind) -> bool:
        """Return whether objects of a kind have namespaces.

        Raises:
            LookupFailed: the kind is not watched, not served or not synced yet.
        """
        reflectors = self._reflectors_of_kind(gvk)
        resource = next((each.resource for each in reflectors if each.resource is not None), None)
        if resource is None:
            raise LookupFailed(f"{gvk.kind}: {reflectors[0].failure}")
        return resource.is_namespaced

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        reflectors = self._kinds.get((gvk.group, gvk.kind), ())
        return bool(reflectors) and all(each.is_synced for each in reflectors)

    def revision(self, gvk: GroupVersionKind) -> object:
        """Return the watches of the kind and their number of changes."""
        reflectors = self._kinds.get((gvk.group, gvk.kind), ())
        return reflectors, sum([each.change_count for each in reflectors])

    def version(self) -> object | None:
        """Return a value that stays equal while all lookups have the same answers; None while an object is changing."""
        if not self.memory.lock.acquire(blocking=False):
            return None
        try:
            return [each.version() for each in self._reflectors.values()]
        finally:
            self.memory.lock.release()

    def is_whole(self) -> bool:
        """Return True, because a missing watched object does not exist, and lookups outside of the watches fail."""
        return True

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:  # noqa: ARG002 - the same for every kind
        return ()

    def file_of_object(self, obj: JSON) -> str:  # noqa: ARG002 - the same for every object
        return ""

    def _reflectors_of_kind(self, gvk: GroupVersionKind) -> Sequence[Reflector]:
        reflectors = self._kinds.get((gvk.group, gvk.kind), ())
        if not reflectors:
            raise LookupFailed(f"{gvk.kind}: {_UNWATCHED}")
        return reflectors


@dataclass
class _Failure:
    """One reason why kinds are stale or were not listed: its text, the kinds, the age of their objects.

    `text` is "" if there was no error but a long silence. `age_s` is 0 without objects.
    """

    cause: str
    text: str
    kinds: set[str] = field(default_factory=set)
    age_s: float = 0

    @property
    def line(self) -> str:
        kinds = _some_of(self.kinds, len(self.kinds))
        if self.cause == NOT_INSTALLED:
            return f"{kinds}: no longer installed; reviews are {NOT_EVALUATED}"
        if self.cause == _STALE:
            return f"{kinds}: {describe_staleness(self.age_s)}"
        place = "" if self.cause in CAUSES_OF_ALL_KINDS else f"{kinds}: "
        meanwhile = f"; reviews are {describe_old_answers(self.age_s)}" if self.age_s else ""
        return f"{place}{self.text}{meanwhile}"


def _some_of(texts: Collection[str], count: int) -> str:
    """Return the first texts in alphabetical order, and the number of further texts."""
    first = nsmallest(_SHOWN, texts)
    return ", ".join(first) + (f" and {count - _SHOWN} more" if count > _SHOWN else "")


def _covers_interest(earlier: Interest, wanted: Interest) -> bool:
    same = (earlier.kind, earlier.scope, earlier.only) == (wanted.kind, wanted.scope, wanted.only)
    return same and includes_all_fields(earlier.fields, wanted.fields) and earlier.indexes >= wanted.indexes


def _add_objects_watched_by_name(
    objects: Sequence[JSON], reflectors: Sequence[Reflector], namespace: str | None
) -> Sequence[JSON]:
    # an object that is watched by name replaces an object of files (layered.py)
    named = [obj for each in reflectors if each.interest.scope.name for obj in each.list(namespace)]
    if not named:
        return objects
    places = {namespace_and_name(obj): obj for obj in (*named, *objects)}
    return tuple(places[place] for place in sorted(places))


WAIT_S: Final = 10.0
"""Seconds that a start waits for the first lists; then /readyz fails until the lists are complete."""


class WatchedCluster(Struct, frozen=True):
    """A live view of a cluster, and whether it can answer lookups yet."""

    cluster: WatchCluster

    @classmethod
    def start(
        cls,
        connection: Connection,
        interests: Iterable[Interest],
        log: Log,
        most_bytes: int | None = None,
        failure_log: FailureLog | None = None,
    ) -> WatchedCluster:
        """Watch, and wait for the first lists.

        Args:
            connection: the API server.
            interests: the objects and fields that policies look up.
            log: the log for failures.
            most_bytes: the maximum size of all kept objects; None means no bound.
            failure_log: the log of a server. A server stops waiting if the API server is unreachable. None for a
                command.
        """
        cluster = WatchCluster(connection, interests, log, most_bytes=most_bytes, failure_log=failure_log)
        cluster.start()
        is_synced = cluster.wait_until_synced(WAIT_S) if failure_log is None else cluster.wait_for_first_lists(WAIT_S)
        if not (is_synced or (failure_log is not None and failure_log.is_unreachable)):
            log.warning("not synced yet", kinds=sorted(gvk.kind for gvk in cluster.failures()))
        return cls(cluster)

    def replace_interests(self, interests: Iterable[Interest]) -> None:
        self.cluster.watch(interests)

    def why_not_ready(self) -> str:
        """Return why reviews cannot be answered yet, or "".

        A server that never read namespaces would deny every request for policies that fail closed, because bindings
        select namespaces. Without reviews, the failurePolicy of the webhook configuration decides.
        """
        return (
            self.cluster.why_never_listed(NAMESPACE) if self.cluster.wait_until_synced(0) else self.describe_failures()
        )

    def describe_failures(self) -> str:
        """Return a line for each reason why kinds cannot be looked up. Policies that need these kinds are not
        evaluated.
        """
        return "\n".join((*self.cluster.describe_failures(), *self.cluster.describe_dropped_objects()))
