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
from webhook.facts.view import ClusterView
from webhook.typed.view import Reading

DEFAULT: Final = "default"
"""The namespace of an object whose file names none, as kubectl assumes."""
DOMAINS: Final = interest_in_fields(ComputeDomain.gvk, "spec.channel.resourceClaimTemplate.name")
"""The fields of ComputeDomains that are read."""
_SHOWN: Final = 3
ClaimKind: TypeAlias = type[ResourceClaim | ResourceClaimTemplate]


@dataclass(frozen=True, slots=True)
class AbsenceOfClaim:
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
class _NamesOfKind:
    """The objects of one kind: their names in the namespace, and the namespaces that have each name."""

    here: Sequence[str]
    namespaces: Mapping[str, Sequence[str]]


class AbsenceFinder:
    """Finds out why objects do not exist in the namespace of one view; each kind is listed once."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._here = view.namespace or DEFAULT
        self._names: dict[ClaimKind, _NamesOfKind] = {}
        self._promised: frozenset[str] | None = None

    def of(self, kind: ClaimKind, name: str) -> AbsenceOfClaim:
        """Return why an object that was looked up does not exist."""
        names = self._cached_names_of_kind(kind)
        is_promised = kind is ResourceClaimTemplate and name in self._cached_promised_templates()
        elsewhere = names.namespaces.get(name, ())
        is_known = self._view.is_whole(kind.gvk)
        return AbsenceOfClaim(
            is_absent=is_known and not is_promised,
            is_promised=is_promised,
            nearest=self._view.nearest(name, names.here),
            elsewhere=tuple(sorted(set(elsewhere))[:_SHOWN]),
        )

    def _cached_names_of_kind(self, kind: ClaimKind) -> _NamesOfKind:
        if kind not in self._names:
            self._names[kind] = self._names_in_view(kind)
        return self._names[kind]

    def _names_in_view(self, kind: ClaimKind) -> _NamesOfKind:
        """List the names of a whole cluster, which may have thousands of others: without typed fields."""
        here: list[str] = []
        namespaces: dict[str, list[str]] = {}
        for obj in self._view.deadline.items_with_clock_checks(self._view.objects(kind.gvk)):
            name, namespace = _place(obj)
            namespaces.setdefault(name, []).append(namespace)
            if namespace == self._here:
                here.append(name)
        return _NamesOfKind(here, namespaces)

    def _cached_promised_templates(self) -> frozenset[str]:
        if self._promised is None:
            self._promised = templates_of_compute_domains(self._view)
        return self._promised


def templates_of_compute_domains(view: ClusterView) -> frozenset[str]:
    """Return the names of the templates that ComputeDomains of the view's namespace create."""
    here = view.namespace or DEFAULT
    objects_here = [
        obj for obj in view.deadline.items_with_clock_checks(view.objects(ComputeDomain.gvk)) if _place(obj)[1] == here
    ]
    domains = [
        ComputeDomain(obj, (), Reading(view.deadline)) for obj in view.deadline.items_with_clock_checks(objects_here)
    ]
    return frozenset(domain.spec.channel.resource_claim_template.name for domain in domains)


def _place(obj: JSON) -> tuple[str, str]:
    """Return the name and the namespace of an object of the cluster."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):  # in a file
        return "", DEFAULT
    return metadata.get("name") or "", metadata.get("namespace") or DEFAULT
