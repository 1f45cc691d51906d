"""Reads the objects of a cluster from an API server, as kubectl does, or from the files of a recorded cluster.

An object that cannot be read counts as not known. The reading notes the object, with the right that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Final, Protocol
from urllib.parse import quote

from webhook.apimachinery.attributes import JSON, GroupVersionKind, plural_of_kind
from webhook.apimachinery.paths import get
from webhook.cluster import Cluster
from webhook.cluster.connection import Connection, ServerRefused
from webhook.cluster.discovery import Discovery, KindNotServed, ServedResource
from webhook.cluster.live_objects import ServedKind, objects_of_kind
from webhook.errors import LookupFailed
from webhook.status.statement import ObjectName, name_of, text_at

EVENT: Final = GroupVersionKind("", "v1", "Event")
MOST_LISTED: Final = 20_000
"""The maximum number of objects that are read from one list. Other objects are not known."""


class ObjectSource(Protocol):
    """The objects of a cluster. `selects` says whether a selector has an effect on lists."""

    selects: bool

    def get(self, kind: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return an object; None if it does not exist. Raises LookupFailed."""
        ...

    def list(self, kind: GroupVersionKind, namespace: str, selector: str = "") -> Iterable[JSON]:
        """Return the objects of a namespace ("" for all) with some labels. Raises LookupFailed."""
        ...

    def events(self, obj: JSON) -> Iterable[JSON]:
        """Return the events about an object. Raises LookupFailed."""
        ...


class FileSource:
    """The objects of files."""

    selects = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster: Final = cluster

    def get(self, kind: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return an object of the files, or None."""
        return self._cluster.get(kind, namespace, name)

    def list(self, kind: GroupVersionKind, namespace: str, selector: str = "") -> Iterable[JSON]:  # noqa: ARG002
        """Return the objects of a namespace ("" for all). The selector is ignored."""
        return self._cluster.list(kind, namespace or None)

    def events(self, obj: JSON) -> Iterable[JSON]:
        """Return the events about an object."""
        obj_name, uid = name_of(obj), text_at(obj, ("metadata", "uid"))
        for event in self._cluster.list(EVENT, obj_name.namespace or None):
            involved = get(event, ("involvedObject",), {})
            named = text_at(involved, ("kind",)), text_at(involved, ("name",))
            other = text_at(involved, ("uid",))
            if named == (obj_name.kind, obj_name.name) and (not uid or not other or uid == other):
                yield event


class ClusterReading:
    """Reads objects from a cluster. Each list is read once.

    `missing` has sentences about what could not be read and why, in order.
    """

    def __init__(self, source: ObjectSource) -> None:
        self._source: Final = source
        self._listed: Final[dict[tuple[GroupVersionKind, str, str], Sequence[JSON]]] = {}
        self.missing: Final[dict[str, None]] = {}

    def get(self, kind: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return an object; None if it does not exist or could not be read. A failure is noted."""
        try:
            return self._source.get(kind, namespace, name)
        except LookupFailed as error:
            self._note("get", kind, namespace, error)
            return None

    def list(self, kind: GroupVersionKind, namespace: str, selector: str = "") -> Sequence[JSON]:
        """Return the objects of a namespace ("" for all). A failure is noted, and only earlier objects are returned.

        `selector` has the labels of the wanted objects, such as `a=b,c=d`. Other objects may also be returned.
        """
        key = kind, namespace, selector if self._source.selects else ""
        if key not in self._listed:
            self._listed[key] = tuple(self._read_list(*key))
        return self._listed[key]

    def events(self, obj: JSON, *normal: str) -> Sequence[JSON]:
        """Return the warnings about an object, and normal events with these reasons. The newest event comes first.

        If the events cannot be read, note this and return ().
        """
        try:
            events = [
                each
                for each in self._source.events(obj)
                if text_at(each, ("type",)) != "Normal" or text_at(each, ("reason",)) in normal
            ]
        except LookupFailed as error:
            self._note("list", EVENT, text_at(obj, ("metadata", "namespace")), error)
            return ()
        return sorted(events, key=time_of_event, reverse=True)

    def _read_list(self, kind: GroupVersionKind, namespace: str, selector: str) -> Iterator[JSON]:
        try:
            source = iter(self._source.list(kind, namespace, selector))
            yield from (each for each in islice(source, MOST_LISTED) if isinstance(each, dict))
            if next(source, None) is not None:
                limit_note = f"only {MOST_LISTED} objects of kind {kind.kind} were read{_in_namespace(namespace)}"
                self.missing[limit_note] = None
        except LookupFailed as error:
            self._note("list", kind, namespace, error)

    def _note(self, verb: str, kind: GroupVersionKind, namespace: str, error: LookupFailed) -> None:
        plural = plural_of_kind(kind.kind)
        resource = f"{plural}.{kind.group}" if kind.group else plural
        if isinstance(error, ServerRefused) and error.code == HTTPStatus.FORBIDDEN:
            self.missing[f"no right to {verb} {resource}{_in_namespace(namespace)}"] = None
        else:
            self.missing[f"{resource}{_in_namespace(namespace)}: {error}"] = None


def event_words(event: JSON) -> str:
    """Return an event as `Reason: message`."""
    return f"{text_at(event, ('reason',))}: {text_at(event, ('message',)).strip()}"


def name_in_namespace(name: ObjectName) -> str:
    """Return `namespace/name`, or the name of an object without a namespace."""
    return f"{name.namespace}/{name.name}" if name.namespace else name.name


def _in_namespace(namespace: str) -> str:
    return f" in namespace {namespace}" if namespace else " in all namespaces"


def time_of_event(event: JSON) -> str:
    """Return when an event was last seen, in RFC 3339 and UTC. These texts can be sorted."""
    series = text_at(event, ("series", "lastObservedTime"))
    return series or text_at(event, ("lastTimestamp",)) or text_at(event, ("eventTime",))


_MOST_EVENTS: Final = 500


class ServerSource:
    """The objects of an API server, in the versions that the server has."""

    selects = True

    def __init__(self, connection: Connection) -> None:
        self._connection: Final = connection
        self._discovery: Final = Discovery(connection)
        self._served: Final[dict[GroupVersionKind, ServedResource | None]] = {}

    def get(self, kind: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return an object of the API server."""
        served = self._served_resource(kind)
        if served is None:
            return None
        try:
            return self._connection.get(f"{served.path(namespace)}/{quote(name, safe='')}", {})
        except ServerRefused as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    def list(self, kind: GroupVersionKind, namespace: str, selector: str = "") -> Iterable[JSON]:
        """Return the objects of a namespace with some labels, read page by page."""
        served = self._served_resource(kind)
        if served is None:
            return ()
        return objects_of_kind(self._connection, ServedKind(kind, served), namespace=namespace, selector=selector)

    def events(self, obj: JSON) -> Iterable[JSON]:
        """Return the events about an object. The API server selects the events."""
        uid = text_at(obj, ("metadata", "uid"))
        namespace = text_at(obj, ("metadata", "namespace")) or "default"
        query = {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(_MOST_EVENTS)}
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        listed = self._connection.get(path, query).get("items")
        return listed if isinstance(listed, list) else ()

    def _served_resource(self, kind: GroupVersionKind) -> ServedResource | None:
        if kind not in self._served:
            try:
                self._served[kind] = self._discovery.find_resource(kind)
            except KindNotServed:
                self._served[kind] = None
        return self._served[kind]
