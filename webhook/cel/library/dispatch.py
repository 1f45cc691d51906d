"""Choosing the implementation of a call by the classes of its values, where their types are not known before.

A Dispatch is one dictionary per called function, filled as classes turn up: `table[type(a), type(b)](a, b)`. Where one
of the signatures is metered, every implementation in its table takes the Deadline first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from webhook.cel.library.declaration import Overload
from webhook.cel.structures import Struct
from webhook.cel.types import Type
from webhook.cel.values import Duration, Map, Optional, Timestamp, TypeValue, UInt, no_such_overload
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


def accepts(parameter: Type, kind: type) -> bool:
    """Whether values of a Python class may stand for a parameter; element types are not looked at."""
    if parameter.kind == "param" or parameter.name == "dyn":
        return True
    classes = _CLASSES.get(parameter.name)
    if classes is not None:
        # activations may hold maps of classes of their own, which fill themselves
        return kind in classes or (parameter.name == "map" and issubclass(kind, dict) and not issubclass(kind, Struct))
    if parameter.kind == "object":
        return issubclass(kind, dict)
    declared = getattr(kind, "cel_type", None)
    return isinstance(declared, Type) and declared.name == parameter.name


def find(overloads: Iterable[Overload], kinds: tuple[type, ...]) -> Callable[..., Any]:
    """The first implementation for values of these classes; one that raises `no such overload` if there is none."""
    for overload in overloads:
        if _takes(overload, kinds):
            return overload.implementation
    return no_such_overload


def _takes(overload: Overload, kinds: tuple[type, ...]) -> bool:
    return len(overload.parameters) == len(kinds) and all(map(accepts, overload.parameters, kinds))


def is_metered(overloads: Iterable[Overload]) -> bool:
    """Whether a call of one of these takes the Deadline before the values."""
    return any(overload.metered for overload in overloads)


def find_metered(overloads: Iterable[Overload], kinds: tuple[type, ...]) -> Callable[..., Any]:
    """The same for a table whose implementations take the Deadline first, whether they use it or not."""
    chosen = next((each for each in overloads if _takes(each, kinds)), None)
    if chosen is None:
        return no_such_overload
    implementation = chosen.implementation
    return implementation if chosen.metered else lambda _, *values: implementation(*values)


def fitting(overloads: Iterable[Overload], values: tuple[Any, ...]) -> Callable[..., Any]:
    """The implementation for these values, without a deadline."""
    kinds = tuple(map(type, values))
    if is_metered(overloads):
        return partial(find_metered(overloads, kinds), Deadline())
    return find(overloads, kinds)


class Unary(dict[type, Callable[..., Any]]):
    """Class of the only argument -> implementation."""

    def __init__(self, overloads: tuple[Overload, ...]) -> None:
        super().__init__()
        self.overloads = overloads
        self.find = find_metered if is_metered(overloads) else find

    def __missing__(self, kind: type) -> Callable[..., Any]:
        found = self[kind] = self.find(self.overloads, (kind,))
        return found


class Dispatch(dict[tuple[type, ...], Callable[..., Any]]):
    """Classes of the arguments -> implementation."""

    def __init__(self, overloads: tuple[Overload, ...]) -> None:
        super().__init__()
        self.overloads = overloads
        self.find = find_metered if is_metered(overloads) else find

    def __missing__(self, kinds: tuple[type, ...]) -> Callable[..., Any]:
        found = self[kinds] = self.find(self.overloads, kinds)
        return found
