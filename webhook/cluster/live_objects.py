"""Reads the objects of a live cluster once for an audit, without watching or keeping them.

Source of the protocol: k8s.io/apiserver v0.36 pkg/storage/continue.go and etcd3/store.go. A list that takes long loses
its initial state. The answer, 410, has a token with which the list continues on the current state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind, GroupVersionResource
from webhook.cluster.connection import Connection, ServerRefused
from webhook.cluster.discovery import ServedResource, api_path_of_group_version

PAGE: Final = 250
"""How many objects one page has: an API server holds the whole page in memory, and each object has up to 1.5 MB."""
MOST_RESUMED: Final = 100
"""How often one list continues after a 410, which comes every five minutes, so that it ends at some time."""


class ServedKind(Struct, frozen=True):
    """A kind with objects that can be listed."""

    kind: GroupVersionKind
    resource: ServedResource

    @property
    def gvr(self) -> GroupVersionResource:
        """Return its resource as requests name it."""
        return GroupVersionResource(self.kind.group, self.kind.version, self.resource.plural)


def served_kinds(connection: Connection, wanted: Iterable[tuple[str, str]]) -> Iterator[ServedKind]:
    """Yield the wanted kinds that an API server serves, each in the version that it prefers.

    Args:
        connection: the API server.
        wanted: pairs of group and plural, each of which may be `*`.

    Raises:
        LookupFailed: the kinds are not known.
    """
    pairs = sorted(set(wanted))
    for group, versions in [("", ["v1"]), *_groups_with_versions(connection)]:
        plurals = {plural for each, plural in pairs if each in (group, "*")}
        seen: set[str] = set()
        for version in versions if plurals else ():
            for kind in _listable_kinds(connection, group, version):
                plural = kind.resource.plural
                if plural not in seen and (plural in plurals or "*" in plurals):
                    seen.add(plural)
                    yield kind
            if plurals <= seen:
                break


def objects_of_kind(
    connection: Connection, kind: ServedKind, *, namespace: str = "", selector: str = ""
) -> Iterator[JSON]:
    """Yield the objects of a kind in a namespace, or in all with "", that match a label selector.

    Raises:
        LookupFailed: the list cannot be read to its end; earlier objects were yielded.
    """
    query = {"limit": str(PAGE), **({"labelSelector": selector} if selector else {})}
    path, more, resumed = kind.resource.path(namespace), "", 0
    named = {"apiVersion": kind.resource.api_version, "kind": kind.kind.kind}
    while True:
        try:
            page = connection.page(path, {**query, **({"continue": more} if more else {})})
        except ServerRefused as error:
            resumed += 1
            if error.code != HTTPStatus.GONE or not error.continues or resumed > MOST_RESUMED:
                raise
            more = error.continues
            continue
        for item in page:
            yield {**item, **named}  # items of a list have no kind
        more = page.metadata.get("continue") or ""
        if not more:
            return


def _groups_with_versions(connection: Connection) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the groups of an API server with their versions, the preferred one first."""
    for group in connection.get("/apis", {}).get("groups") or []:
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [each["version"] for each in group.get("versions") or []]
        yield group["name"], sorted(versions, key=lambda version: version != preferred)


def _listable_kinds(connection: Connection, group: str, version: str) -> Iterator[ServedKind]:
    root = api_path_of_group_version(group, version)
    try:
        resources = connection.get(root, {}).get("resources") or []
    except ServerRefused as error:
        if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE):
            raise
        return  # gone since, or an aggregated API server that is away
    for each in resources:
        if "/" not in each["name"] and "list" in (each.get("verbs") or ()):
            kind = GroupVersionKind(group, version, each["kind"])
            yield ServedKind(kind, ServedResource(root, each["name"], kind.api_version, bool(each["namespaced"])))
