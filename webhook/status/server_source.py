"""Reads objects of an API server once, as kubectl does, each kind in the version that the server has."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.connection import Connection, ServerRefused
from webhook.cluster.discovery import KindNotServed, ServedResource, discover_resource
from webhook.cluster.live_objects import ServedKind, objects_of_kind
from webhook.status.statement import text_at

_MOST_EVENTS: Final = 500


class ServerSource:
    """The objects of an API server, each kind in the version that the server has."""

    selects = True

    def __init__(self, connection: Connection) -> None:
        self._connection: Final = connection
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
        """Return the objects of a namespace with some labels page by page."""
        served = self._served_resource(kind)
        if served is None:
            return ()
        return objects_of_kind(self._connection, ServedKind(kind, served), namespace=namespace, selector=selector)

    def events(self, obj: JSON) -> Iterable[JSON]:
        """Return the events about an object, which the API server picks out."""
        uid = text_at(obj, ("metadata", "uid"))
        namespace = text_at(obj, ("metadata", "namespace")) or "default"
        query = {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(_MOST_EVENTS)}
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        listed = self._connection.get(path, query).get("items")
        return listed if isinstance(listed, list) else ()

    def _served_resource(self, kind: GroupVersionKind) -> ServedResource | None:
        if kind not in self._served:
            try:
                self._served[kind] = discover_resource(self._connection, kind)
            except KindNotServed:
                self._served[kind] = None
        return self._served[kind]
