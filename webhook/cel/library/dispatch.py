"""Chooses the implementation of a call by the classes of its values, for types that are unknown at compile time.

Each function has a dispatch table: a dictionary from the classes of the values to the implementation, as in
`table[type(a), type(b)](a, b)`. An entry is added when its classes first occur. If one of the signatures is metered,
every implementation takes the Deadline first.

The first element of a list decides its element type, because the inferred type of a dyn value may be wrong. cel-go does
the same at run time (common/types IsAssignableRuntimeType).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from webhook.cel.library.declaration import Overload
from webhook.cel.library.optional_value import Optional
from webhook.cel.library.refusal import SINGLETONS, UNGUARDED, raise_no_such_overload
from webhook.cel.types import Type
from webhook.cel.values import Duration, Map, Struct, Timestamp, TypeValue, UInt, map_keys
from webhook.deadline import Deadline

_CLASSES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (UInt,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "list": (list,),
    "map": (dict, Map),
    "null_type": (type(None),),
    "google.protobuf.Timestamp": (Timestamp,),
    "google.protobuf.Duration": (Duration,),
    "optional_type": (Optional,),
    "type": (TypeValue,),
}
_HOLDERS = frozenset(("list", "map"))


def class_fits_parameter(parameter: Type, kind: type) -> bool:
    """Return whether a parameter accepts a Python class; element types are not checked."""
    if parameter.kind == "param" or parameter.name == "dyn":
        return True
    classes = _CLASSES.get(parameter.name)
    if classes is not None:
        # subclasses of dict compute their entries
        return kind in classes or (parameter.name == "map" and issubclass(kind, dict) and not issubclass(kind, Struct))
    if parameter.kind == "object":
        return issubclass(kind, dict)
    declared = getattr(kind, "cel_type", None)
    return isinstance(declared, Type) and declared.name == parameter.name


def has_element_type(parameter: Type) -> bool:
    """Return whether a value fits the parameter only if its first element fits."""
    if parameter.name not in _HOLDERS:
        return False
    return any(each.kind != "param" and each.name != "dyn" for each in parameter.parameters)


def depends_on_elements(overload: Overload) -> bool:
    """Return whether a signature depends on elements of the values."""
    if overload.name in SINGLETONS or overload.name in UNGUARDED:
        return False
    return any(map(has_element_type, overload.parameters))


def value_fits_parameter(parameter: Type, value: Any) -> bool:
    """Return whether a parameter accepts a value, by the class of the value and the class of its first element."""
    if not class_fits_parameter(parameter, type(value)):
        return False
    if not value or not has_element_type(parameter):
        return True
    first_elements = (value[0],) if parameter.name == "list" else (map_keys(value)[0], next(iter(value.values())))
    return all(map(value_fits_parameter, parameter.parameters, first_elements))


def _classes_fit_overload(overload: Overload, kinds: tuple[type, ...]) -> bool:
    return len(overload.parameters) == len(kinds) and all(map(class_fits_parameter, overload.parameters, kinds))


def needs_deadline(overloads: Iterable[Overload]) -> bool:
    """Return whether a call of these signatures takes the Deadline first."""
    return any(overload.metered for overload in overloads)


def find_implementation(overloads: Sequence[Overload], kinds: tuple[type, ...]) -> Callable[..., Any]:
    """Return the implementation for these classes, or a function that raises `no such overload`.

    The implementation takes the Deadline first if one of the signatures is metered.
    """
    metered = needs_deadline(overloads)
    possible = [each for each in overloads if _classes_fit_overload(each, kinds)]
    if possible and not depends_on_elements(possible[0]):
        return _implementation_with_deadline(possible[0], metered=metered)
    name = overloads[0].name if overloads else ""
    choices = tuple((each.parameters, _implementation_with_deadline(each, metered=metered)) for each in possible)

    def call_fitting_implementation(*arguments: Any) -> Any:
        values = arguments[metered:]
        for parameters, implementation in choices:
            if all(map(value_fits_parameter, parameters, values)):
                return implementation(*arguments)
        return raise_no_such_overload(name, *values)

    return call_fitting_implementation


def _implementation_with_deadline(overload: Overload, *, metered: bool) -> Callable[..., Any]:
    implementation = overload.implementation
    return implementation if overload.metered == metered else lambda _, *values: implementation(*values)


def fitting_implementation(overloads: Sequence[Overload], values: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the implementation for these values, without a deadline."""
    overload = find_implementation(overloads, tuple(map(type, values)))
    return partial(overload, Deadline()) if needs_deadline(overloads) else overload


class UnaryDispatchTable(dict[type, Callable[..., Any]]):
    """Maps the class of the only argument to the implementation."""

    def __init__(self, overloads: tuple[Overload, ...]) -> None:
        super().__init__()
        self.overloads = overloads

    def __missing__(self, kind: type) -> Callable[..., Any]:
        overload = self[kind] = find_implementation(self.overloads, (kind,))
        return overload


class DispatchTable(dict[tuple[type, ...], Callable[..., Any]]):
    """Maps the classes of the arguments to the implementation."""

    def __init__(self, overloads: tuple[Overload, ...]) -> None:
        super().__init__()
        self.overloads = overloads

    def __missing__(self, kinds: tuple[type, ...]) -> Callable[..., Any]:
        overload = self[kinds] = find_implementation(self.overloads, kinds)
        return overload
