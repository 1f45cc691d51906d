"""The declaration of a fact: a CEL name with its type, the objects that it looks up, and the function that computes it.

Each package declares its facts as `FACTS`, mostly in `fact.py`; packages.py lists the packages. A structure describes
each of its fields, and docs/facts.md is made from these texts. No field is ever absent: a missing text is "", a missing
list is empty, and a field that can be null is dyn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.cel.types import Structure, Type, object_type
from webhook.cluster.interest import Interest
from webhook.rules.problem import MissingObject

if TYPE_CHECKING:
    from webhook.facts.subject import Subject

Missing: TypeAlias = Mapping[str, tuple[MissingObject, ...]]
"""Fields of a fact with the objects that were needed for them and not found; "" means the fact as a whole."""


class FactResult(Struct, frozen=True):
    """A fact of one object: its value as plain JSON, and what it could not be computed from."""

    value: JSON
    missing: Missing = field(default_factory=dict)

    def missing_objects_of_fields(self, fields: Iterable[str] | None = None) -> tuple[MissingObject, ...]:
        """Return the missing objects that prevented the computation of these fields, or of any field; each object
        once.
        """
        wanted = self.missing if fields is None else ("", *fields)
        return tuple(dict.fromkeys(each for name in wanted for each in self.missing.get(name, ())))


class FactStructure(Struct, frozen=True):
    """A structure that policies see, and what each of its fields means."""

    structure: Structure
    texts: Mapping[str, str]

    @property
    def type(self) -> Type:
        """Return the CEL type of the structure's values."""
        return object_type(self.structure.name)


class Fact(Struct, frozen=True, kw_only=True):
    """One fact.

    Args:
        name: the CEL name, which a policy declares in `claimgate.dev/facts`.
        about: its meaning, in one or a few sentences.
        examples: expressions that read it; the first expression is the most typical.
        type: the CEL type of its value.
        structures: the structures inside the value.
        compute: the fact of one object. It charges what it walks to the subject's deadline.
        lookups: what it looks up in the cluster, with the fields that it reads: a live view holds nothing else.
        expanded: fields that mean less for a pod template (`claimgate.dev/expand: pods`) than for the whole object,
            each with its meaning there; "" means the whole fact.
    """

    name: str
    about: str
    examples: tuple[str, ...]
    type: Type
    structures: tuple[FactStructure, ...]
    compute: Callable[[Subject], FactResult]
    lookups: tuple[Interest, ...] = ()
    expanded: Mapping[str, str] = field(default_factory=dict)


def declare_structure(name: str, /, **fields: tuple[Type, str]) -> FactStructure:
    """Return a structure `claimgate.<name>` from its fields, each with a type and what it means."""
    types = {name: declared for name, (declared, _) in fields.items()}
    return FactStructure(Structure(f"claimgate.{name}", types), {name: text for name, (_, text) in fields.items()})
