"""Finds where an API server serves a kind: in the wanted version, else in the version that the server prefers.

Source of the paths and documents: the API server's discovery (meta/v1 APIResourceList, APIGroup).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.connection import Connection, ServerRefused
from webhook.cluster.known_kinds import KNOWN_KINDS, is_built_in
from webhook.cluster.lookup import NOT_SERVED
from webhook.errors import LookupFailed

_NOT_OF_THIS_RELEASE: Final = "not served by the API server; this release of Kubernetes lacks the kind, or has it off"


class KindNotServed(LookupFailed):
    """The API server does not serve this kind."""


class ServedResource(Struct, frozen=True):
    """A kind as it is served: the path of its group and version, its plural, and the version of its objects."""

    root: str
    plural: str
    api_version: str
    is_namespaced: bool

    def path(self, namespace: str) -> str:
        """Return the path of the collection in a namespace, or in all with ""."""
        if namespace and self.is_namespaced:
            return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{self.root}/{self.plural}"


def api_path_of_group_version(group: str, version: str) -> str:
    """Return the path below which an API server serves the kinds of a group in a version."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def discover_resource(connection: Connection, gvk: GroupVersionKind) -> ServedResource:
    """Ask the API server where a kind is served.

    Raises:
        KindNotServed: no group serves it.
        LookupFailed: it is not known.
    """
    versions = [gvk.version]
    if gvk.group:
        versions += _versions_of_group(connection, gvk.group)
    for version in versions:
        api_version = f"{gvk.group}/{version}" if gvk.group else version
        root = api_path_of_group_version(gvk.group, version)
        try:
            resources = connection.get(root, {}).get("resources") or []
        except ServerRefused as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            continue
        for resource in resources:
            if resource["kind"] == gvk.kind and "/" not in resource["name"]:
                return ServedResource(root, resource["name"], api_version, bool(resource["namespaced"]))
    is_of_kubernetes = is_built_in(gvk) and (gvk.group, gvk.kind) in KNOWN_KINDS
    raise KindNotServed(_NOT_OF_THIS_RELEASE if is_of_kubernetes else NOT_SERVED)


def _versions_of_group(connection: Connection, group: str) -> list[str]:
    """Return the versions of a group that the API server serves, the preferred one first."""
    try:
        served = connection.get(f"/apis/{group}", {})
    except ServerRefused as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return []
    preferred = served.get("preferredVersion") or {}
    return [entry["version"] for entry in (preferred, *(served.get("versions") or [])) if "version" in entry]
