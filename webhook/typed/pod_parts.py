"""What anything in a pod names among its limits and requests: the first look of checks that are about few pods."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from webhook.typed.fields import Field
from webhook.typed.view import Typed

_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")


class ResourceNames(NamedTuple):
    """The names of all resources in a pod, null and ephemeral containers included, and whether a container has claims.

    `extended` are those with a slash: resources of device plugins, and others that Kubernetes does not know.
    """

    names: frozenset[str]
    extended: tuple[str, ...]
    has_claims: bool


class ResourceNamesOf(Field[ResourceNames]):
    """Those of the spec of a pod, read without an object for each container."""

    def read(self, value: Any, owner: Typed) -> ResourceNames:
        """The names; `value` are the resources of the pod as a whole."""
        names: set[str] = set()
        has_claims = _add(value, names) if value else False
        for name in _LISTS:
            listed = owner.json.get(name)
            if isinstance(listed, list):
                for container in owner.reading.deadline.each(listed):
                    if isinstance(container, dict) and _add(container.get("resources"), names):
                        has_claims = True
        owner.reading.deadline.spend(len(names))
        return ResourceNames(frozenset(names), tuple([name for name in names if "/" in name]), has_claims)


def _add(resources: Any, names: set[str]) -> bool:
    """Add the names of one holder of resources; whether it has claims."""
    if not isinstance(resources, dict):
        return False
    limits, requests = resources.get("limits"), resources.get("requests")
    if isinstance(limits, dict):
        names.update(limits)
    if isinstance(requests, dict):
        names.update(requests)
    return bool(resources.get("claims"))
