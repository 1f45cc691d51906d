"""What can be said of a claim or a template that is not there: known to be absent, promised, or near another one.

It is known to be absent from a whole cluster; from files only where they have others of its kind in the namespace, or
that name in another one. A ComputeDomain promises the template that it names; its controller makes it. The objects of a
kind are looked through once for all claims of a fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook import paths
from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.values import text
from webhook.facts.view import View

DOMAIN: Final = GroupVersionKind("resource.nvidia.com", "v1beta1", "ComputeDomain")
DEFAULT: Final = "default"
_SHOWN: Final = 3
_TEMPLATE: Final = ("spec", "channel", "resourceClaimTemplate", "name")
DOMAINS: Final = reading(DOMAIN, ".".join(_TEMPLATE))
"""What is read of ComputeDomains."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The objects of a kind: names in the namespace, and the namespaces that have a name."""

    here: tuple[str, ...]
    places: Mapping[str, tuple[str, ...]]


class Absences:
    """Answers for the namespace of one view; each kind is listed once."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._here = view.namespace or DEFAULT
        self._known: dict[GroupVersionKind, _Known] = {}
        self._promised: frozenset[str] | None = None

    def of(self, gvk: GroupVersionKind, name: str, *, is_made: bool) -> JSON:
        """The part of a claim of `dra` that says why there is nothing; `is_made`: a ComputeDomain may make it."""
        known = self._objects(gvk)
        promised = is_made and name in self._domains()
        elsewhere = known.places.get(name, ())
        is_known = bool(known.here) or bool(elsewhere) or self._view.is_whole()
        return {
            "absent": is_known and not promised,
            "promised": promised,
            "nearest": self._view.nearest(name, known.here),
            "elsewhere": [*elsewhere[:_SHOWN]],
        }

    def _objects(self, gvk: GroupVersionKind) -> _Known:
        objects = self._known.get(gvk)
        if objects is None:
            here: list[str] = []
            places: dict[str, set[str]] = {}
            for each in self._view.deadline.paced(self._view.objects(gvk)):
                namespace, name = _place(each)
                places.setdefault(name, set()).add(namespace)
                if namespace == self._here:
                    here.append(name)
            listed = {name: tuple(sorted(namespaces)) for name, namespaces in places.items()}
            objects = self._known[gvk] = _Known(tuple(here), listed)
        return objects

    def _domains(self) -> frozenset[str]:
        if self._promised is None:
            self._promised = promised_templates(self._view)
        return self._promised


def promised_templates(view: View) -> frozenset[str]:
    """The templates that the ComputeDomains of a view's namespace promise."""
    here = view.namespace or DEFAULT
    domains = (each for each in view.deadline.paced(view.objects(DOMAIN)) if _place(each)[0] == here)
    return frozenset(text(paths.get(each, _TEMPLATE)) for each in domains)


def _place(obj: JSON) -> tuple[str, str]:
    """Namespace and name of an object; a file may leave the namespace out, which kubectl takes for `default`."""
    namespace, name = (text(paths.get(obj, ("metadata", key))) for key in ("namespace", "name"))
    return namespace or DEFAULT, name
