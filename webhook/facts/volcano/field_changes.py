"""Compares two values of a type of an API as Go compares decoded values. Knows no rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from webhook import quantity
from webhook.attributes import JSON, GroupVersionKind
from webhook.deadline import Deadline
from webhook.paths import FieldPath
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, Type
from webhook.typed.view import Typed


def paths_of_changed_fields(
    before: Mapping[str, Any], after: Mapping[str, Any], spec: Typed, kind: GroupVersionKind
) -> Iterator[FieldPath]:
    """Yield the paths where the spec of an object has changed; `spec` gives its path."""
    declared = type_of(kind)
    inner = declared.fields["spec"] if isinstance(declared, Fields) else "any"
    return _SpecComparison(spec.reading.deadline).paths_of_changes(before, after, inner, spec.at)


@dataclass(frozen=True, slots=True)
class _SpecComparison:
    """Compares values; empty ones count as not set, and undeclared fields are ignored."""

    deadline: Deadline

    def paths_of_changes(self, old: JSON, new: JSON, of: Type, at: FieldPath) -> Iterator[FieldPath]:
        """Yield the paths where two values of a type differ."""
        self.deadline.spend(1)
        if old == new or (_is_omitted_by_go(old) and _is_omitted_by_go(new)):
            return
        if of == "quantity":
            if (
                quantity.read_quantity_or_none(old) != quantity.read_quantity_or_none(new)
                or quantity.read_quantity_or_none(old) is None
            ):
                yield at
        elif isinstance(of, Fields) and isinstance(old or {}, dict) and isinstance(new or {}, dict):
            yield from self._paths_in_fields(old or {}, new or {}, of, at)
        elif isinstance(of, Items) and isinstance(old or [], list) and isinstance(new or [], list):
            for index, (one, other) in enumerate(zip_longest(old or [], new or [])):
                yield from self.paths_of_changes(one, other, of.item, (*at, index))
        else:
            yield at

    def _paths_in_fields(
        self, old: Mapping[str, JSON], new: Mapping[str, JSON], of: Fields, at: FieldPath
    ) -> Iterator[FieldPath]:
        for name in dict.fromkeys((*old, *new)):
            inner = of.fields.get(name, of.others)
            if name not in of.fields and (name in old) != (name in new) and of.others is not None:
                yield (*at, name)
            elif inner is not None:
                yield from self.paths_of_changes(old.get(name), new.get(name), inner, (*at, name))


def _is_omitted_by_go(value: JSON) -> bool:
    """Return whether Go leaves out a value because it is empty."""
    return value in (None, "", 0, False) or value in ({}, [])
