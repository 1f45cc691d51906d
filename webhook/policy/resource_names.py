"""Finds rules that name a kind where the API server expects the plural of a resource, so that they never match.

kube-apiserver accepts such a policy and never evaluates it. Knows the kinds of Kubernetes and those of the workload
table; it recognizes other kinds by their capital letter, and guesses the plural.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import FieldPath, get
from webhook.cluster.known_kinds import KNOWN_KINDS
from webhook.errors import InputProblem
from webhook.workloads.plurals import plural_of_kind
from webhook.workloads.table import Table
from webhook.yamltext.yamlfile import Document

_PLACES = tuple(
    ("spec", match, rules)
    for match in ("matchConstraints", "matchResources")
    for rules in ("resourceRules", "excludeResourceRules")
)


def errors_of_kinds_named_as_resources(documents: Sequence[Document], table: Table) -> Iterator[InputProblem]:
    """Yield the resources of policies and bindings that are kinds, each with its place and the plural."""
    plurals = _plurals_by_kind(table)
    for document in documents:
        for at, value in objects_of_list(document.value):
            for path, name in _resources_with_paths(value):
                if right := _probably_meant_resource(name, plurals):
                    reason = "matches nothing, because a rule names resources by their plural in lower case"
                    message = f"`{name}` {reason}: write `{right}`"
                    yield document.problem((*at, *path), message)


def _resources_with_paths(value: JSON) -> Iterator[tuple[FieldPath, str]]:
    for place in _PLACES:
        for number, rule in enumerate(_list_or_empty(get(value, place))):
            for index, name in enumerate(_list_or_empty(get(rule, ("resources",)))):
                if isinstance(name, str):
                    yield (*place, number, "resources", index), name


def _list_or_empty(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, list) else ()


def _plurals_by_kind(table: Table) -> Mapping[str, str]:
    """Return every known resource by its kind in lower case."""
    known = {kind.lower(): plural_of_kind(kind) for _, kind in KNOWN_KINDS}
    return known | {row.kind.lower(): row.resource for row in table.rows}


def _probably_meant_resource(name: str, plurals: Mapping[str, str]) -> str:
    """Return the probable resource; "" if the name may be a resource."""
    resource, slash, sub = name.partition("/")
    small = resource.lower()
    if resource == small and (small not in plurals or small in plurals.values()):
        return ""
    right = small if small in plurals.values() else plurals.get(small) or plural_of_kind(resource)
    return f"{right}{slash}{sub}"
