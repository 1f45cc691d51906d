"""Explains why a claim or a template does not exist: certainly absent, promised by a ComputeDomain, or misspelled.

It is known to be absent from a whole cluster alone. A ComputeDomain promises the template that it names; its controller
makes it. The objects of a kind are looked through once for all claims of a fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import interest_in_fields
from webhook.deadline import Deadline
from webhook.facts.dra.types import ComputeDomain, ResourceClaim, ResourceClaimTemplate
from webhook.facts.view import ClusterView
from webhook.same import IdentityKey
from webhook.typed.view import ReadingContext

DEFAULT: Final = "default"
"""The namespace of an object whose file names none, as kubectl assumes."""
DOMAINS: Final = interest_in_fields(ComputeDomain.gvk, "spec.channel.resourceClaimTemplate.name")
"""The fields of ComputeDomains that are read."""
_SHOWN: Final = 3
_KEPT_LISTS: Final = 4
"""How many lists are kept that were read: claims and templates, as they are and as they were before."""
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
    """The objects of one kind: the names in each namespace, and the namespaces that have each name."""

    of_namespace: Mapping[str, Sequence[str]]
    namespaces: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class _ObjectsOfKind:
    """All objects of a kind; the deadline is no part of the cache key, because it does not change the result. until
    when they may be read makes no difference to what they say.
    """

    objects: IdentityKey
    deadline: Deadline = field(compare=False)


@lru_cache(maxsize=_KEPT_LISTS)
def _index_names_and_namespaces(listed: _ObjectsOfKind) -> _NamesOfKind:
    """Return the names of all objects, read once for each state of the cluster: a user of another namespace may have
    thousands.
    """
    of_namespace: dict[str, list[str]] = {}
    namespaces: dict[str, list[str]] = {}
    for obj in listed.deadline.items_with_clock_checks(listed.objects.held):
        name, namespace = _name_and_namespace(obj)
        namespaces.setdefault(name, []).append(namespace)
        of_namespace.setdefault(namespace, []).append(name)
    return _NamesOfKind(of_namespace, namespaces)


@lru_cache(maxsize=_KEPT_LISTS)
def _group_objects_by_namespace(listed: _ObjectsOfKind) -> Mapping[str, Sequence[JSON]]:
    objects: dict[str, list[JSON]] = {}
    for obj in listed.deadline.items_with_clock_checks(listed.objects.held):
        objects.setdefault(_name_and_namespace(obj)[1], []).append(obj)
    return objects


class AbsenceFinder:
    """Finds out why objects do not exist in the namespace of one view; each kind is listed once."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._here = view.namespace or DEFAULT
        self._kinds: dict[ClaimKind, _NamesOfKind] = {}
        self._promised: frozenset[str] | None = None

    def find_absence(self, kind: ClaimKind, name: str) -> AbsenceOfClaim:
        """Return why an object that was looked up does not exist."""
        names = self._cached_names_of_kind(kind)
        is_promised = kind is ResourceClaimTemplate and name in self._cached_compute_domain_templates()
        elsewhere = names.namespaces.get(name, ())
        is_known = self._view.is_whole(kind.gvk)
        return AbsenceOfClaim(
            is_absent=is_known and not is_promised,
            is_promised=is_promised,
            nearest=self._view.nearest(name, names.of_namespace.get(self._here, ())),
            elsewhere=tuple(sorted(set(elsewhere))[:_SHOWN]),
        )

    def _cached_names_of_kind(self, kind: ClaimKind) -> _NamesOfKind:
        if kind not in self._kinds:
            self._kinds[kind] = _index_names_and_namespaces(_list_objects_of_kind(self._view, kind.gvk))
        return self._kinds[kind]

    def _cached_compute_domain_templates(self) -> frozenset[str]:
        if self._promised is None:
            self._promised = templates_of_compute_domains(self._view)
        return self._promised


def templates_of_compute_domains(view: ClusterView) -> frozenset[str]:
    """Return the names of the templates that ComputeDomains of the view's namespace create."""
    here = _group_objects_by_namespace(_list_objects_of_kind(view, ComputeDomain.gvk)).get(
        view.namespace or DEFAULT, ()
    )
    domains = [
        ComputeDomain(obj, (), ReadingContext(view.deadline)) for obj in view.deadline.items_with_clock_checks(here)
    ]
    return frozenset(domain.spec.channel.resource_claim_template.name for domain in domains)


def _list_objects_of_kind(view: ClusterView, kind: GroupVersionKind) -> _ObjectsOfKind:
    return _ObjectsOfKind(IdentityKey(view.list_visible_json(kind)), view.deadline)


def _name_and_namespace(obj: JSON) -> tuple[str, str]:
    """Return the name and the namespace of an object of the cluster."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):  # in a file
        return "", DEFAULT
    return metadata.get("name") or "", metadata.get("namespace") or DEFAULT
