"""What is wrong with an object by its shape: types, limits, names and choices that a data file declares.

The files (claims.yaml, nvidia.yaml) say what a field is by one key:

    text: FORM       one of names.py; `one: [A, B]` instead for a closed set, both with `empty: true` where "" is none
    number: true     a whole number, `least`, `most`
    flag: true       true or false
    quantity: true   with `least`
    list: FIELD      `most` entries, different in the field `unique` (or in themselves, `unique: true`)
    map: FIELD       with keys of the form `keys`
    object: NAME     or {VERSION: NAME}: an entry of `objects`
    any: true

and besides `required: true`, `expected: WORDS`, `forbidden: REASON`, and `with: {SIBLING: VALUE}` for a field that
another choice excludes. Of an object, `moved: {NAME: PLACE}` says where an unknown field belongs, and `open: true` that
it may have other fields. Null is absent at every level, and for the API server an empty object among the entries of a
list. Texts that are filled in later are not judged. Knows no API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache
from pathlib import Path
from typing import Any

from webhook import yamlfile
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.names import FORMS
from webhook.facts.similar_names import nearest
from webhook.paths import FieldPath, render
from webhook.placeholders import is_placeholder
from webhook.quantity import Quantity, parse

_ABOUT = frozenset(("moved", "open"))
_LONGEST = 60
_INTEGERS = range(-(2**63), 2**63)
Field = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shapes:
    """The declarations of one file, as an object of one version of an API is measured by them until a deadline."""

    objects: Mapping[str, Mapping[str, Any]]
    version: str = ""
    deadline: Deadline = dataclass_field(default_factory=Deadline)

    def notes(self, value: JSON, name: str, at: FieldPath) -> Iterator[JSON]:
        """Everything that is wrong with an object, in the order of its fields."""
        yield from _object(self, value, {"object": name}, at)

    def fields(self, named: str | Mapping[str, str]) -> Mapping[str, Any]:
        """The fields of an entry of `objects`."""
        name = named if isinstance(named, str) else named[self.version]
        return self.objects[name]


@cache
def declared(file: str) -> Mapping[str, Any]:
    """A data file of this folder or of a package in it."""
    (document,) = yamlfile.read(Path(__file__).parent / file)
    value: Mapping[str, Any] = document.value
    return value


def note(what: str, at: FieldPath, found: JSON = "", expected: str = "", near: str = "") -> JSON:
    """One thing that is wrong; `what` says how, the rest fills the sentence."""
    return {"what": what, "path": render(at), "found": shown(found), "expected": expected, "nearest": near}


def shown(value: JSON) -> str:
    """A value as it is written in JSON, a text as it is, on one line and not long."""
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    written = " ".join(written.split())
    return written if len(written) <= _LONGEST else f"{written[: _LONGEST - 3]}..."


def _field(shapes: Shapes, value: JSON, field: Field, at: FieldPath) -> Iterator[JSON]:
    """What is wrong with a value that is there."""
    shapes.deadline.spend(1)
    for kind, judge in _KINDS.items():
        if kind in field:
            yield from judge(shapes, value, field, at)
            return


def _object(shapes: Shapes, value: JSON, field: Field, at: FieldPath) -> Iterator[JSON]:
    if not isinstance(value, dict):
        yield note("wrongType", at, value, "fields with values")
        return
    known = shapes.fields(field["object"])
    for name, held in value.items():
        if held is None:
            continue
        if name in known and name not in _ABOUT:
            yield from _inside(shapes, held, known[name], (*at, name), value)
        elif "open" not in known:
            moved = known.get("moved", {}).get(name, "")
            shapes.deadline.spend(len(known))
            near = "" if moved else nearest(name, (each for each in known if each not in _ABOUT))
            yield note("unknownField", (*at, name), name, moved, near)
    for name, declaration in known.items():
        if name not in _ABOUT and declaration.get("required") and value.get(name) in (None, ""):
            yield note("missing", (*at, name), "", _expected(declaration))


def _inside(shapes: Shapes, value: JSON, field: Field, at: FieldPath, around: JSON) -> Iterator[JSON]:
    if "forbidden" in field:
        if value not in ("", 0):
            yield note("forbidden", at, value, field["forbidden"])
        return
    for sibling, wanted in field.get("with", {}).items():
        other = around.get(sibling)
        if isinstance(other, str) and other not in ("", wanted) and not is_placeholder(other):
            yield note("excluded", at, f"{sibling} {other}", f"{sibling} {wanted}")
            return
    yield from _field(shapes, value, field, at)


def _list(shapes: Shapes, value: JSON, field: Field, at: FieldPath) -> Iterator[JSON]:
    if not isinstance(value, list):
        yield note("wrongType", at, value, "a list")
        return
    if len(value) > field.get("most", len(value)):
        yield note("tooMany", at, len(value), str(field["most"]))
        return
    empty: JSON = {} if "object" in field["list"] else ""
    seen: dict[str, int] = {}
    for index, entry in enumerate(value):
        given = empty if entry is None else entry
        yield from _field(shapes, given, field["list"], (*at, index))
        key = given.get(field["unique"]) if isinstance(given, dict) and "unique" in field else given
        if "unique" in field and isinstance(key, str):
            first = seen.setdefault(key, index)
            if first != index and key:
                yield note("duplicate", (*at, index), key, str(first))


def _map(shapes: Shapes, value: JSON, field: Field, at: FieldPath) -> Iterator[JSON]:
    if not isinstance(value, dict):
        yield note("wrongType", at, value, "names with values")
        return
    is_good, expected = FORMS[field.get("keys", "text")]
    for name, held in value.items():
        if not is_placeholder(name) and not is_good(name):
            yield note(field.get("otherwise", "badName"), (*at, name), name, expected)
        if held is not None:
            yield from _field(shapes, held, field["map"], (*at, name))


def _text(_: Shapes, value: JSON, field: Field, at: FieldPath) -> Iterator[JSON]:
    if not isinstance(value, str):
        yield note("wrongType", at, value, "a text")
    elif is_placeholder(value) or (value == "" and (field.get("empty") or field.get("required"))):
        return
    elif "one" in field:
        if value not in field["one"]:
            yield note("notOneOf", at, value, ", ".join(field["one"]), nearest(value, field["one"]))
    elif not FORMS[field["text"]][0](value):
        yield note("badName", at, value, FORMS[field["text"]][1])


def _number(_: Shapes, value: JSON, field: Field, at: FieldPath) -> Iterator[JSON]:
    if type(value) is not int or value not in _INTEGERS:
        yield note("wrongType", at, value, "a whole number")
    elif not field.get("least", value) <= value <= field.get("most", value):
        yield note("outOfRange", at, value, _expected(field))


def _flag(_: Shapes, value: JSON, _field: Field, at: FieldPath) -> Iterator[JSON]:
    if not isinstance(value, bool):
        yield note("wrongType", at, value, "true or false")


def _quantity(_: Shapes, value: JSON, field: Field, at: FieldPath) -> Iterator[JSON]:
    if isinstance(value, str) and is_placeholder(value):
        return
    found = _parsed(value)
    if found is None:
        yield note("wrongType", at, value, "a quantity such as 1 or 10Gi")
    elif "least" in field and found < parse(field["least"]):
        yield note("outOfRange", at, value, _expected(field))


def _parsed(value: JSON) -> Quantity | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse(str(value))
    except ValueError:
        return None


def _expected(field: Field) -> str:
    """What a field wants, in words."""
    if "expected" in field:
        return str(field["expected"])
    if "one" in field:
        return f"one of {', '.join(field['one'])}"
    if "text" in field:
        return FORMS[field["text"]][1]
    if "least" in field:
        return f"{field['least']} to {field['most']}" if "most" in field else f"at least {field['least']}"
    return ""


def _any(*_: Any) -> Iterator[JSON]:
    return iter(())


_KINDS: Mapping[str, Callable[[Shapes, JSON, Field, FieldPath], Iterator[JSON]]] = {
    "object": _object,
    "list": _list,
    "map": _map,
    "text": _text,
    "one": _text,
    "number": _number,
    "flag": _flag,
    "quantity": _quantity,
    "any": _any,
}
