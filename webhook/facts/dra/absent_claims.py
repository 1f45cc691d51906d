"""Explains why a claim or a template does not exist: certainly absent, promised by a ComputeDomain, or misspelled.

It is known to be absent from a whole cluster alone. A ComputeDomain promises the template that it names; its controller
makes it. The objects of a kind are looked through once for all claims of a fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.types import ComputeDomain, ResourceClaim, ResourceClaimTemplate
from webhook.facts.view import View
from webhook.typed.objects import Object

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

    here: tuple[str, ...]
    namespaces: Mapping[str, tuple[str, ...]]


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
            elsewhere=elsewhere[:_SHOWN],
        )

    def _names_of(self, kind: ClaimKind) -> _Names:
        if kind not in self._names:
            self._names[kind] = self._listed(kind)
        return self._names[kind]

    def _listed(self, kind: ClaimKind) -> _Names:
        here: list[str] = []
        namespaces: dict[str, set[str]] = {}
        for obj in self._view.every(kind):
            namespaces.setdefault(obj.name, set()).add(_namespace(obj))
            if _namespace(obj) == self._here:
                here.append(obj.name)
        return _Names(tuple(here), {name: tuple(sorted(listed)) for name, listed in namespaces.items()})

    def _promised_templates(self) -> frozenset[str]:
        if self._promised is None:
            self._promised = promised_templates(self._view)
        return self._promised


def promised_templates(view: View) -> frozenset[str]:
    """Return the names of the templates that ComputeDomains of the view's namespace create."""
    here = view.namespace or DEFAULT
    domains = [domain for domain in view.every(ComputeDomain) if _namespace(domain) == here]
    return frozenset(domain.spec.channel.resource_claim_template.name for domain in domains)


def _namespace(obj: Object) -> str:
    return obj.namespace or DEFAULT
