"""What the values of mutation expressions become in a patch, and which of them the API server cannot turn into one.

An `Object{…}` is read field by field through Go's native values, a JSONPatch value through protobuf's JSON; each has
its own idea of what can be converted. In an `Object{…}` it makes a difference who made a list or a map: those of the
objects that an expression reads are JSON. Of CEL's own, an empty list is null, and a list or a map inside another one
is a value of cel-go, which no schema takes. A list inside another one that `+` has made is JSON there, which nobody can
tell from a literal here: no inner list is refused but an empty one. Source:
k8s.io/apiserver v0.36 pkg/cel/mutation/dynamic/objects.go (convertField), mutating/patch/json_patch.go;
cel-go v0.26 common/types (ConvertToNative).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.attributes import JSON
from webhook.cel.structures import Struct
from webhook.cel.values import (
    MAPS,
    NANOSECONDS,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    map_items,
    to_json,
    type_name,
)
from webhook.deadline import Deadline
from webhook.errors import PatchError
from webhook.patch.gotext import Foreign, NilList, plain

_SAFE = 2**53 - 1
"""Integers beyond it become text in a JSON value of protobuf (cel-go int.go, isJSONSafe)."""
_NOT_JSON = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
_NULL = Foreign("structpb.NullValue", "NULL_VALUE")


class _Unconvertible(Exception):
    """A field that cannot be converted; the text becomes the value of the structure around it."""


class Given:
    """The lists and maps of the objects that an expression reads, told by identity; looked for when first asked.

    `has_nil` says whether a NilList was made in their place.
    """

    __slots__ = ("_deadline", "_ids", "_roots", "has_nil")

    def __init__(self, roots: Iterable[JSON] = (), deadline: Deadline | None = None) -> None:
        self._roots = tuple(roots)
        self._deadline = deadline or Deadline()
        self.has_nil = False
        self._ids: set[int] | None = None

    def has(self, value: Any) -> bool:
        """Whether a list or a map is a part of these objects."""
        if self._ids is None:
            self._ids = self._collected()
        return id(value) in self._ids

    def _collected(self) -> set[int]:
        ids: set[int] = set()
        waiting = [each for each in self._roots if type(each) in (dict, list)]
        while waiting:
            each = waiting.pop()
            self._deadline.spend(1 + len(each))
            ids.add(id(each))
            inner = each.values() if type(each) is dict else each
            waiting += [one for one in inner if type(one) in (dict, list) and id(one) not in ids]
        return ids


def configuration(value: Struct, given: Given | None = None) -> JSON:
    """The apply configuration that an `Object{…}` stands for; what is no JSON in Go is a Foreign or a NilList.

    Args:
        value: the structure.
        given: what is JSON in it, and was not made by CEL.

    Raises:
        PatchError: a field of the object itself cannot be converted.

    """
    try:
        return _fields(value, given or Given())
    except _Unconvertible as error:
        raise PatchError(f"invalid return type: {error}") from None


def _fields(value: Struct, given: Given) -> dict[str, JSON]:
    values: dict[str, JSON] = {}
    for name, item in value.items():
        try:
            values[name] = _field(item, given)
        except _Unconvertible as error:
            raise _Unconvertible(f'fail to convert field "{name}": {error}') from None
    return values


def _field(value: Any, given: Given) -> JSON:
    kind = type(value)
    if kind is list:
        if not value and not given.has(value):
            given.has_nil = True
            return NilList()
        return [_item(item, given) for item in value]
    if kind in MAPS and kind is not Struct:
        return {_text(key): _item(item, given) for key, item in map_items(value)}
    return _item(value, given)


def _item(value: Any, given: Given) -> JSON:
    """A value as it stands in a list or a map."""
    kind = type(value)
    if kind is Struct:
        try:
            return _fields(value, given)
        except _Unconvertible as error:
            return Foreign("*types.Err", str(error))
    if kind is list:
        return to_json(value) if value or given.has(value) else Foreign("[]ref.Val", "[]")
    if kind in MAPS:
        return to_json(value) if given.has(value) else Foreign("map[ref.Val]ref.Val", plain(to_json(value))[2:-1])
    return _scalar(value)


def _text(key: Any) -> str:
    if isinstance(key, str):
        return key
    shown = repr(chr(key)) if type(key) is int and 0 <= key < 0x110000 else f"'{key}'"
    raise _Unconvertible(f"map key {shown} is of type types.{type_name(key).title()}, not string")


def _scalar(value: Any) -> JSON:
    kind = type(value)
    if value is None:
        return _NULL
    if kind is UInt:
        return Foreign("uint64", str(int(value)))
    if kind is bytes:
        return Foreign("[]uint8", f"[{' '.join(map(str, value))}]")
    if kind is Timestamp:
        return Foreign("time.Time", f"{str(value).replace('T', ' ').removesuffix('Z')} +0000 UTC")
    if kind is Duration:
        return Foreign("time.Duration", go_duration(value.nanoseconds))
    if kind is TypeValue:
        return value.name
    return value if kind in (str, bool, int, float) else Foreign(f"*{type_name(value)}", str(value))


def go_duration(nanoseconds: int) -> str:
    """A span of time as Go's Duration.String prints it: 1m30s, 1.5s, 20ms."""
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest < NANOSECONDS:
        for unit, size in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)):
            if rest >= size:
                return f"{sign}{_decimal(rest, size)}{unit}"
        return "0s"
    minutes, seconds = divmod(rest, 60 * NANOSECONDS)
    hours, minutes = divmod(minutes, 60)
    shown = f"{_decimal(seconds, NANOSECONDS)}s"
    if hours or minutes:
        shown = f"{minutes}m{shown}"
    return f"{sign}{hours}h{shown}" if hours else f"{sign}{shown}"


def _decimal(value: int, size: int) -> str:
    whole, fraction = divmod(value, size)
    digits = len(str(size)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0").rstrip(".") if fraction else str(whole)


def json_value(value: Any) -> JSON:
    """The JSON that a value of a JSONPatch becomes.

    Raises:
        PatchError: it has no JSON form in protobuf.

    """
    kind = type(value)
    if kind is Optional:
        if not value.present:
            raise PatchError(f"{_NOT_JSON}optional.none() dereference")
        return json_value(value.value)
    if kind is Struct:
        return {name: json_value(item) for name, item in value.items()}
    if kind in MAPS:
        return {_key(key): json_value(item) for key, item in map_items(value)}
    if kind is list:
        return [json_value(item) for item in value]
    if kind in (int, UInt):
        return int(value) if abs(value) <= _SAFE else str(int(value))
    if kind is TypeValue:
        raise PatchError(f"{_NOT_JSON}type conversion not supported for 'type'")
    if value is None or kind in (str, bool, float, bytes, Timestamp, Duration):
        return to_json(value)
    raise PatchError(f"{_NOT_JSON}type conversion error from '{_library_name(value)}' to '*structpb.Value'")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        raise PatchError(f"{_NOT_JSON}type conversion error from bool to 'string'")
    raise PatchError(f"{_NOT_JSON}unsupported type conversion from '{type_name(key)}' to string")


def _library_name(value: Any) -> str:
    """Quantity of kubernetes.Quantity, IP of net.IP."""
    return type_name(value).rpartition(".")[2]
