"""Finds the resources that are the same under another group or version, for `matchPolicy: Equivalent`.

Knows names only. The API server calls every served version of a resource equivalent, and the few resources that live in
two groups (k8s.io/apimachinery v0.36 pkg/runtime/mapper.go; kubernetes v1.36 default_storage_factory_builder.go). It
converts the object to the version of the matching rule. `conversion` of each pair says which of this claimgate can do:
`version` changes nothing but `apiVersion`, as the API server does for a CRD without a conversion webhook; `fields` is
one of the conversions of evaluation/conversions.py; `impossible` means that only an API server can do it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import GroupVersionKind, GroupVersionResource
from webhook.workloads.table import Table

Conversion: TypeAlias = Literal["none", "version", "fields", "impossible"]
"""The kind of conversion that an object needs to get into another version; none if it has that version."""

_DATA = Path(__file__).with_name("equivalent_resources.json")


class EquivalentResource(Struct, frozen=True):
    """The same resource under another group or version."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    conversion: Conversion


class ResourceEquivalences(Struct, frozen=True):
    """All known equivalences. `groups` maps each group and resource to one name for all groups that have the
    resource.
    """

    others: Mapping[GroupVersionResource, tuple[EquivalentResource, ...]]
    groups: Mapping[tuple[str, str], tuple[str, str]]

    def canonical_resource(self, group: str, resource: str) -> tuple[str, str]:
        """Return the group and resource under which a resource is indexed."""
        key = (group, resource)
        return self.groups.get(key, key)


def equivalent_resources(table: Table) -> ResourceEquivalences:
    """Return the shipped equivalences and those of the workload table's kinds with several versions."""
    pairs: dict[GroupVersionResource, dict[GroupVersionResource, EquivalentResource]] = {}
    groups: dict[tuple[str, str], tuple[str, str]] = {}
    for resource, kind, versions, conversion in (*_shipped_equivalences(), *_equivalents_of_table(table)):
        for group, version in versions:
            groups.setdefault((group, resource), (versions[0][0], resource))
            own = pairs.setdefault(GroupVersionResource(group, version, resource), {})
            for other_group, other_version in versions:
                name = GroupVersionResource(other_group, other_version, resource)
                if (other_group, other_version) != (group, version):
                    equal = EquivalentResource(name, GroupVersionKind(other_group, other_version, kind), conversion)
                    own.setdefault(name, equal)
    return ResourceEquivalences({key: tuple(value.values()) for key, value in pairs.items()}, groups)


_Row = tuple[str, str, tuple[tuple[str, str], ...], Conversion]


@cache
def _shipped_equivalences() -> tuple[_Row, ...]:
    rows = json.loads(_DATA.read_text(encoding="utf-8"))
    return tuple((row["resource"], row["kind"], tuple(map(tuple, row["versions"])), row["conversion"]) for row in rows)


def _equivalents_of_table(table: Table) -> Iterator[_Row]:
    for row in table.rows:
        if row.versions:
            versions = tuple((row.group, version) for version in row.versions)
            yield row.resource, row.kind, versions, "impossible" if row.conversion == "webhook" else "version"
