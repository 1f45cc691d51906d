"""An object as its schema has it: without nulls and without values of another type, which are named beside it.

shapes.yaml says what stands where. What is not named there is left alone. Nothing is copied that need not change; an
item of a list that is left out stays as an empty one, so that places keep their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook import shapes, yamlfile
from webhook.attributes import JSON
from webhook.paths import FieldPath, render
from webhook.placeholders import is_placeholder
from webhook.workloads.podsets import group_kind

if TYPE_CHECKING:
    from webhook.facts.subject import Subject

FILE: Final = Path(__file__).with_name("shapes.yaml")
_KINDS: Final = {
    "TrainJob": "trainJob",
    "TrainingRuntime": "runtime",
    "ClusterTrainingRuntime": "runtime",
    "OptimizationJob": "optimization",
    "JobSet": "jobSet",
}
_EXPECTED: Final[Mapping[str, str]] = {
    "text": "a text",
    "number": "a whole number",
    "count": "a whole number or a word",
    "bool": "true or false",
}
_ABSENT: Final = object()
_NAMED: Final = {"name": "text"}
_name = itemgetter("name")


@dataclass(slots=True)
class Shaped:
    """The object, and what of it was left out: each `{path, found, expected}`."""

    object: JSON
    wrong: list[JSON] = field(default_factory=list)


def typed(subject: Subject) -> JSON:
    """The object of a subject without nulls and without values of another type."""
    return subject.once(_typed)


def typed_before(subject: Subject) -> JSON:
    """What it was before, likewise."""
    return subject.once(_typed_before)


def _typed(subject: Subject) -> JSON:
    return shaped(subject.object, group_kind(subject.object)[1]).object


def _typed_before(subject: Subject) -> JSON:
    return shaped(subject.old_object, group_kind(subject.object)[1]).object


@cache
def _shapes() -> Mapping[str, Any]:
    (document,) = yamlfile.read(FILE)
    shapes: Mapping[str, Any] = document.value
    whole = {kind: {"metadata": shapes["metadata"], "spec": shapes[name]} for kind, name in _KINDS.items()}
    return {**shapes, **whole}


def shaped(obj: JSON, kind: str) -> Shaped:
    """An object of a kind of shapes.yaml; one of another kind is taken as it is, if it is an object at all."""
    shape = _shapes().get(kind)
    if not isinstance(obj, dict) or shape is None:
        return Shaped(obj if isinstance(obj, dict) else {})
    made = Shaped(obj)
    if not _fits(kind)(obj):
        made.object = _object(obj, shape, [], made.wrong)
    return made


@cache
def _fits(kind: str) -> Callable[[JSON], bool]:
    """Says whether an object of a kind is as its shape has it already, as most are; faster than making it so."""
    return _fit(_shapes()[kind])


def _fit(shape: Any) -> Callable[[JSON], bool]:
    if isinstance(shape, dict):
        return _fit_object({name: _fit(inner) for name, inner in shape.items()})
    if isinstance(shape, list):
        return _fit_named if shape[0] == _NAMED else _fit_list(_fit(shape[0]))
    return _FITS[shape]


def _fit_object(fields: Mapping[str, Callable[[JSON], bool]]) -> Callable[[JSON], bool]:
    rest = fields.get("*", _FITS["any"])

    def fits(value: JSON) -> bool:
        if type(value) is not dict:
            return False
        for name, held in value.items():  # noqa: SIM110 - a generator costs half as much again
            if not fields.get(name, rest)(held):
                return False
        return True

    return fits


def _fit_list(inner: Callable[[JSON], bool]) -> Callable[[JSON], bool]:
    def fits(value: JSON) -> bool:
        return type(value) is list and all(map(inner, value))

    return fits


def _fit_named(value: JSON) -> bool:
    """A list of objects with a name; fast, since environments have hundreds of variables."""
    if type(value) is not list:
        return False
    try:
        "".join(map(_name, value))
    except (KeyError, TypeError):
        return False
    return True


_FITS: Final[Mapping[str, Callable[[JSON], bool]]] = {
    "text": lambda value: type(value) is str,
    "number": lambda value: type(value) is int,
    "bool": lambda value: type(value) is bool,
    "count": lambda value: type(value) is int or type(value) is str,
    "any": lambda value: value is not None,
}


def _value(value: JSON, shape: Any, at: list[str | int], wrong: list[JSON]) -> Any:
    """A value as its shape has it, or _ABSENT."""
    if isinstance(shape, dict):
        return _object(value, shape, at, wrong) if isinstance(value, dict) else _refused(value, "a map", at, wrong)
    if isinstance(shape, list):
        return _list(value, shape[0], at, wrong) if isinstance(value, list) else _refused(value, "a list", at, wrong)
    if shape == "any":
        return value
    is_text = isinstance(value, str)
    if is_text if shape == "text" else isinstance(value, bool) if shape == "bool" else _is_number(value):
        return value
    if is_text and shape == "count":
        return value
    if not isinstance(value, bool) and isinstance(value, float) and shape in ("number", "count") and value.is_integer():
        return int(value)
    return _refused(value, _EXPECTED[shape], at, wrong)


def _is_number(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(value: JSON, expected: str, at: list[str | int], wrong: list[JSON]) -> Any:
    if not (isinstance(value, str) and is_placeholder(value)):
        wrong.append(_odd(value, tuple(at), expected))
    return _ABSENT


def _odd(value: JSON, at: FieldPath, expected: str) -> JSON:
    """A value of another type than its field has."""
    found = "a map" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"`{shapes.shown(value)}`"
    return {"path": render(at), "found": found, "expected": expected}


def _object(value: dict[str, JSON], shape: Mapping[str, Any], at: list[str | int], wrong: list[JSON]) -> JSON:
    rest, changed = shape.get("*"), {}
    for name, held in value.items():
        if held is None:
            changed[name] = _ABSENT
        elif (inner := shape.get(name, rest)) is not None and inner != "any":
            at.append(name)
            if (kept := _value(held, inner, at, wrong)) is not held:
                changed[name] = kept
            at.pop()
    if not changed:
        return value
    both = {name: changed.get(name, held) for name, held in value.items()}
    return {name: held for name, held in both.items() if held is not _ABSENT}


def _list(value: list[JSON], shape: Any, at: list[str | int], wrong: list[JSON]) -> JSON:
    changed = {}
    for index, held in enumerate(value):
        at.append(index)
        kept = _ABSENT if held is None else _value(held, shape, at, wrong)
        if kept is not held:
            changed[index] = _empty(shape) if kept is _ABSENT else kept
        at.pop()
    return [changed.get(index, held) for index, held in enumerate(value)] if changed else value


def _empty(shape: Any) -> JSON:
    return {} if isinstance(shape, dict) else [] if isinstance(shape, list) else "" if shape == "text" else None
