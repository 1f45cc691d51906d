"""Finds the version and the path of a kind on an API server: the wanted version if the server has it, otherwise the
preferred version or another version.

Source of the paths and documents: the API server's discovery (meta/v1 APIResourceList, APIGroup).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from http import HTTPStatus
from time import monotonic
from typing import Final
from urllib.parse import quote

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.connection import Connection, ServerRefused
from webhook.cluster.known_kinds import KNOWN_KINDS, is_built_in
from webhook.cluster.lookup import NOT_SERVED
from webhook.errors import LookupFailed

_NOT_OF_THIS_RELEASE: Final = "not served by the API server; this release of Kubernetes lacks or disables the kind"


class KindNotServed(LookupFailed):
    """The API server does not serve this kind."""


class ServedResource(Struct, frozen=True):
    """A kind as an API server serves it: the root path of group and version, the plural, the version of the objects."""

    root: str
    plural: str
    api_version: str
    is_namespaced: bool

    def path(self, namespace: str) -> str:
        """Return the path of the collection in a namespace; "" means all namespaces."""
        if namespace and self.is_namespaced:
            return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{self.root}/{self.plural}"


def api_path_of_group_version(group: str, version: str) -> str:
    """Return the path of a group and version."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


class Discovery:
    """Finds the kinds of one API server for all watches of a view.

    All watches share a requested document for `shared_s`. At a start, a hundred watches ask within a second about kinds
    of few groups.
    """

    def __init__(self, connection: Connection, shared_s: float = 0.0) -> None:
        self._connection = connection
        self._shared_s = shared_s
        self._documents: dict[str, _Document] = {}
        self._lock = threading.Lock()

    def find_resource(self, gvk: GroupVersionKind) -> ServedResource:
        """Return where the API server serves a kind.

        Raises:
            KindNotServed: no version of the group serves the kind.
            LookupFailed: the API server does not answer, or refuses.
        """
        for version in self._versions(gvk):
            api_version = f"{gvk.group}/{version}" if gvk.group else version
            root = api_path_of_group_version(gvk.group, version)
            for resource in (self._document(root) or {}).get("resources") or []:
                if resource["kind"] == gvk.kind and "/" not in resource["name"]:
                    return ServedResource(root, resource["name"], api_version, bool(resource["namespaced"]))
        is_of_kubernetes = is_built_in(gvk) and (gvk.group, gvk.kind) in KNOWN_KINDS
        raise KindNotServed(_NOT_OF_THIS_RELEASE if is_of_kubernetes else NOT_SERVED)

    def _versions(self, gvk: GroupVersionKind) -> Iterator[str]:
        """Yield the wanted version, then the version that the API server prefers, then all versions of the group."""
        yield gvk.version
        served = self._document(f"/apis/{gvk.group}") or {} if gvk.group else {}
        preferred = served.get("preferredVersion") or {}
        for entry in (preferred, *(served.get("versions") or [])):
            if "version" in entry:
                yield entry["version"]

    def _document(self, path: str) -> JSON | None:
        """Return a document; None for 404. Raises LookupFailed."""
        now = monotonic()
        with self._lock:
            recent = {key: each for key, each in self._documents.items() if each.may_answer(now, self._shared_s)}
            is_first = path not in recent
            document = recent.setdefault(path, _Document(now))
            self._documents = recent
        if is_first:
            document.ask(self._connection, path)
        return document.answer.result()


class _Document(Struct, eq=False):
    asked_at: float
    answer: Future[JSON | None] = field(default_factory=Future)

    def may_answer(self, now: float, shared_s: float) -> bool:
        """Return whether the document is recent and its request did not fail."""
        return now - self.asked_at < shared_s and not (self.answer.done() and self.answer.exception() is not None)

    def ask(self, connection: Connection, path: str) -> None:
        """Request the document. All waiting watches get the answer or the failure."""
        try:
            self.answer.set_result(connection.get(path, {}))
        except ServerRefused as error:
            if error.code == HTTPStatus.NOT_FOUND:
                self.answer.set_result(None)
            else:
                self.answer.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self.answer.set_exception(error)
