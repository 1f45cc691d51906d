"""Objects inside other objects: what an AppWrapper wraps, the TrainJob that an OptimizationJob makes again and again.

They are at the places of rows of the table with `embeds: object`, and then have their own kind, or with `objects`, and
then have the kind in the row, with its group and version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.workloads.podsets import group_kind, places_of_path, product_of_factors
from webhook.workloads.rows import ObjectRule, Row
from webhook.workloads.table import Table

_DEEPEST = 4


class EmbeddedObject(Struct, frozen=True):
    """An object with apiVersion and kind, of a kind that the table has, with its place and its number of copies."""

    path: FieldPath
    object: JSON
    row: Row
    groups: int = 1


def embedded_objects(obj: JSON, table: Table, deadline: Deadline | None = None) -> Iterator[EmbeddedObject]:
    """Yield the objects inside an object, at any depth; those of kinds that the table does not have are left out."""
    row = table.row(*group_kind(obj))
    if row is not None and row.holds_objects:
        yield from _inside(EmbeddedObject((), obj, row), table, deadline or Deadline(), 0)


def _inside(outer: EmbeddedObject, table: Table, deadline: Deadline, depth: int) -> Iterator[EmbeddedObject]:
    for rule in object_rules(outer.row):
        for place in places_of_path(outer.object, rule.template, deadline=deadline):
            if not isinstance(place.value, dict) or depth == _DEEPEST:
                continue
            inner = {**place.value, **_type_fields_of_rule(outer.row, rule)}
            if own := table.row(*group_kind(inner)):
                groups = outer.groups * product_of_factors(outer.object, rule.groups)
                nested = EmbeddedObject((*outer.path, *place.path), inner, own, groups)
                yield nested
                yield from _inside(nested, table, deadline, depth + 1)


def holds_objects(obj: JSON, table: Table) -> bool:
    """Return whether objects of its kind may hold others."""
    row = table.row(*group_kind(obj))
    return row is not None and row.holds_objects


def may_hold_kind(row: Row, group: str, kind: str) -> bool:
    """Return whether the objects of a row may contain objects of a kind."""
    return any(not rule.kind or (row.group, rule.kind) == (group, kind) for rule in object_rules(row))


def object_rules(row: Row) -> Sequence[ObjectRule]:
    """Return the rules for the places of whole objects; without a kind, objects have it themselves."""
    held = [rule for rule in row.podSets if rule.embeds == "object"]
    inside = [ObjectRule(template=rule.template, kind="", groups=rule.groups) for rule in held]
    return (*inside, *row.objects)


def _type_fields_of_rule(row: Row, rule: ObjectRule) -> dict[str, JSON]:
    return {"apiVersion": row.gvk.api_version, "kind": rule.kind} if rule.kind else {}
