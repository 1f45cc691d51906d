"""string.format of newer cel-go versions, only for cel-spec's conformance: Kubernetes keeps the older one.

Source: cel-go v0.26.0 ext/formatting_v2.go (ext.Strings version 4). Nothing is quoted, no thousands are separated,
numbers of every kind fit every clause for numbers.

string.format(list(dyn)) -> string
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from webhook.cel.library.declaration import Overload
from webhook.cel.library.format_string import (
    DEFAULT_PRECISION,
    REFUSALS,
    FormatClause,
    FormatProblem,
    split_into_clauses,
)
from webhook.cel.library.format_string import format_string as kubernetes_format
from webhook.cel.types import LIST_DYN, STRING
from webhook.cel.values import Duration, Map, Timestamp, TypeValue, UInt, map_items, plain_double_text, type_name
from webhook.deadline import Deadline
from webhook.errors import EvaluationError

_NUMBERS = frozenset((int, UInt, float))


def format_plainly(text: str, arguments: list[Any]) -> str:
    """Return the text with its clauses replaced by the arguments."""
    values, pieces = iter(arguments), []
    try:
        for part in split_into_clauses(text, len(arguments)):
            pieces.append(part if isinstance(part, str) else _format_clause(next(values), part))  # noqa: PERF401
    except FormatProblem as problem:
        raise EvaluationError(str(problem)) from None
    return "".join(pieces)


def _format_clause(value: Any, clause: FormatClause) -> str:
    letter = clause.letter
    if letter == "s":
        return plain_text(value)
    if letter not in "def":
        return kubernetes_format(Deadline(), f"%{letter.upper() if clause.upper else letter}", [value])
    if type(value) not in _NUMBERS:
        raise EvaluationError(f"error during formatting: {REFUSALS[letter].format(type_name(value))}")
    if letter == "d" or not math.isfinite(value):
        return plain_text(value)
    precision = DEFAULT_PRECISION if clause.precision is None else clause.precision
    return f"{float(value):.{precision}{letter}}"


def plain_text(value: Any) -> str:
    """Return a value as people write it, without quotes."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise EvaluationError(f"error during formatting: {REFUSALS['s'].format(type_name(value))}")
    return writer(value)


def _plain_double_text(value: float) -> str:
    if math.isfinite(value):
        return plain_double_text(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain_map_text(value: dict[Any, Any]) -> str:
    entries = sorted((plain_text(key), plain_text(item)) for key, item in map_items(value))
    return "{" + ", ".join(f"{key}: {item}" for key, item in entries) + "}"


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    UInt: lambda value: str(int(value)),
    float: _plain_double_text,
    bytes: lambda value: value.decode("utf-8", "replace"),
    str: str,
    Duration: str,
    Timestamp: str,
    type(None): lambda _: "null",
    TypeValue: str,
    list: lambda value: "[" + ", ".join(map(plain_text, value)) + "]",
    dict: _plain_map_text,
    Map: _plain_map_text,
}

FUNCTIONS = (Overload("format", "string_format", (STRING, LIST_DYN), STRING, format_plainly, member=True),)
