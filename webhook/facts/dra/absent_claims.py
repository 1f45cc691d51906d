"""Explains why a claim or a template does not exist: certainly absent, promised by a ComputeDomain, or misspelled.

It is known to be absent only if the view is the whole cluster. A ComputeDomain promises the template that it names; its
controller makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.dra.types import ComputeDomain, ResourceClaim, ResourceClaimTemplate
from webhook.facts.view import ClusterView

DEFAULT: Final = "default"
"""The namespace of an object without one in its file, as kubectl assumes."""


def _template_of_compute_domain(domain: JSON) -> Sequence[str]:
    return (ComputeDomain.of(domain).spec.channel.resource_claim_template.name,)


_BY_TEMPLATE: Final = Index("the template that it creates", _template_of_compute_domain)
DOMAINS: Final = interest_in_fields(
    ComputeDomain.gvk, "spec.channel.resourceClaimTemplate.name", indexes=(_BY_TEMPLATE,)
)
"""The fields of ComputeDomains that are read."""
_SHOWN: Final = 3
ClaimKind: TypeAlias = type[ResourceClaim | ResourceClaimTemplate]


class AbsenceOfClaim(Struct, frozen=True):
    """Known facts about a claim or a template that does not exist.

    Args:
        is_absent: whether it is known not to be there.
        is_promised: whether a ComputeDomain will make it.
        nearest: the name that was probably intended.
        elsewhere: other namespaces that have one of this name, at most three.
    """

    is_absent: bool = False
    is_promised: bool = False
    nearest: str = ""
    elsewhere: tuple[str, ...] = ()


class AbsenceFinder:
    """Finds out why objects do not exist in the namespace of one view."""

    def __init__(self, view: ClusterView) -> None:
        self._view = replace(view, namespace=view.namespace or DEFAULT)

    def find_absence(self, kind: ClaimKind, name: str) -> AbsenceOfClaim:
        """Return why an object that was looked up does not exist."""
        view = self._view
        is_promised = kind is ResourceClaimTemplate and is_promised_by_compute_domain(view, name)
        elsewhere = {namespace or DEFAULT for namespace in view.namespaces_with(kind.gvk, name)}
        nearest = view.nearest_here(name, kind.gvk)
        return AbsenceOfClaim(
            is_absent=view.is_whole(kind.gvk) and not is_promised,
            is_promised=is_promised,
            nearest=nearest,
            elsewhere=tuple(sorted(elsewhere)[:_SHOWN]),
        )


def is_promised_by_compute_domain(view: ClusterView, name: str) -> bool:
    """Return whether a ComputeDomain of the view's namespace creates a template of a name."""
    here = replace(view, namespace=view.namespace or DEFAULT)
    return next(here.typed_under_key(ComputeDomain, _BY_TEMPLATE, name), None) is not None
