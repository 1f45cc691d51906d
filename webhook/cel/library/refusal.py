"""The error of a call with values that fit no signature: `no such overload` and cel-go's words after it.

Most functions of cel-go check what they are given against their signatures, and name the call in their refusal. The
operators and a few functions accept every value that implements an operation instead (a singleton with an operand
trait): their refusal has no arguments, and no name either if the first value implements the operation or is a text, a
timestamp or a duration. Source: cel-go v0.26.0 common/decls/decls.go MaybeNoSuchOverload, interpreter/interpretable.go
evalUnary and evalBinary, common/types/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from webhook.cel.structures import Struct
from webhook.cel.values import DictWithEmptyMaps, Duration, Map, Timestamp, UInt, type_name
from webhook.errors import NoSuchOverload

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
"""The functions with one implementation for all signatures, and the classes of the first value that it accepts; the
static types of their arguments are ignored at run time.

The types that the checker has found for their arguments do not matter at run time.
"""
UNGUARDED: Final = frozenset(("contains", "startsWith", "endsWith", "flatten"))
"""Functions with values that are not checked against their signatures (decls.DisableTypeGuards)."""
_NAMELESS = frozenset(("!_", "matches", "contains", "startsWith", "endsWith"))
"""Functions with errors that do not contain their name."""
_RECEIVERS = frozenset((str, Timestamp, Duration))


def raise_no_such_overload(name: str, *values: Any) -> NoReturn:
    """Raise the error of a call with values that fit no signature.

    Raises:
        NoSuchOverload: always.
    """
    operands = SINGLETONS.get(name)
    if operands is None and name not in UNGUARDED:
        raise NoSuchOverload(f"no such overload: {name}({', '.join(map(type_name_in_error, values))})")
    if name == "flatten":  # which has its own message
        target, *given = map(_type_with_parameters, values)
        raise NoSuchOverload(f"no such overload: {target}.flatten({', '.join(given)})")
    raise no_such_overload_error(name, type(values[0]))


def no_such_overload_error(name: str, kind: type) -> NoSuchOverload:
    """Return the error of a function that does not check its values; it depends on the class of the first one alone."""
    if kind in SINGLETONS.get(name, ()) or kind in _RECEIVERS or name in _NAMELESS:
        return NoSuchOverload()
    return NoSuchOverload(f"no such overload: {name}")


def _type_with_parameters(value: Any) -> str:
    """Return the type of a value with its parameters, which are always dyn."""
    name = type_name_in_error(value)
    return name + {"list": "(dyn)", "map": "(dyn, dyn)"}.get(name, "")


def type_name_in_error(value: Any) -> str:
    """Return the name of a value's type in errors: for an Object{…} its own name."""
    return value.name if isinstance(value, Struct) else type_name(value)
