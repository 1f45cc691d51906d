"""Explains why a claim or a template does not exist: certainly absent, promised by a ComputeDomain, or misspelled.

It is known to be absent from a whole cluster alone. A ComputeDomain promises the template that it names; its controller
makes it. The objects of a kind are looked through once for all claims of a fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.types import ComputeDomain, ResourceClaim, ResourceClaimTemplate
from webhook.facts.view import View
from webhook.typed.view import Reading

DEFAULT: Final = "default"
"""The namespace of an object whose file names none, as kubectl assumes."""
DOMAINS: Final = interest_in_fields(ComputeDomain.gvk, "spec.channel.resourceClaimTemplate.name")
"""The fields of ComputeDomains that are read."""
_SHOWN: Final = 3
ClaimKind: TypeAlias = type[ResourceClaim | ResourceClaimTemplate]


@dataclass(frozen=True, slots=True)
class Absence:
    """What is known about a claim or a template that does not exist.

    Args:
        is_absent: whether it is known not to be there.
        is_promised: whether a ComputeDomain will make it.
        nearest: the name that was probably meant.
        elsewhere: other namespaces that have one of this name, at most three.
    """

    is_absent: bool = False
    is_promised: bool = False
    nearest: str = ""
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Names:
    """The objects of one kind: their names in the namespace, and the namespaces that have each name."""

    here: Sequence[str]
    namespaces: Mapping[str, Sequence[str]]


class Absences:
    """Finds out why objects do not exist in the namespace of one view; each kind is listed once."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._here = view.namespace or DEFAULT
        self._names: dict[ClaimKind, _Names] = {}
        self._promised: frozenset[str] | None = None

    def of(self, kind: ClaimKind, name: str) -> Absence:
        """Return why an object that was looked up does not exist."""
        names = self._names_of(kind)
        is_promised = kind is ResourceClaimTemplate and name in self._promised_templates()
        elsewhere = names.namespaces.get(name, ())
        is_known = self._view.is_whole(kind.gvk)
        return Absence(
            is_absent=is_known and not is_promised,
            is_promised=is_promised,
            nearest=self._view.nearest(name, names.here),
            elsewhere=tuple(sorted(set(elsewhere))[:_SHOWN]),
        )

    def _names_of(self, kind: ClaimKind) -> _Names:
        if kind not in self._names:
            self._names[kind] = self._listed(kind)
        return self._names[kind]

    def _listed(self, kind: ClaimKind) -> _Names:
        """List the names of a whole cluster, which may have thousands of others: without typed fields."""
        here: list[str] = []
        namespaces: dict[str, list[str]] = {}
        for obj in self._view.deadline.paced(self._view.objects(kind.gvk)):
            name, namespace = _place(obj)
            namespaces.setdefault(name, []).append(namespace)
            if namespace == self._here:
                here.append(name)
        return _Names(here, namespaces)

    def _promised_templates(self) -> frozenset[str]:
        if self._promised is None:
            self._promised = promised_templates(self._view)
        return self._promised


def promised_templates(view: View) -> frozenset[str]:
    """Return the names of the templates that ComputeDomains of the view's namespace create."""
    here = view.namespace or DEFAULT
    found = [obj for obj in view.deadline.paced(view.objects(ComputeDomain.gvk)) if _place(obj)[1] == here]
    domains = [ComputeDomain(obj, (), Reading(view.deadline)) for obj in view.deadline.paced(found)]
    return frozenset(domain.spec.channel.resource_claim_template.name for domain in domains)


def _place(obj: JSON) -> tuple[str, str]:
    """Return the name and the namespace of an object of the cluster."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):  # in a file
        return "", DEFAULT
    return metadata.get("name") or "", metadata.get("namespace") or DEFAULT
