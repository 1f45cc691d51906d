"""The value of a fact, the objects that were missing for the fact, and the structures in the value.

A structure has a description of each field, and docs/facts.md is generated from these descriptions. No field is ever
absent: a missing text is "", a missing list is empty, and a field that may be null has the type dyn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.cel.types import Structure, Type, object_type
from webhook.rules.problem import MissingObject

Missing: TypeAlias = Mapping[str, tuple[MissingObject, ...]]
"""Maps a field of a fact to the objects that the field needs and that were not found. The key "" is the whole fact."""


class FactResult(Struct, frozen=True):
    """A fact of one object: the value as plain JSON, and the objects that were missing, by field."""

    value: JSON
    missing: Missing = field(default_factory=dict)

    def missing_objects_of_fields(self, fields: Iterable[str] | None = None) -> tuple[MissingObject, ...]:
        """Return the objects that were missing for these fields, by default for all fields. Each object occurs once."""
        wanted = self.missing if fields is None else ("", *fields)
        return tuple(dict.fromkeys(each for name in wanted for each in self.missing.get(name, ())))


class FactStructure(Struct, frozen=True):
    """A structure in the value of a fact, with the meaning of each field."""

    structure: Structure
    texts: Mapping[str, str]

    @property
    def type(self) -> Type:
        """Return the CEL type of the structure's values."""
        return object_type(self.structure.name)


def declare_structure(name: str, /, **fields: tuple[Type, str]) -> FactStructure:
    """Return the structure `claimgate.<name>`. `fields` has the type and the meaning of each field."""
    types = {name: declared for name, (declared, _) in fields.items()}
    return FactStructure(Structure(f"claimgate.{name}", types), {name: text for name, (_, text) in fields.items()})
