"""Converts the values of mutation expressions to patches, and refuses values that API servers cannot convert.

An `Object{…}` is converted field by field to Go's native values, and a JSONPatch value to protobuf's JSON. The two
conversions accept different values. In an `Object{…}`, the origin of a list or map matters. Lists and maps from objects
that an expression reads are JSON, and so is the result of `+`. A list or map that CEL created can be the value of a
field: its items are converted one by one, and an empty list or map becomes null. Inside another list or map, such a
list or map stays a value of cel-go, which no schema accepts. A list of strings from split or findAll stays a value of
cel-go everywhere. Source: k8s.io/apiserver v0.36 pkg/cel/mutation/dynamic/objects.go (convertField),
mutating/patch/json_patch.go; cel-go v0.26 common/types (ConvertToNative, Value).
"""

from __future__ import annotations

import base64
import re
from calendar import month_name
from collections.abc import Collection, Iterable
from typing import Any, Final, Literal

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.cel.library.lists import Origin, Origins
from webhook.cel.library.optional_value import Optional
from webhook.cel.values import (
    MAPS,
    NANOSECONDS,
    Duration,
    Struct,
    Timestamp,
    TypeValue,
    UInt,
    map_items,
    to_json,
    type_name,
)
from webhook.deadline import CHARACTERS, Deadline
from webhook.errors import PatchError
from webhook.patch.gotext import NULL, NilList, NonJsonValue, go_syntax_text, plain_go_text
from webhook.yamltext.unread import Unread

_SAFE = 2**53 - 1
"""The largest integer that stays a number. Protobuf's JSON has larger integers as texts (cel-go int.go, isJSONSafe)."""
MOST_BYTES: Final = 3 << 20
"""The most bytes of an expression's value as JSON: API servers accept no larger objects (k8s.io/apiserver v0.36
pkg/server/config.go, MaxRequestBodyBytes).
"""
_DEEPEST: Final = MAX_DEPTH + 2
"""The most levels of an expression's value: the levels of an object, and two for the list of a JSONPatch and its
operations.
"""
_NOT_JSON = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
_WRAPPED = "&value.valueUnstructured{Value:"


class _UnconvertibleField(Exception):
    """The error for a field that cannot be converted. Its text becomes the value of the structure around the field."""


def require_bounded_value(value: Any, deadline: Deadline, named: str = "the value of the expression") -> None:
    """Refuse a value that is larger or deeper than any object of an API server. `named` is the name of the value in
    messages.

    Lists and maps of CEL may share parts. If each of forty variables contains the previous variable twice, the JSON
    of the last variable does not fit into any memory.

    Raises:
        PatchError: the value has too many bytes or levels.
        BudgetExceeded: the time is up.
    """
    left, depth, level = MOST_BYTES, 0, [value]
    while level:
        if depth > _DEEPEST:
            raise PatchError(f"{named} is nested deeper than {MAX_DEPTH} levels")
        next_level: list[Any] = []
        for each in level:
            parts = _parts_of_value(each)
            deadline.spend(1 + len(parts))
            size = 1 + len(parts)
            if isinstance(each, dict):
                size += sum(len(key) for key in each if isinstance(key, str))
            elif isinstance(each, str | bytes):
                size += len(each)
            elif isinstance(each, Unread):
                size += len(each.text)
            left -= size
            deadline.spend(size // CHARACTERS)
            if left < 0:
                raise PatchError(f"{named} has more than {MOST_BYTES >> 20} MiB as JSON")
            next_level += parts
        depth, level = depth + 1, next_level


def _parts_of_value(value: Any) -> Collection[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return value.values()
    return (value.value,) if type(value) is Optional and value.present else ()


class JsonPartTracker:
    """Knows by their identity which lists and maps are parts of the objects that an expression reads.

    Also knows which lists are results of `+`. Both are JSON. The objects are searched on first use. `has_nil`: whether
    a NilList was created instead of a list.
    """

    __slots__ = ("_deadline", "_ids", "_origins", "_roots", "has_nil")

    def __init__(
        self, roots: Iterable[JSON] = (), deadline: Deadline | None = None, origins: Origins | None = None
    ) -> None:
        self._roots = tuple(roots)
        self._deadline = deadline or Deadline()
        self._origins = origins or {}
        self.has_nil = False
        self._ids: set[int] | None = None

    def has(self, value: Any) -> bool:
        """Return whether a list or a map is a part of the objects."""
        if self._ids is None:
            self._ids = self._identities_of_parts()
        return id(value) in self._ids

    def origin_of_list(self, value: list[Any]) -> Origin | Literal["given", "values"]:
        """Return the origin of a list: a function (cel/library/lists.py), the objects (`given`), or CEL (`values`)."""
        origin = self._origins.get(id(value))
        if origin is not None:
            return origin[0]
        return "given" if self.has(value) else "values"

    def _identities_of_parts(self) -> set[int]:
        ids: set[int] = set()
        waiting = [each for each in self._roots if type(each) in (dict, list)]
        while waiting:
            each = waiting.pop()
            self._deadline.spend(1 + len(each))
            ids.add(id(each))
            parts = each.values() if type(each) is dict else each
            waiting += [part for part in parts if type(part) in (dict, list) and id(part) not in ids]
        return ids


def apply_configuration_of_value(value: Struct, tracker: JsonPartTracker | None = None) -> JSON:
    """Return the apply configuration of an `Object{…}`. Values that are not JSON in Go become a NonJsonValue or a
    NilList.

    Args:
        value: the structure.
        tracker: knows the lists and maps in the value that are JSON.

    Raises:
        PatchError: a field of the object itself cannot be converted.
    """
    try:
        return _converted_fields(value, tracker or JsonPartTracker())
    except _UnconvertibleField as error:
        raise PatchError(f"invalid return type: {error}") from None


def _converted_fields(value: Struct, tracker: JsonPartTracker) -> dict[str, JSON]:
    values: dict[str, JSON] = {}
    for name, item in value.items():
        try:
            values[name] = _converted_field(item, tracker)
        except _UnconvertibleField as error:
            raise _UnconvertibleField(f'fail to convert field "{name}": {error}') from None
    return values


def _converted_field(value: Any, tracker: JsonPartTracker) -> JSON:
    kind = type(value)
    if kind is list and tracker.origin_of_list(value) == "values":
        if not value:
            tracker.has_nil = True
            return NilList()
        return [_converted_item(item, tracker) for item in value]
    if kind in MAPS and kind is not Struct and not tracker.has(value):
        return {_text_of_key(key): _converted_item(item, tracker) for key, item in map_items(value)}
    return _converted_item(value, tracker)


def _converted_item(value: Any, tracker: JsonPartTracker) -> JSON:
    """Return a value as an element of a list or a map."""
    kind = type(value)
    if kind is Struct:
        try:
            return _converted_fields(value, tracker)
        except _UnconvertibleField as error:
            return NonJsonValue("*types.Err", str(error))
    if kind is Optional:
        return _converted_item(value.value, tracker) if value.present else None
    if kind is list:
        return _converted_list(value, tracker)
    if kind in MAPS:
        return to_json(value) if tracker.has(value) else _converted_map(value)
    return _converted_scalar(value)


def _converted_list(value: list[Any], tracker: JsonPartTracker) -> JSON:
    origin = tracker.origin_of_list(value)
    if origin == "joined":
        return [_converted_item(item, tracker) for item in value]
    if origin == "given":
        return to_json(value)
    quoted = ", ".join(map(_format_like_percent_sharp_v, value))
    if origin == "texts":
        return NonJsonValue("[]string", f"[{' '.join(value)}]", f"[]string{{{quoted}}}")
    return NonJsonValue("[]ref.Val", f"[{' '.join(map(_format_like_percent_v, value))}]", f"[]ref.Val{{{quoted}}}")


def _converted_map(value: Any) -> NonJsonValue:
    entries = sorted((_format_like_percent_v(key), key, item) for key, item in map_items(value))
    quoted = ", ".join(
        f"{_format_like_percent_sharp_v(key)}:{_format_like_percent_sharp_v(item)}" for _, key, item in entries
    )
    shown = " ".join(f"{key}:{_format_like_percent_v(item)}" for key, _, item in entries)
    return NonJsonValue("map[ref.Val]ref.Val", f"map[{shown}]", f"map[ref.Val]ref.Val{{{quoted}}}")


def _format_like_percent_v(value: Any) -> str:
    """Return a cel-go value as Go's %v prints it. Go prints an address for some values."""
    if value is None:
        return "0"
    if type(value) is list:
        return f"[{', '.join(map(_format_like_percent_v, value))}]"
    if type(value) in MAPS and type(value) is not Struct:
        format_part = _format_like_percent_v
        return f"{{{', '.join(f'{format_part(key)}: {format_part(item)}' for key, item in map_items(value))}}}"
    return plain_go_text(_converted_scalar(value))[2:-1]


def _format_like_percent_sharp_v(value: Any) -> str:
    """Return a cel-go value as Go's %#v prints it."""
    if value is None:
        return "0"
    return go_syntax_text(_converted_scalar(value))[len(_WRAPPED) : -1]


def _text_of_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    shown = repr(chr(key)) if type(key) is int and 0 <= key < 0x110000 else f"'{key}'"
    raise _UnconvertibleField(f"map key {shown} is of type types.{type_name(key).title()}, not string")


def _converted_scalar(value: Any) -> JSON:
    kind = type(value)
    if value is None:
        return NULL
    if kind is UInt:
        return NonJsonValue("uint64", str(int(value)), f"{int(value):#x}")
    if kind is bytes:
        return NonJsonValue("[]uint8", f"[{' '.join(map(str, value))}]", f"[]uint8{{{', '.join(map(hex, value))}}}")
    if kind is Timestamp:
        shown = str(value)
        return NonJsonValue(
            "time.Time", f"{shown.replace('T', ' ').removesuffix('Z')} +0000 UTC", _moment_as_go_string(shown)
        )
    if kind is Duration:
        return NonJsonValue("time.Duration", go_duration(value.nanoseconds), str(value.nanoseconds))
    if kind is TypeValue:
        return value.name
    return value if kind in (str, bool, int, float) else NonJsonValue(f"*{type_name(value)}", str(value))


def _moment_as_go_string(shown: str) -> str:
    """Convert a time in RFC 3339 (UTC) to the text of Go's Time.GoString."""
    year, month, day, hour, minute, second, fraction = re.split(r"[-T:.]", f"{shown.removesuffix('Z')}.0")[:7]
    parts = (day, hour, minute, second, fraction.ljust(9, "0"))
    return f"time.Date({int(year)}, time.{month_name[int(month)]}, {', '.join(str(int(n)) for n in parts)}, time.UTC)"


def go_duration(nanoseconds: int) -> str:
    """Return a duration as Go's Duration.String prints it: 1m30s, 1.5s, 20ms."""
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest < NANOSECONDS:
        for unit, size in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)):
            if rest >= size:
                return f"{sign}{_decimal_of_units(rest, size)}{unit}"
        return "0s"
    minutes, seconds = divmod(rest, 60 * NANOSECONDS)
    hours, minutes = divmod(minutes, 60)
    shown = f"{_decimal_of_units(seconds, NANOSECONDS)}s"
    if hours or minutes:
        shown = f"{minutes}m{shown}"
    return f"{sign}{hours}h{shown}" if hours else f"{sign}{shown}"


def _decimal_of_units(value: int, size: int) -> str:
    whole, fraction = divmod(value, size)
    digits = len(str(size)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0").rstrip(".") if fraction else str(whole)


def json_value(value: Any, tracker: JsonPartTracker | None = None) -> JSON:
    """Return the JSON of a value in a JSONPatch.

    Raises:
        PatchError: the value has no JSON form in protobuf.
    """
    kind = type(value)
    if kind is Struct:
        return _converted_structure(value, tracker or JsonPartTracker())
    if kind is Optional:
        if not value.present:
            raise PatchError(f"{_NOT_JSON}optional.none() dereference")
        return json_value(value.value, tracker)
    if kind in MAPS:
        return {_map_key_as_text(key): json_value(item, tracker) for key, item in map_items(value)}
    if kind is list:
        return [json_value(item, tracker) for item in value]
    if kind in (int, UInt):
        return int(value) if abs(value) <= _SAFE else str(int(value))
    if kind is TypeValue:
        raise PatchError(f"{_NOT_JSON}type conversion not supported for 'type'")
    if value is None or kind in (str, bool, float, bytes, Timestamp, Duration):
        return to_json(value)
    raise PatchError(f"{_NOT_JSON}type conversion error from '{_short_type_name(value)}' to '*structpb.Value'")


def _converted_structure(value: Struct, tracker: JsonPartTracker) -> JSON:
    """Return the JSON of an `Object{…}` in a JSONPatch. structpb.NewStruct accepts only Go's own values, and no
    values of cel-go.
    """
    try:
        return _as_protobuf_value(_converted_fields(value, tracker))
    except _UnconvertibleField as error:
        raise PatchError(f"{_NOT_JSON}{error}") from None


def _as_protobuf_value(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {name: _as_protobuf_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_protobuf_value(item) for item in value]
    if type(value) is int:
        return value if abs(value) <= _SAFE else float(value)
    if not isinstance(value, NonJsonValue):
        return value
    if value.go_type == "uint64":
        return int(value.text)
    if value.go_type == "[]uint8":
        return base64.b64encode(bytes(map(int, value.text[1:-1].split()))).decode()
    raise PatchError(f"{_NOT_JSON}proto: invalid type: {value.go_type}")


def _map_key_as_text(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        raise PatchError(f"{_NOT_JSON}type conversion error from bool to 'string'")
    raise PatchError(f"{_NOT_JSON}unsupported type conversion from '{type_name(key)}' to string")


def _short_type_name(value: Any) -> str:
    """Return the last part of a type's name: Quantity for kubernetes.Quantity, IP for net.IP."""
    return type_name(value).rpartition(".")[2]
