"""Calls for which cel-go counts the cost with a function that expects a list and panics on another value.

This happens after the call in any case, also if its argument has failed: `object.spec.missing.distinct()` stops the
whole evaluation, and no `||` absorbs it. This applies only if the checker has left one signature, because other calls
count 1. Source: cel-go v0.26.0 ext/lists.go trackListSelfCompare, trackListFlatten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from webhook.cel.library.declaration import Overload
from webhook.cel.structures import JSONPatch, Struct
from webhook.cel.values import DictWithEmptyMaps, Duration, Map, Timestamp, TypeValue, UInt
from webhook.errors import BudgetExceeded, EvaluationPanic

GO_NAMES: Final[Mapping[type, str]] = {
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    dict: "*types.baseMap",
    Map: "*types.baseMap",
    DictWithEmptyMaps: "*types.baseMap",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
    Struct: "*dynamic.ObjectVal",
    JSONPatch: "*mutation.JSONPatchVal",
}
"""The Go types of values as an error names them (%T); a class that is not listed may have its own as `go_type`."""
_ADDERS = frozenset((int, UInt, float, str, bytes, Duration, Timestamp))


def go_type_name(kind: type) -> str:
    """Return the Go type of a class of values."""
    return GO_NAMES.get(kind) or getattr(kind, "go_type", "") or f"cel.{short_cel_type_name(kind)}"


def short_cel_type_name(kind: Any) -> str:
    """Return the last part of the name of a class's CEL type."""
    return str(kind.cel_type.name).rpartition(".")[2]


def index_of_tracked_argument(overloads: Sequence[Overload]) -> int | None:
    """Return which argument must have the type that the call's cost counting expects; None for most calls."""
    if len(overloads) != 1:
        return None
    overload = overloads[0]
    if overload.name in ("distinct", "sort"):
        return 0
    is_pair = overload.name == "@sortByAssociatedKeys" or overload.id == "list_flatten_int"
    return 1 if is_pair else None


def require_list(value: Any) -> Any:
    """Return the value if it is a list; panic as cel-go does otherwise.

    Raises:
        EvaluationPanic: it is something else.
    """
    kind = type(value)
    if kind is list:
        return value
    missing = "Contains" if kind in _ADDERS else "Add"
    raise EvaluationPanic(f"interface conversion: {go_type_name(kind)} is not traits.Lister: missing method {missing}")


def require_int(value: Any) -> Any:
    """Return the value if it is an int; panic as cel-go does otherwise.

    Raises:
        EvaluationPanic: it is something else.
    """
    if type(value) is int:
        return value
    raise EvaluationPanic(f"interface conversion: ref.Val is {go_type_name(type(value))}, not types.Int")


def panic_for_failed_list(error: Exception) -> NoReturn:
    """Panic as cel-go does for an error in place of a list.

    Raises:
        EvaluationPanic: always, except for errors that cannot be absorbed.
    """
    if isinstance(error, BudgetExceeded | EvaluationPanic):
        try:
            raise error
        finally:
            del error  # its traceback holds this frame: a circle
    raise EvaluationPanic("interface conversion: *types.Err is not traits.Lister: missing method Add")


def panic_for_failed_int(error: Exception) -> NoReturn:
    """Panic as cel-go does for an error in place of an int.

    Raises:
        EvaluationPanic: always, except for errors that cannot be absorbed.
    """
    if isinstance(error, BudgetExceeded | EvaluationPanic):
        try:
            raise error
        finally:
            del error  # its traceback holds this frame: a circle
    raise EvaluationPanic("interface conversion: ref.Val is *types.Err, not types.Int")
