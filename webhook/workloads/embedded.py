"""Finds objects inside other objects, such as the objects in an AppWrapper, or the TrainJob of an OptimizationJob.

Rows of the table name the places of these objects. Objects at places with `embeds: object` name their own kind. Objects
at places in `objects` have the kind that the row names, with the group and version of the row.
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
    """An object inside another object, with its apiVersion and kind, its place, and the number of its copies."""

    path: FieldPath
    object: JSON
    row: Row
    groups: int = 1


def embedded_objects(obj: JSON, table: Table, deadline: Deadline | None = None) -> Iterator[EmbeddedObject]:
    """Yield the objects inside an object, down to four levels, if their kinds are in the table."""
    row = table.row(*group_kind(obj))
    if row is not None and row.holds_objects:
        yield from _nested_objects(EmbeddedObject((), obj, row), table, deadline or Deadline(), 0)


def _nested_objects(outer: EmbeddedObject, table: Table, deadline: Deadline, depth: int) -> Iterator[EmbeddedObject]:
    for rule in object_rules(outer.row):
        for place in places_of_path(outer.object, rule.template, deadline=deadline):
            if not isinstance(place.value, dict) or depth == _DEEPEST:
                continue
            inner = {**place.value, **_type_fields_of_rule(outer.row, rule)}
            if row_of_inner := table.row(*group_kind(inner)):
                groups = outer.groups * product_of_factors(outer.object, rule.groups)
                nested = EmbeddedObject((*outer.path, *place.path), inner, row_of_inner, groups)
                yield nested
                yield from _nested_objects(nested, table, deadline, depth + 1)


def holds_objects(obj: JSON, table: Table) -> bool:
    """Return whether objects of this kind may contain other objects."""
    row = table.row(*group_kind(obj))
    return row is not None and row.holds_objects


def may_hold_kind(row: Row, group: str, kind: str) -> bool:
    """Return whether the objects of a row may contain objects of a kind."""
    return any(not rule.kind or (row.group, rule.kind) == (group, kind) for rule in object_rules(row))


def object_rules(row: Row) -> Sequence[ObjectRule]:
    """Return the rules for the places of whole objects. If a rule has no kind, the objects name their own kind."""
    rules = [rule for rule in row.podSets if rule.embeds == "object"]
    inside = [ObjectRule(template=rule.template, kind="", groups=rule.groups) for rule in rules]
    return (*inside, *row.objects)


def _type_fields_of_rule(row: Row, rule: ObjectRule) -> dict[str, JSON]:
    return {"apiVersion": row.gvk.api_version, "kind": rule.kind} if rule.kind else {}
