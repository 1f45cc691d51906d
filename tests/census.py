"""Counts the entries of each table of this process by its owner, to find leaks of any kind.

Walks from modules and running frames along everything that Python objects refer to. The garbage collector's own list
lacks objects that were frozen at the start of a server, and objects that C code does not report. A table is named by
its owner: `module.NAME` for a global, `module.Class.attribute`, `module.function<variable>` for a closure. `[]` is an
element of a table. If a function's own cache has no bound, its entries are counted, and its values are not visited.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

_PLAIN = (str, bytes, int, float, complex, bool, type(None), CodeType, BuiltinFunctionType, range, slice)
_SEQUENCES = (list, tuple, set, frozenset, deque)
_DEEPEST = "[][][]"
"""Deeper elements all have the same name."""
_CACHE = type(__import__("functools").lru_cache(lambda: None))


@dataclass
class Census:
    """The result of a walk.

    Attributes:
        entries: the sum of the lengths of all tables of one name.
        objects: the number of reached objects of each type.
    """

    entries: Counter[str] = field(default_factory=Counter)
    objects: Counter[str] = field(default_factory=Counter)

    def growth(self, before: Census) -> dict[str, int]:
        """Return how many more entries each table has than before."""
        return {name: more for name, count in self.entries.most_common() if (more := count - before.entries[name]) > 0}


def roots(left_out: Iterable[str] = ("tests", "_pytest", "pytest")) -> Iterator[tuple[str, object]]:
    omitted = tuple(left_out)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in omitted and isinstance(module, ModuleType):
            yield name, module
    frames: list[FrameType | None] = list(sys._current_frames().values())
    while frames:
        frame = frames.pop()
        if frame is not None and frame is not sys._getframe():  # or this frame would keep itself alive
            frames.append(frame.f_back)
            if frame.f_globals.get("__name__", "").partition(".")[0] not in omitted:
                yield f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}()", frame
        frame = None


def take(starts: Iterable[tuple[str, object]], closed: Container[str] = ()) -> Census:
    """Count the tables that can be reached from some objects. The values of `closed` tables are not visited."""
    found, seen, names = Census(), set[int](), dict[type, tuple[str, ...]]()
    waiting = list(starts)
    seen |= {id(waiting), id(seen), id(names), id(found), id(found.entries), id(found.objects), id(found.__dict__)}
    while waiting:
        label, value = waiting.pop()
        kind = type(value)  # the `__class__` of an object may be wrong
        if issubclass(kind, _PLAIN) or id(value) in seen:
            continue
        seen.add(id(value))
        found.objects[f"{kind.__module__}.{kind.__qualname__}"] += 1
        if issubclass(kind, _CACHE):
            if value.cache_info().maxsize is None:
                found.entries[f"{value.__module__}.{value.__qualname__}"] += value.cache_info().currsize
            waiting.append(("", value.__wrapped__))
            continue
        if issubclass(kind, (dict, *_SEQUENCES)):
            # len() of a PartialObject fails
            found.entries[label] += dict.__len__(value) if issubclass(kind, dict) else len(value)
        if label not in closed:
            waiting += _parts(label, value, names)
    return found


def _parts(label: str, value: Any, names: dict[type, tuple[str, ...]]) -> Iterator[tuple[str, object]]:
    kind = type(value)
    if issubclass(kind, ModuleType):
        yield from ((f"{value.__name__}.{name}", each) for name, each in list(vars(value).items()))
    elif issubclass(kind, type):
        yield from ((f"{_name(value)}.{name}", each) for name, each in list(vars(value).items()))
        yield from (("", each) for each in value.__mro__)
    elif issubclass(kind, FunctionType):
        yield from _parts_of_function(value)
    elif issubclass(kind, FrameType):  # gc lists nothing for a running frame
        yield from ((f"{value.f_code.co_qualname}<{name}>", each) for name, each in list(value.f_locals.items()))
    elif issubclass(kind, (dict, *_SEQUENCES)):
        inner = label if label.endswith(_DEEPEST) else f"{label}[]"
        if issubclass(kind, dict):
            items = list(dict.items(value))  # `items` of a subclass may fail
            yield from ((inner, each) for pair in items for each in pair)
        else:
            yield from ((inner, each) for each in list(value))
        if kind.__module__ != "builtins":
            yield from _attributes(value, kind, names)
    else:
        for each in gc.get_referents(value):
            if type(each) is dict and kind.__dictoffset__:  # attributes; most objects have no such dict yet
                yield from ((f"{_name(kind)}.{name}", held) for name, held in list(each.items()))
            elif each is not kind:
                yield f"{_name(kind)}>", each
        yield from _attributes(value, kind, names)  # these are visited first, so tables get the names of attributes


def _parts_of_function(function: FunctionType) -> Iterator[tuple[str, object]]:
    label = f"{function.__module__}.{function.__qualname__}"
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{label}<{name}>", cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield f"{label}.__defaults__", function.__defaults__
    yield f"{label}.__kwdefaults__", function.__kwdefaults__
    yield f"{label}.__dict__", vars(function)


def _attributes(value: Any, kind: type, names: dict[type, tuple[str, ...]]) -> Iterator[tuple[str, object]]:
    """Yield the attributes of an object. Only the first object of a class is asked for its `__dict__`. Python creates
    it on access, which would take megabytes for all objects.
    """
    if kind not in names:
        slots = [name for each in kind.__mro__ for name in _slots(each)]
        names[kind] = (*slots, *_attribute_names(value))
    for name in names[kind]:
        try:
            yield f"{_name(kind)}.{name}", object.__getattribute__(value, name)
        except AttributeError:
            continue


def _attribute_names(value: Any) -> list[str]:
    try:
        return list(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        return []


def _slots(kind: type) -> Iterator[str]:
    declared = kind.__dict__.get("__slots__", ())
    for name in (declared,) if isinstance(declared, str) else tuple(declared):
        if name not in {"__weakref__", "__dict__"}:
            is_private = name.startswith("__") and not name.endswith("__")
            yield f"_{kind.__name__.lstrip('_')}{name}" if is_private else name


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
