"""The fields of typed objects: each reads one field of the JSON. A value of another type counts as the default.

    class PodSpec(Typed):
        node_name = Text()                      # nodeName
        containers = Parts(Container)           # Items[Container]; each knows its path
        cluster_ip = Text(name="clusterIP")     # where camel case is not enough

Objects do not change, so a value is read once and stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar, overload

from msgspec.structs import replace

from webhook.apimachinery import quantity
from webhook.apimachinery.quantity import Quantity
from webhook.typed.collections import Entries, Items
from webhook.typed.view import Typed

T = TypeVar("T")
Inner = TypeVar("Inner", bound=Typed)
_TEXT: Final = frozenset((str,))
Amount: TypeAlias = str | int | float
"""A quantity as written."""


class Field(Generic[T]):
    """A field. Values of the type `plain` are returned unchanged, without a call of `read`, because a review reads
    thousands of fields. An absent field is read as `default`.
    """

    plain: ClassVar[type | None] = None

    def __init__(self, default: Any = None, *, name: str = "") -> None:
        self.default = default
        self.name = name
        self._attribute = ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute
        self.name = self.name or camel_case(attribute)

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: Typed, kind: type) -> T: ...

    def __get__(self, owner: Typed | None, kind: type) -> Self | T:
        if owner is None:
            return self
        value: Any = owner.json.get(self.name, self.default)
        if type(value) is not self.plain:
            value = self.read(value, owner)
        setattr(owner, self._attribute, value)  # faster than a change of its __dict__
        result: T = value
        return result

    def read(self, value: Any, owner: Typed) -> T:
        """Return the value of the field of an object."""
        raise NotImplementedError


def camel_case(attribute: str) -> str:
    """Return the name of a field as an API spells it: `resourceClaims` for `resource_claims`."""
    first, *others = attribute.split("_")
    return first + "".join(map(str.capitalize, others))


def read_whole_number(value: Any) -> int | None:
    """Return a whole number, which custom kinds may write as 2.0; None for other values."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


class Text(Field[str]):
    """A string; "" if it is not set."""

    plain = str

    def __init__(self, default: str = "", *, name: str = "") -> None:
        super().__init__(default, name=name)

    def read(self, value: Any, owner: Typed) -> str:  # noqa: ARG002
        return value if isinstance(value, str) else self.default


class Number(Field[int]):
    """A whole number."""

    plain = int

    def __init__(self, default: int = 0, *, name: str = "") -> None:
        super().__init__(default, name=name)

    def read(self, value: Any, owner: Typed) -> int:  # noqa: ARG002
        number = read_whole_number(value)
        return self.default if number is None else number


class OptionalNumber(Field[int | None]):
    """A whole number; None if it is not set."""

    plain = int

    def read(self, value: Any, owner: Typed) -> int | None:  # noqa: ARG002
        return read_whole_number(value)


class Truth(Field[bool]):
    """True or false."""

    plain = bool

    def __init__(self, *, default: bool = False, name: str = "") -> None:
        super().__init__(default, name=name)

    def read(self, value: Any, owner: Typed) -> bool:  # noqa: ARG002
        return value if isinstance(value, bool) else self.default


class OptionalTruth(Field[bool | None]):
    """A boolean; None if it is not set."""

    plain = bool

    def read(self, value: Any, owner: Typed) -> bool | None:  # noqa: ARG002
        return value if isinstance(value, bool) else None


class Raw(Field[Any]):
    """Any JSON value, such as a quantity, a number or a text, or an object without a declared type."""

    def read(self, value: Any, owner: Typed) -> Any:  # noqa: ARG002
        return value


class Values(Field[Items[Any]]):
    """A list of any JSON values."""

    def read(self, value: Any, owner: Typed) -> Items[Any]:
        return Items(value if isinstance(value, list) else (), owner.reading.deadline)


class Part(Field[Inner]):
    """An object inside the object; false and empty if it is not set."""

    def __init__(self, kind: type[Inner], *, name: str = "") -> None:
        super().__init__(name=name)
        self.kind = kind

    def read(self, value: Any, owner: Typed) -> Inner:
        if isinstance(value, dict):
            return self.kind(value, (*owner.at, self.name), owner.reading)
        if value is not None:
            owner.reading.reject(value, owner.at)
        return self.kind({}, (*owner.at, self.name), owner.reading, is_set=False)


class AnyPart(Part[Inner]):
    """An object in a field that no API server decodes; any other value of the field counts as absent."""

    def read(self, value: Any, owner: Typed) -> Inner:
        reading = replace(owner.reading, is_decoded=False)
        return self.kind.of(value, (*owner.at, self.name), reading)


class Parts(Field[Items[Inner]]):
    """A list of objects. An entry of another type becomes a false and empty object, so that indexes stay right."""

    def __init__(self, kind: type[Inner], *, name: str = "") -> None:
        super().__init__(name=name)
        self.kind = kind

    def read(self, value: Any, owner: Typed) -> Items[Inner]:
        """Return the objects, each with its path."""
        reading = owner.reading
        deadline = reading.deadline
        if value is None:  # the usual case
            return Items((), deadline)
        if not isinstance(value, list):
            reading.reject(value, owner.at)
            return Items((), deadline)
        kind, at = self.kind, (*owner.at, self.name)
        return Items(
            [
                kind(part, (*at, index), reading) if isinstance(part, dict) else _part(kind, part, (*at, index), owner)
                for index, part in enumerate(deadline.charge_for_items(value))
            ],
            deadline,
        )


def part_at(owner: Typed, name: str, kind: type[Inner]) -> Inner:
    """Return the object in a field with an undeclared name; false if there is none."""
    return _part(kind, owner.json.get(name), (*owner.at, name), owner)


class PartMap(Field[Entries[Inner]]):
    """A map from texts to objects."""

    def __init__(self, kind: type[Inner], *, name: str = "") -> None:
        super().__init__(name=name)
        self.kind = kind

    def read(self, value: Any, owner: Typed) -> Entries[Inner]:
        """Return the objects by their keys, each with its path."""
        deadline, at = owner.reading.deadline, (*owner.at, self.name)
        entries = deadline.charge_for_items(_mapping(value).items())
        return Entries({key: _part(self.kind, part, (*at, key), owner) for key, part in entries}, deadline)


class Texts(Field[Items[str]]):
    """A list of strings. An entry of another type becomes "", so that indexes stay right."""

    def read(self, value: Any, owner: Typed) -> Items[str]:
        if not value:
            return Items((), owner.reading.deadline)
        deadline = owner.reading.deadline
        if not isinstance(value, list):
            return Items((), deadline)
        return Items([text if isinstance(text, str) else "" for text in deadline.charge_for_items(value)], deadline)


class Names(Field[Items[str]]):
    """The names of perhaps hundreds of objects in a list, without creating the objects; "" for a missing name."""

    def read(self, value: Any, owner: Typed) -> Items[str]:
        deadline = owner.reading.deadline
        listed: Sequence[Any] = value if isinstance(value, list) else ()
        deadline.spend(len(listed))
        try:
            names = [part["name"] for part in listed]
        except (KeyError, TypeError):
            names = [part.get("name") if isinstance(part, dict) else "" for part in listed]
        if not _TEXT.issuperset(map(type, names)):
            names = [name if isinstance(name, str) else "" for name in names]
        return Items(names, deadline)


class Labels(Field[Entries[str]]):
    """A map from texts to texts: labels, annotations, a node selector."""

    def read(self, value: Any, owner: Typed) -> Entries[str]:
        deadline = owner.reading.deadline
        if not value or not isinstance(value, dict):
            return Entries({}, deadline)
        deadline.spend(len(value))
        if _TEXT.issuperset(map(type, value.values())):  # as nearly always: no copy
            return Entries(value, deadline)
        return Entries({key: text for key, text in value.items() if isinstance(text, str)}, deadline)


class Amounts(Field[Entries[Amount]]):
    """A map from the names of resources to quantities, without null values, which the API server drops."""

    def read(self, value: Any, owner: Typed) -> Entries[Amount]:
        if not value:
            return Entries({}, owner.reading.deadline)
        deadline = owner.reading.deadline
        if not isinstance(value, dict):
            owner.reading.reject(value, owner.at)
            return Entries({}, deadline)
        deadline.spend(len(value))
        if None not in value.values():  # as nearly always: no copy
            return Entries(value, deadline)
        return Entries({name: amount for name, amount in value.items() if amount is not None}, deadline)


class ValueMap(Field[Entries[Any]]):
    """A map from texts to any JSON values, null included."""

    def read(self, value: Any, owner: Typed) -> Entries[Any]:
        if isinstance(value, dict):
            return Entries(value, owner.reading.deadline)
        if value is not None:
            owner.reading.reject(value, owner.at)
        return Entries({}, owner.reading.deadline)


class Quantities(Field[Entries[Quantity]]):
    """A map from the names of resources to parsed quantities; entries that are not quantities are left out."""

    def read(self, value: Any, owner: Typed) -> Entries[Quantity]:
        deadline = owner.reading.deadline
        entries = (
            (name, quantity.read_quantity_or_none(amount))
            for name, amount in deadline.charge_for_items(_mapping(value).items())
        )
        return Entries({name: amount for name, amount in entries if amount is not None}, deadline)


class TextListMap(Field[Entries[Items[str]]]):
    """A map from texts to lists of strings."""

    def read(self, value: Any, owner: Typed) -> Entries[Items[str]]:
        deadline, texts = owner.reading.deadline, Texts()
        entries = deadline.charge_for_items(_mapping(value).items())
        return Entries(
            {key: texts.read(listed, owner) for key, listed in entries if isinstance(listed, list)}, deadline
        )


class NumberMap(Field[Entries[int]]):
    """A map from texts to whole numbers, without other values."""

    def read(self, value: Any, owner: Typed) -> Entries[int]:
        deadline = owner.reading.deadline
        entries = (
            (key, read_whole_number(number)) for key, number in deadline.charge_for_items(_mapping(value).items())
        )
        return Entries({key: number for key, number in entries if number is not None}, deadline)


class Truths(Field[Entries[bool]]):
    """A map from texts to true or false, without other values."""

    def read(self, value: Any, owner: Typed) -> Entries[bool]:
        deadline = owner.reading.deadline
        entries = deadline.charge_for_items(_mapping(value).items())
        return Entries({key: truth for key, truth in entries if isinstance(truth, bool)}, deadline)


def _part(kind: type[Inner], value: Any, at: tuple[str | int, ...], owner: Typed) -> Inner:
    if isinstance(value, dict):
        return kind(value, at, owner.reading)
    owner.reading.reject(value, at)
    return kind({}, at, owner.reading, is_set=False)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
