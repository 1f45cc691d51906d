"""What anything in a Pod names among its limits and requests: the first look of checks that are about few Pods."""

from __future__ import annotations

from typing import NamedTuple

from webhook.facts.subject import Subject
from webhook.typed.pods import Pod


class ResourceNames(NamedTuple):
    """The names of all resources in a Pod, null and ephemeral containers included, and whether a container has claims.

    `extended` are those with a slash: resources of device plugins, and others that Kubernetes does not know.
    """

    names: frozenset[str]
    extended: tuple[str, ...]
    has_claims: bool


def resource_names(subject: Subject) -> ResourceNames:
    """Those of a Pod, to be asked for with `Subject.once`."""
    pod = subject.typed(Pod).spec
    names: set[str] = set()
    has_claims = False
    for holder in (pod, *pod.containers, *pod.init_containers, *pod.ephemeral_containers):
        resources = holder.json.get("resources")
        if isinstance(resources, dict):
            for side in ("limits", "requests"):
                amounts = resources.get(side)
                if isinstance(amounts, dict):
                    subject.deadline.spend(len(amounts))
                    names.update(amounts)
            has_claims = has_claims or bool(resources.get("claims"))
    return ResourceNames(frozenset(names), tuple([name for name in names if "/" in name]), has_claims)
