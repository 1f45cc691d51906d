"""Reads the objects of a live cluster once for an audit, without a watch, and does not keep the objects.

API servers keep the state of a list for some minutes. Later requests get 410, with a token that continues the list with
the current state (k8s.io/apiserver v0.36 pkg/storage/continue.go and etcd3/store.go).
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
"""The number of objects of one page. An API server holds the page in memory, and an object can have 1.5 MB."""
MOST_RESUMED: Final = 100
"""How often a list may continue after a 410. The bound limits the time of a list: a 410 comes every five minutes."""


class ServedKind(Struct, frozen=True):
    """A kind that an API server can list."""

    kind: GroupVersionKind
    resource: ServedResource

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.kind.group, self.kind.version, self.resource.plural)


def served_kinds(connection: Connection, groups_and_plurals: Iterable[tuple[str, str]]) -> Iterator[ServedKind]:
    """Yield the wanted kinds that an API server serves, each in the version that it prefers.

    Args:
        connection: the API server.
        groups_and_plurals: pairs of group and plural; `*` means any group or plural.

    Raises:
        LookupFailed: the API server does not answer, or refuses.
    """
    pairs = sorted(set(groups_and_plurals))
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
    """Yield the objects of a kind that match a label selector, in a namespace ("" means all).

    Raises:
        LookupFailed: the list cannot be read to its end; earlier objects were already yielded.
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
    """Yield each group with its versions, the preferred version first."""
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
        return  # the group was removed meanwhile, or its aggregated API server does not answer
    for each in resources:
        if "/" not in each["name"] and "list" in (each.get("verbs") or ()):
            kind = GroupVersionKind(group, version, each["kind"])
            yield ServedKind(kind, ServedResource(root, each["name"], kind.api_version, bool(each["namespaced"])))
