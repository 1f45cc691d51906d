"""Tests whether a value has its type already, with msgspec, which is some ten times as fast as decoding.

Decoding has to examine values that do not fit: there may be a null, an undeclared field, or a value of another type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from threading import Lock
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from webhook.apimachinery.attributes import JSON
from webhook.errors import UnreadPartError
from webhook.schema.types import Fields, Items, Scalar, Type
from webhook.yamltext.unread import NO_FIELD

Fit: TypeAlias = Callable[[JSON], bool]
INT32: Final = range(-(1 << 31), 1 << 31)
INT64: Final = range(-(1 << 63), 1 << 63)

_BUILDING: Final = Lock()
"""msgspec stores its knowledge of a class on the class before it is complete: another thread that uses the class at
that moment reads uninitialized memory, and the process ends (msgspec 0.21, `StructInfo_Convert`)."""
_NOTHING: Final = Annotated[int, msgspec.Meta(ge=1, le=0)] | msgspec.UnsetType
"""The type of a field that must be absent."""
_ANY: Final = bool | int | float | str | list | dict
_INT32: Final = Annotated[int, msgspec.Meta(ge=INT32.start, le=INT32.stop - 1)]
_INT64: Final = Annotated[int, msgspec.Meta(ge=INT64.start, le=INT64.stop - 1)]
_SCALARS: Final[dict[Scalar, Any]] = {
    "any": _ANY,
    "quantity": _ANY,
    "text": str,
    "truth": bool,
    "number": _INT64,
    "int64": _INT64,
    "int32": _INT32,
    "intOrText": str | _INT64,
}


@cache
def create_type_check(of: Type) -> Fit:
    """Return a function that checks whether a value has a type. Any thread may call it; one of them builds the type."""
    with _BUILDING:
        wanted = _msgspec_type(of)
        msgspec.json.Decoder(wanted)  # builds the type and all within it

    def fits(value: JSON) -> bool:
        try:
            msgspec.convert(value, wanted)
        except (msgspec.ValidationError, RecursionError, UnreadPartError):
            return False
        return True

    return fits


@cache
def _msgspec_type(of: Type) -> Any:
    """Return the type as msgspec declares it, built once."""
    if isinstance(of, Items):
        return list[_msgspec_type(of.item)]  # type: ignore[misc]
    if not isinstance(of, Fields):
        return _SCALARS[of]
    if of.fields:
        return msgspec.defstruct(
            "Object", _msgspec_fields(of), forbid_unknown_fields=True, gc=False, rename=dict(_attribute_names(of))
        )
    if of.others == "quantity":  # an amount in a map may be null
        return dict
    return dict[str, _msgspec_type(of.others or "any")]  # type: ignore[misc]


def _attribute_names(of: Fields) -> Iterator[tuple[str, str]]:
    """Yield an attribute name for each field, because a field's name may be a keyword of Python."""
    yield "unread", NO_FIELD
    yield from ((f"f{number}", name) for number, name in enumerate(of.fields))


def _msgspec_fields(of: Fields) -> list[tuple[str, Any, Any]]:
    """Return the fields of an object, and one first that an `Unread` has, so that it is no object."""
    types = [_NOTHING, *(_msgspec_type(inner) | msgspec.UnsetType for inner in of.fields.values())]
    return [(called, each, msgspec.UNSET) for (called, _), each in zip(_attribute_names(of), types, strict=True)]
