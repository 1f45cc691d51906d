"""The errors of calls with values of wrong types: `no such overload`, and panics of cel-go.

Most functions check their arguments against their signatures, and name the call in the error. Operators and a few
functions accept every value that implements an operation (a singleton with an operand trait). Their error names no
arguments. The error does not name the function either if the first value is a text, a timestamp or a duration, or
implements the operation. Source: cel-go v0.26.0 common/decls/decls.go MaybeNoSuchOverload, common/types/types.go,
interpreter/interpretable.go evalUnary and evalBinary.

A few cost functions expect a list, and panic on another value, also after a failed argument. So
`object.spec.missing.distinct()` stops the whole evaluation, and no `||` absorbs the panic. A call with several fitting
signatures costs 1 and does not panic. Source: cel-go v0.26.0 ext/lists.go trackListSelfCompare, trackListFlatten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from webhook.cel.library.declaration import Overload
from webhook.cel.values import (
    DictWithEmptyMaps,
    Duration,
    JSONPatch,
    Map,
    Struct,
    Timestamp,
    TypeValue,
    UInt,
    type_name,
)
from webhook.errors import BudgetExceeded, EvaluationPanic, NoSuchOverload

_NUMBERS = frozenset((int, UInt, float))
_COMPARED = _NUMBERS | {bool, str, bytes, Timestamp, Duration}
_NEGATED = frozenset((bool, int, float, Duration))
_LISTS: frozenset[type] = frozenset((list,))
_ANY: frozenset[type] = frozenset((type(None), *_COMPARED, list, dict, Map))
SINGLETONS: Final[Mapping[str, frozenset[type]]] = {
    "_+_": _NUMBERS | {str, bytes, list, Timestamp, Duration},
    "_-_": _NUMBERS | {Timestamp, Duration},
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": frozenset((int, UInt)),
    "-_": _NEGATED,
    "!_": _NEGATED,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _COMPARED),
    "@in": _ANY,
    "_[_]": _ANY,
    "size": frozenset((str, bytes, list, dict, Map, DictWithEmptyMaps)),
    "matches": frozenset((str,)),
    "sort": _LISTS,
    "@sortByAssociatedKeys": _LISTS,
    "type": _ANY,
    "dyn": _ANY,
}
"""Functions with one implementation for all signatures, and the classes of the first value that this implementation
accepts. Static types of the arguments are ignored at run time."""
UNGUARDED: Final = frozenset(("contains", "startsWith", "endsWith", "flatten"))
"""Functions without a check against signatures (decls.DisableTypeGuards)."""
_NAMELESS = frozenset(("!_", "matches", "contains", "startsWith", "endsWith"))
"""Functions with an error that does not contain their name."""
_RECEIVERS = frozenset((str, Timestamp, Duration))


def raise_no_such_overload(name: str, *values: Any) -> NoReturn:
    """Raise the error of a call with values that fit no signature.

    Raises:
        NoSuchOverload: always.
    """
    operands = SINGLETONS.get(name)
    if operands is None and name not in UNGUARDED:
        raise NoSuchOverload(f"no such overload: {name}({', '.join(map(type_name_in_error, values))})")
    if name == "flatten":  # this error has its own message
        target, *arguments = map(_type_with_parameters, values)
        raise NoSuchOverload(f"no such overload: {target}.flatten({', '.join(arguments)})")
    raise no_such_overload_error(name, type(values[0]))


def no_such_overload_error(name: str, kind: type) -> NoSuchOverload:
    """Return the error of a function that does not check its values. Only the class of the first value matters."""
    if kind in SINGLETONS.get(name, ()) or kind in _RECEIVERS or name in _NAMELESS:
        return NoSuchOverload()
    return NoSuchOverload(f"no such overload: {name}")


def _type_with_parameters(value: Any) -> str:
    # parameters are always dyn
    name = type_name_in_error(value)
    return name + {"list": "(dyn)", "map": "(dyn, dyn)"}.get(name, "")


def type_name_in_error(value: Any) -> str:
    """Return the name of a value's type in errors; for an Object{…}, the name of its own type."""
    return value.name if isinstance(value, Struct) else type_name(value)


# ---- panics


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
"""The Go types of values in errors (%T); other classes may have `go_type`."""
_ADDERS = frozenset((int, UInt, float, str, bytes, Duration, Timestamp))


def go_type_name(kind: type) -> str:
    """Return the Go type of a class of values."""
    return GO_NAMES.get(kind) or getattr(kind, "go_type", "") or f"cel.{short_cel_type_name(kind)}"


def short_cel_type_name(kind: Any) -> str:
    """Return the last part of the name of a class's CEL type."""
    return str(kind.cel_type.name).rpartition(".")[2]


def index_of_tracked_argument(overloads: Sequence[Overload]) -> int | None:
    """Return the index of the argument that makes the call's cost function panic if its type is wrong. None if there is
    no such argument.
    """
    if len(overloads) != 1:
        return None
    overload = overloads[0]
    if overload.name in ("distinct", "sort"):
        return 0
    is_pair = overload.name == "@sortByAssociatedKeys" or overload.id == "list_flatten_int"
    return 1 if is_pair else None


def require_list(value: Any) -> Any:
    """Return the value if it is a list; panic as cel-go for another value.

    Raises:
        EvaluationPanic: the value is not a list.
    """
    kind = type(value)
    if kind is list:
        return value
    missing = "Contains" if kind in _ADDERS else "Add"
    raise EvaluationPanic(f"interface conversion: {go_type_name(kind)} is not traits.Lister: missing method {missing}")


def require_int(value: Any) -> Any:
    """Return the value if it is an int; panic as cel-go for another value.

    Raises:
        EvaluationPanic: the value is not an int.
    """
    if type(value) is int:
        return value
    raise EvaluationPanic(f"interface conversion: ref.Val is {go_type_name(type(value))}, not types.Int")


def panic_for_failed_list(error: Exception) -> NoReturn:
    """Raise `error` if no operator can absorb it; otherwise panic as cel-go for an error in place of a list."""
    if isinstance(error, BudgetExceeded | EvaluationPanic):
        try:
            raise error
        finally:
            del error  # otherwise the error's traceback and this frame would refer to each other
    raise EvaluationPanic("interface conversion: *types.Err is not traits.Lister: missing method Add")


def panic_for_failed_int(error: Exception) -> NoReturn:
    """Raise `error` if no operator can absorb it; otherwise panic as cel-go for an error in place of an int."""
    if isinstance(error, BudgetExceeded | EvaluationPanic):
        try:
            raise error
        finally:
            del error  # otherwise the error's traceback and this frame would refer to each other
    raise EvaluationPanic("interface conversion: ref.Val is *types.Err, not types.Int")
