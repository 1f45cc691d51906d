"""Decodes an object by its type: removes nulls and values of wrong types, and lists the values of wrong types.

- A null field, or a null in a map, counts as absent.
- In a list, a null or an item of a wrong type becomes an empty value, as in Go. The other items keep their indexes.
- A null amount stays. Kubernetes reads it as 0 in built-in kinds, and drops it from custom kinds.
- Undeclared fields are kept.
- A placeholder (`$`, `{{`, `NUM_NODES`, or `[[name]]` in YAML) may replace a value of any type. A placeholder of a
  wrong type is removed and its path is returned. It is not a mistake.

Only changed parts are copied, and a valid object is returned as the same value. Source: encoding/json and
sigs.k8s.io/json, the decoders of Kubernetes.

msgspec first checks whether a value already has its type. This check is about ten times faster than decoding. Only
values that fail this check are walked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from threading import Lock
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.deadline import Deadline
from webhook.errors import UnreadPartError
from webhook.schema.types import EXPECTED, Fields, Items, Scalar, Type
from webhook.text.wording import shown
from webhook.yamltext.placeholders import is_placeholder_for_non_text, is_unquoted_bracket_placeholder
from webhook.yamltext.unread import NO_FIELD, Unread


class Mismatch(Struct, frozen=True, kw_only=True):
    """A value of a wrong type.

    Attributes:
        at: the path from the root of the object.
        expected: the type in words, such as `a list`.
    """

    at: FieldPath
    expected: str
    value: JSON

    @property
    def path(self) -> str:
        return path_as_text(self.at)

    @property
    def value_as_text(self) -> str:
        return described(self.value)

    @property
    def message(self) -> str:
        """Return the message without the path: ``must be a list, not an object``."""
        return f"must be {self.expected}, not {self.value_as_text}"

    @property
    def fix(self) -> str:
        """Return the fix if YAML reads another type only because quotes or a blank are wrong; else ""."""
        if self.expected == "a string":
            if isinstance(self.value, bool):
                return "put it in quotes, because YAML reads words such as yes, no, on and off as true or false"
            return "put it in quotes" if isinstance(self.value, int | float) else ""
        if self.expected == "a list" and isinstance(self.value, dict):
            item = next((key for key in self.value if isinstance(key, str) and key.startswith("-") and key != "-"), "")
            return f"write a blank after - in `{shown(item)}`" if item else ""
        unquoted = _UNQUOTED.get(self.expected)
        is_meant = unquoted and isinstance(self.value, str) and unquoted.fullmatch(self.value)
        return "write it without quotes" if is_meant else ""


_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")
_UNQUOTED: Final = {
    "a whole number": _WHOLE_NUMBER,
    "a whole number of 32 bits": _WHOLE_NUMBER,
    "a number": _NUMBER,
    "true or false": re.compile("true|false"),
}
"""Patterns of texts that would have the expected type without quotes. The keys are values of types.EXPECTED."""


def described(value: JSON) -> str:
    """Return a value in words: ``an object``, ``the string `2 GPUs` ``, ``the number 4``."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, Unread):
        return f"a value that is not read because {value.reason}"
    if isinstance(value, str):
        return f"the string `{shown(value)}`"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"the number {shown(value)}"


Fit: TypeAlias = Callable[[JSON], bool]
INT32: Final = range(-(1 << 31), 1 << 31)
INT64: Final = range(-(1 << 63), 1 << 63)

_BUILDING: Final = Lock()
"""Only one thread may build a type. msgspec stores incomplete data on a class while it builds the class. Another
thread that uses the class would read uninitialized memory and crash (msgspec 0.21, `StructInfo_Convert`)."""
_NOTHING: Final = Annotated[int, msgspec.Meta(ge=1, le=0)] | msgspec.UnsetType
"""The type of a field that must be absent."""
_ANY: Final = bool | int | float | str | list | dict
_QUANTITY: Final[Any] = (
    int | float | Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?([mkMGTPE]|[KMGTPE]i)?\Z")]
)
"""A quantity in a usual form. Decoding accepts other values, too, after it has walked the object."""
_INT32: Final = Annotated[int, msgspec.Meta(ge=INT32.start, le=INT32.stop - 1)]
_INT64: Final = Annotated[int, msgspec.Meta(ge=INT64.start, le=INT64.stop - 1)]
_SCALARS: Final[dict[Scalar, Any]] = {
    "any": _ANY,
    "quantity": _QUANTITY,
    "text": str,
    "truth": bool,
    "number": _INT64,
    "int64": _INT64,
    "int32": _INT32,
    "float": int | float,
    "intOrText": str | _INT64,
}


@cache
def create_type_check(of: Type) -> Fit:
    """Return the function behind `has_declared_form`. Any thread may call it."""
    with _BUILDING:
        wanted = _msgspec_type(of)
        msgspec.json.Decoder(wanted)  # this builds the type and all types in it

    def fits(value: JSON) -> bool:
        try:
            msgspec.convert(value, wanted)
        except (msgspec.ValidationError, RecursionError, UnreadPartError):
            return False
        return True

    return fits


@cache
def _msgspec_type(of: Type) -> Any:
    """Return the type for msgspec. Each type is built once."""
    if isinstance(of, Items):
        return list[_msgspec_type(of.item)]  # type: ignore[misc]
    if not isinstance(of, Fields):
        return _SCALARS[of]
    if of.fields:
        return msgspec.defstruct(
            "Object", _msgspec_fields(of), forbid_unknown_fields=True, gc=False, rename=dict(_attribute_names(of))
        )
    if of.others == "quantity":  # an amount in a map may be null
        return dict[str, _QUANTITY | None]
    return dict[str, _msgspec_type(of.others or "any")]  # type: ignore[misc]


def _attribute_names(of: Fields) -> Iterator[tuple[str, str]]:
    """Yield an attribute name for each field, because the name of a field may be a keyword of Python."""
    yield "unread", NO_FIELD
    yield from ((f"f{number}", name) for number, name in enumerate(of.fields))


def _msgspec_fields(of: Fields) -> list[tuple[str, Any, Any]]:
    """Return the fields of an object type. The first field exists only in an `Unread`, which therefore never fits."""
    types = [_NOTHING, *(_msgspec_type(inner) | msgspec.UnsetType for inner in of.fields.values())]
    return [(called, each, msgspec.UNSET) for (called, _), each in zip(_attribute_names(of), types, strict=True)]


_ABSENT: Final = object()
_CUSTOM: Final = frozenset(("int64", "int32"))
_WHOLE: Final[Mapping[str, str]] = {"int32": "number"}
_LONG: Final = 8
"""A list with at least this many entries is first checked as a whole."""
_WORK_OF_MISMATCH: Final = 3
"""Units of work for one value of a wrong type with its path: about 1.5 microseconds."""
_EMPTY: Final[Mapping[str, JSON]] = {"text": "", "number": 0, "int64": 0, "int32": 0, "float": 0, "truth": False}


class DecodedValue(NamedTuple):
    """The decoded object, its values of wrong types, and the paths of removed placeholders."""

    value: JSON
    mismatches: tuple[Mismatch, ...] = ()
    unfilled: tuple[FieldPath, ...] = ()


def decode(value: JSON, of: Type, at: FieldPath = (), deadline: Deadline | None = None) -> DecodedValue:
    """Decode a value by a type. The result is None if the value itself has another type.

    All paths begin with `at`. The deadline is charged for walked values.
    """
    until = deadline or Deadline()
    if value is None or has_declared_form(value, of, until):
        return DecodedValue(value)
    decoding = _ValueDecoder(until, list(at))
    result = decoding.decode_value(value, of)
    return DecodedValue(None if result is _ABSENT else result, tuple(decoding.mismatches), tuple(decoding.unfilled))


def has_declared_form(value: JSON, of: Type, deadline: Deadline) -> bool:
    """Return whether a value has a type, without undeclared fields, and with quantities in the usual form.

    The test is fast. If the result is False, the value may still have the type.
    """
    deadline.check_clock()  # msgspec cannot be interrupted; it takes a third of the time of decoding JSON
    return create_type_check(of)(value)


def has_undeclared_field(value: JSON, of: Type, deadline: Deadline) -> bool:
    """Return whether an object inside a value has a field that its type does not declare.

    An object without declared fields may have any fields. The deadline is charged for walked values.
    """
    if isinstance(of, Items):
        items = value if isinstance(value, list) else []
        return any(has_undeclared_field(each, of.item, deadline) for each in deadline.charge_for_items(items))
    if not isinstance(of, Fields) or not isinstance(value, dict):
        return False
    for name, member in deadline.charge_for_items(value.items()):
        inner = of.fields.get(name, of.others)
        if (inner is None and of.fields) or (inner is not None and has_undeclared_field(member, inner, deadline)):
            return True
    return False


class _ValueDecoder(Struct):
    """Decodes one value. `at` is the current path."""

    deadline: Deadline
    at: list[str | int]
    mismatches: list[Mismatch] = field(default_factory=list)
    unfilled: list[FieldPath] = field(default_factory=list)

    def decode_value(self, value: JSON, of: Type) -> JSON:
        """Decode a value that is not null. The result may be _ABSENT."""
        if isinstance(of, Fields):
            return self._object(value, of) if isinstance(value, dict) else self._record_mismatch(value, "an object")
        if isinstance(of, Items):
            return self._list(value, of) if isinstance(value, list) else self._record_mismatch(value, "a list")
        if _is_of_scalar_type(of, value):
            return value
        if of in _CUSTOM and isinstance(value, float) and value.is_integer():
            return self.decode_value(int(value), of)
        return self._record_mismatch(value, EXPECTED[of if isinstance(value, int) else _WHOLE.get(of, of)])

    def _record_mismatch(self, value: JSON, expected: str) -> JSON:
        self.deadline.spend(_WORK_OF_MISMATCH)
        if is_placeholder_for_non_text(value) if isinstance(value, str) else is_unquoted_bracket_placeholder(value):
            self.unfilled.append(tuple(self.at))
        else:
            self.mismatches.append(Mismatch(at=tuple(self.at), expected=expected, value=value))
        return _ABSENT

    def _decode_at_step(self, step: str | int, value: JSON, of: Type) -> JSON:
        self.at.append(step)
        result = self.decode_value(value, of)
        self.at.pop()
        return result

    def _object(self, value: dict[str, JSON], of: Fields) -> JSON:
        changed = {}
        for name, member in self.deadline.charge_for_items(value.items()):
            inner = of.fields.get(name, of.others or "any")
            if member is None:
                result = None if inner == "quantity" and name not in of.fields else _ABSENT
            else:
                result = self._decode_at_step(name, member, inner)
            if result is not member:
                changed[name] = result
        if not changed:
            return value
        both = {name: changed.get(name, member) for name, member in value.items()}
        return {name: member for name, member in both.items() if member is not _ABSENT}

    def _list(self, value: list[JSON], of: Items) -> JSON:
        if len(value) >= _LONG and create_type_check(of)(value):
            self.deadline.spend(len(value))
            return value
        changed = value
        for index, member in enumerate(self.deadline.charge_for_items(value)):
            result = _ABSENT if member is None else self._decode_at_step(index, member, of.item)
            if result is not member:
                changed = value.copy() if changed is value else changed
                changed[index] = zero_value_of_type(of.item) if result is _ABSENT else result
        return changed


def _is_of_scalar_type(of: Scalar, value: JSON) -> bool:
    """Return whether a value other than null has a scalar type."""
    if of in ("any", "quantity"):
        return True
    kind = type(value)
    if of in ("text", "truth"):
        return kind is (str if of == "text" else bool)
    if of == "float":
        return kind in (int, float)
    whole = kind is int and value in (INT32 if of == "int32" else INT64)
    return whole or (of == "intOrText" and kind is str)


def zero_value_of_type(of: Type) -> JSON:
    """Return the zero value of a type in Go."""
    if isinstance(of, Fields):
        return {}
    return [] if isinstance(of, Items) else _EMPTY.get(of)
