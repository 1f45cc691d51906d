"""Records which lists have another Go type in cel-go than a list literal has, for code that converts values to Go's.

A literal, a macro and nearly every function make a []ref.Val. `+` makes a []any, whose items are Go's own values;
split, findAll and validate make a []string. Lists are told by identity, and only while somebody notes them. Source:
cel-go v0.26 common/types/list.go (concatList.Value, NewStringList).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

Origin: TypeAlias = Literal["joined", "texts"]
Origins: TypeAlias = dict[int, tuple[Origin, list[Any]]]
"""The origins by the `id` of a list; the list is kept, so that its id is not used again."""

_noted: ContextVar[Origins | None] = ContextVar("_noted", default=None)


@contextmanager
def record_origins() -> Iterator[Origins]:
    """Yield the origins that functions record for the lists they create inside the `with`."""
    origins: Origins = {}
    token = _noted.set(origins)
    try:
        yield origins
    finally:
        _noted.reset(token)


def record_concatenation(values: list[Any]) -> list[Any]:
    """Record that a list is the result of `+`, and return the list."""
    return _record_origin("joined", values)


def record_string_list(values: list[str]) -> list[str]:
    """Record that a list is a []string in Go, and return the list."""
    return _record_origin("texts", values)


def _record_origin(origin: Origin, values: list[Any]) -> list[Any]:
    origins = _noted.get()
    if origins is not None:
        origins[id(values)] = origin, values
    return values
