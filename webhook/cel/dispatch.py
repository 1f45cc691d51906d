"""Choosing the implementation of a call by the classes of its values, where their types are not known before.

A Dispatch is one dictionary per called function, filled as classes turn up: `table[type(a), type(b)](a, b)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from webhook.cel.library.declaration import Overload
from webhook.cel.types import Type
from webhook.cel.values import Duration, Map, Optional, Struct, Timestamp, TypeValue, UInt, no_such_overload

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
        return kind in classes or (parameter.name == "map" and issubclass(kind, dict) and kind is not Struct)
    if parameter.kind == "object":
        return issubclass(kind, dict)
    declared = getattr(kind, "cel_type", None)
    return isinstance(declared, Type) and declared.name == parameter.name


def find(overloads: Iterable[Overload], kinds: tuple[type, ...]) -> Callable[..., Any]:
    """The first implementation for values of these classes; one that raises `no such overload` if there is none."""
    for overload in overloads:
        if len(overload.parameters) == len(kinds) and all(map(accepts, overload.parameters, kinds)):
            return overload.implementation
    return no_such_overload


def fitting(overloads: Iterable[Overload], values: tuple[Any, ...]) -> Callable[..., Any]:
    """The implementation for these values."""
    return find(overloads, tuple(map(type, values)))


class Unary(dict[type, Callable[..., Any]]):
    """Class of the only argument -> implementation."""

    def __init__(self, overloads: tuple[Overload, ...]) -> None:
        super().__init__()
        self.overloads = overloads

    def __missing__(self, kind: type) -> Callable[..., Any]:
        found = self[kind] = find(self.overloads, (kind,))
        return found


class Dispatch(dict[tuple[type, ...], Callable[..., Any]]):
    """Classes of the arguments -> implementation."""

    def __init__(self, overloads: tuple[Overload, ...]) -> None:
        super().__init__()
        self.overloads = overloads

    def __missing__(self, kinds: tuple[type, ...]) -> Callable[..., Any]:
        found = self[kinds] = find(self.overloads, kinds)
        return found
