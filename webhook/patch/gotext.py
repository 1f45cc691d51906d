"""Prints values of an ApplyConfiguration with Go's %v, %#v and %T, as errors of API servers do.

None is null of JSON. A NonJsonValue, such as CEL's null, is a value that API servers do not accept as JSON. Source: fmt
of Go 1.26 on sigs.k8s.io/structured-merge-diff v6.3.2 value/{valueunstructured,value}.go.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON

_UNDEFINED: Final = object()


class NonJsonValue(Struct, frozen=True):
    """A value that API servers do not accept as JSON: its Go type, and its texts with %v and %#v."""

    go_type: str
    text: str
    sharp: str = ""


NULL: Final = NonJsonValue("structpb.NullValue", "NULL_VALUE", "0")
"""CEL's null, which no field accepts."""


class NilList(list[JSON]):
    """An empty list of CEL: in Go a nil slice, which becomes null in JSON."""


def go_type_name(value: JSON) -> str:
    """Return the Go type of a value (%T)."""
    if isinstance(value, NonJsonValue):
        return value.go_type
    names: dict[type, str] = {
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
        list: "[]interface {}",
        NilList: "[]interface {}",
        dict: "map[string]interface {}",
    }
    return names.get(type(value), "<nil>")


def plain_go_text(value: JSON) -> str:
    """Return the value in its Go wrapper with %v: `&{x}`."""
    return f"&{{{_go_percent_v_text(value)}}}"


def _go_percent_v_text(value: JSON) -> str:
    if isinstance(value, NonJsonValue):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_percent_v_text, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_percent_v_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, float):
        return _shortest_number_text(value)
    return "<nil>" if value is None else str(value)


def go_syntax_text(value: JSON) -> str:
    """Return the value in its Go wrapper with %#v: `&value.valueUnstructured{Value:5}`."""
    return f"&value.valueUnstructured{{Value:{_go_percent_sharp_v_text(value)}}}"


def _go_percent_sharp_v_text(value: JSON) -> str:
    if isinstance(value, NonJsonValue):
        return value.sharp or value.text
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, NilList):
        return "[]interface {}(nil)"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_percent_sharp_v_text, value))}}}"
    if isinstance(value, dict):
        entries = (f"{_go_percent_sharp_v_text(key)}:{_go_percent_sharp_v_text(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(entries)}}}"
    return "interface {}(nil)" if value is None else _go_percent_v_text(value)


def identity_of_item(value: JSON) -> Hashable:
    """Return the key of a list item: 1 equals 1.0, and all NonJsonValues are equal."""
    if isinstance(value, bool | list | dict):
        return type(value), _text_of_identity(value)
    return _UNDEFINED if isinstance(value, NonJsonValue) else value


def text_of_identity(value: Any) -> str:
    """Return an item's key as text: ToString of structured-merge-diff's value.go."""
    return str(value[1]) if isinstance(value, tuple) else _text_of_identity(value)


def _text_of_identity(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{','.join(map(_text_of_identity, value))}]"
    if isinstance(value, dict):
        return "".join(f"{name}={_text_of_identity(value[name])}" for name in sorted(value))
    if value is _UNDEFINED or isinstance(value, NonJsonValue):
        return "{{undefined}}"
    return "null" if value is None else _go_percent_v_text(value)


def _shortest_number_text(value: float) -> str:
    # a number below 1e-4 or from 1e21 on has an exponent
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    return (
        f"{mantissa.removesuffix('.0')}e{exponent[0] if exponent[0] in '+-' else '+'}{exponent.lstrip('+-').zfill(2)}"
    )
