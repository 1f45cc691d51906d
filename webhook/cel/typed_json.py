"""Reads and writes CEL values as JSON with their types, such as `{"uint": "1"}`, and reads types, such as `map(string,
int)`. The conformance corpora have this form (tests/data/cel/README.md).

Opaque values, structures and JSON patches can only be encoded.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from webhook.apimachinery.attributes import JSON
from webhook.cel.library.moments import parse_duration, parse_timestamp
from webhook.cel.library.optional_value import NONE, Optional
from webhook.cel.types import DURATION, NULL, TIMESTAMP, Type
from webhook.cel.values import (
    Duration,
    JSONPatch,
    Map,
    Struct,
    Timestamp,
    TypeValue,
    UInt,
    make_map,
    map_items,
    to_json,
    type_name,
)
from webhook.errors import EvaluationError

_SHORT = {"null": NULL, "timestamp": TIMESTAMP, "duration": DURATION}


def decode_value(typed: JSON) -> Any:
    """Return the value of typed JSON.

    Raises:
        ValueError: the value is not typed JSON, or can only be encoded.
    """
    if not isinstance(typed, dict) or len(typed) != 1:
        raise ValueError(f'expected an object with one key such as {{"int": "1"}}, found {json.dumps(typed)[:80]}')
    ((kind, content),) = typed.items()
    if kind not in _DECODERS:
        raise ValueError(f"unknown kind of value `{kind}`, expected one of {', '.join(_DECODERS)}")
    return _DECODERS[kind](content)


def encode_value(value: Any) -> JSON:
    """Return the typed JSON of a value; equal values have equal JSON."""
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value)
    return {"opaque": type_name(value), "string": str(value)}


def canonical_json(typed: JSON) -> JSON:
    """Return typed JSON with sorted maps, and with doubles as floats, to compare it with the result of encode_value."""
    if not isinstance(typed, dict):
        return typed
    if "map" in typed:
        return {"map": _sorted_pairs([[canonical_json(key), canonical_json(value)] for key, value in typed["map"]])}
    if "list" in typed:
        return {"list": [canonical_json(element) for element in typed["list"]]}
    if typed.get("optional") is not None:
        return {"optional": canonical_json(typed["optional"])}
    if "jsonpatch" in typed:
        return {"jsonpatch": {field: canonical_json(value) for field, value in typed["jsonpatch"].items()}}
    if "json" in typed:
        return {**typed, "json": json.loads(typed["json"])}
    if isinstance(typed.get("double"), int | float):
        return {"double": float(typed["double"])}
    return typed


def parse_type(text: str) -> Type:
    """Return the type of a text such as `map(string, list(int))`.

    Raises:
        ValueError: a name is missing, or brackets do not match.
    """
    kind, rest = _parse_type_prefix(text.strip())
    if rest:
        raise ValueError(f"unexpected `{rest}` after the type `{kind}`")
    return kind


def _parse_type_prefix(text: str) -> tuple[Type, str]:
    end = next((index for index, character in enumerate(text) if character in "(),"), len(text))
    name, rest = text[:end].strip(), text[end:]
    if not name:
        raise ValueError(f"expected the name of a type at `{text}`")
    parameters: list[Type] = []
    if rest.startswith("("):
        while not parameters or rest.startswith(","):
            parameter, rest = _parse_type_prefix(rest[1:])
            parameters.append(parameter)
        if not rest.startswith(")"):
            raise ValueError(f"expected `)` after `{name}(…`")
        rest = rest[1:].lstrip()
    return (_SHORT.get(name) or Type(name, tuple(parameters))), rest


def _parse_double(content: JSON) -> float:
    return float(content)  # also reads NaN, Infinity and -Infinity


def _encode_double(value: float) -> JSON:
    if math.isnan(value):
        return {"double": "NaN"}
    if math.isinf(value):
        return {"double": "Infinity" if value > 0 else "-Infinity"}
    return {"double": value}


def _encode_map(value: dict[Any, Any]) -> JSON:
    return {"map": _sorted_pairs([[encode_value(key), encode_value(content)] for key, content in map_items(value)])}


def _encode_struct(value: Struct) -> JSON:
    try:
        return {"opaque": value.name, "json": to_json(value)}
    except EvaluationError:  # a field has a value that JSON cannot express
        return {"opaque": value.name, "fields": {field: encode_value(content) for field, content in value.items()}}


def _encode_patch(value: JSONPatch) -> JSON:
    texts = {field: value[field] for field in ("op", "path", "from") if value.get(field)}
    return {"jsonpatch": texts | ({"value": encode_value(value["value"])} if "value" in value else {})}


def _sorted_pairs(pairs: list[list[JSON]]) -> list[list[JSON]]:
    return sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True))


def _encode_duration(value: Duration) -> JSON:
    seconds, fraction = divmod(abs(value.nanoseconds), 1_000_000_000)
    digits = f"{fraction:09d}".rstrip("0")
    sign = "-" if value.nanoseconds < 0 else ""
    return {"duration": f"{sign}{seconds}{'.' + digits if digits else ''}s"}


_DECODERS: Mapping[str, Callable[[JSON], Any]] = {
    "null": lambda _: None,
    "bool": bool,
    "int": int,
    "uint": lambda content: UInt(int(content)),
    "double": _parse_double,
    "string": str,
    "bytes": base64.b64decode,
    "list": lambda content: [decode_value(element) for element in content],
    "map": lambda content: make_map((decode_value(key), decode_value(value)) for key, value in content),
    "type": TypeValue,
    "timestamp": parse_timestamp,
    "duration": parse_duration,
    "optional": lambda content: Optional(decode_value(content)) if content is not None else NONE,
}
_ENCODERS: Mapping[type, Callable[[Any], JSON]] = {
    type(None): lambda _: {"null": None},
    bool: lambda value: {"bool": value},
    int: lambda value: {"int": str(value)},
    UInt: lambda value: {"uint": str(int(value))},
    float: _encode_double,
    str: lambda value: {"string": value},
    bytes: lambda value: {"bytes": base64.b64encode(value).decode()},
    list: lambda value: {"list": [encode_value(element) for element in value]},
    dict: _encode_map,
    Map: _encode_map,
    TypeValue: lambda value: {"type": value.name},
    Timestamp: lambda value: {"timestamp": str(value)},
    Duration: _encode_duration,
    Optional: lambda value: {"optional": encode_value(value.value) if value.present else None},
    Struct: _encode_struct,
    JSONPatch: _encode_patch,
}
