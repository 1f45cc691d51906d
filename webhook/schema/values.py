"""What is wrong with the values of an object: forms, ranges, choices, and fields that do not exist, as a file declares.

A file has `objects`. Of each, a field is declared by one key, which is its type as well:

    text: FORM       one of forms.py; `one: [A, B]` instead for a closed set, both with `empty: true` where "" is none;
                     `longest`, in bytes
    amount: true     a whole number or a text, as custom kinds declare quantities
    number: true     a whole number, `least`, `most`
    flag: true       true or false
    quantity: true   with `least`
    list: FIELD      `most` entries, different in the field `unique` (or in themselves, `unique: true`)
    map: FIELD       with keys of the form `keys`
    object: NAME     or {VERSION: NAME}: an entry of `objects`
    any: true

and besides `required: true`, `expected: WORDS`, `forbidden: REASON`, and `with: {SIBLING: VALUE}` for a field that
another choice excludes. Of an object, `moved: {NAME: PLACE}` says where an unknown field belongs, and `open: true` that
it may have other fields. An object is decoded by these types first (decode.py); what is not of its type, or is filled
in later, is not judged further. Knows no API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from webhook import yamlfile
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.quantity import Quantity, parse
from webhook.schema.decode import decode
from webhook.schema.forms import FORMS
from webhook.schema.types import Fields, Items, Scalar, Type
from webhook.similar_names import nearest

_ABOUT: Final = frozenset(("moved", "open"))
_QUANTITY: Final = "a quantity such as 1, 500m or 4Gi"
_SCALARS: Final[Mapping[str, Scalar]] = {
    "text": "text",
    "one": "text",
    "number": "number",
    "flag": "truth",
    "quantity": "quantity",
    "amount": "any",
    "any": "any",
}
Field: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One thing that is wrong; `what` says how, the rest fills the sentence.

    `what` is wrongType, notQuantity, missing, tooMany, tooFew, tooLong, duplicate, badName or what `otherwise` says
    instead, notOneOf, outOfRange, forbidden, excluded or unknownField.
    """

    what: str
    at: FieldPath
    given: JSON = ""
    expected: str = ""
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Values:
    """The declarations of one file, for the objects of one version of an API."""

    objects: Mapping[str, Mapping[str, Any]]
    version: str = ""
    types: dict[str, Type] = field(default_factory=dict)

    def breaches(self, value: JSON, name: str, at: FieldPath, deadline: Deadline) -> Iterator[Breach]:
        """Everything that is wrong with an object: first what has another type, then the rest in the order of fields.

        Args:
            value: the object.
            name: the entry of `objects` that declares it.
            at: where it stands.
            deadline: is charged for what is walked.

        """
        decoded = decode(value, _type(self, {"object": name}), at, deadline)
        for each in decoded.mismatches:
            yield Breach(what="wrongType", at=each.at, given=each.value, expected=each.expected)
        settled = {each.at for each in decoded.mismatches} | set(decoded.unfilled)
        if decoded.value is not None:
            yield from _object(_Walk(self, deadline, settled), decoded.value, {"object": name}, at)

    def fields(self, named: str | Mapping[str, str]) -> Mapping[str, Any]:
        """The fields of an entry of `objects`."""
        return self.objects[named if isinstance(named, str) else named[self.version]]


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk over one object. `settled` are the places that need no further word."""

    values: Values
    deadline: Deadline
    settled: set[FieldPath] = field(default_factory=set)


@cache
def declared(file: Path) -> Mapping[str, Any]:
    """A data file."""
    (document,) = yamlfile.read(file)
    value: Mapping[str, Any] = document.value
    return value


@cache
def values(file: Path, version: str = "") -> Values:
    """The declarations of a data file for one version of its API."""
    return Values(declared(file)["objects"], version)


def _type(known: Values, declaration: Field) -> Type:
    """The type of a declaration; that of an entry of `objects` is made once."""
    if "object" in declaration:
        named = declaration["object"]
        name = named if isinstance(named, str) else named[known.version]
        if name not in known.types:
            inner = {each: _type(known, of) for each, of in known.objects[name].items() if each not in _ABOUT}
            known.types[name] = Fields(inner)
        return known.types[name]
    if "list" in declaration:
        return Items(_type(known, declaration["list"]))
    if "map" in declaration:
        return Fields({}, _type(known, declaration["map"]))
    return next((_SCALARS[key] for key in declaration if key in _SCALARS), "any")


def _value(walk: _Walk, value: JSON, declaration: Field, at: FieldPath) -> Iterator[Breach]:
    """What is wrong with a value that is there and of its type."""
    walk.deadline.spend(1)
    for kind, judge in _KINDS.items():
        if kind in declaration:
            yield from judge(walk, value, declaration, at)
            return


def _object(walk: _Walk, value: JSON, declaration: Field, at: FieldPath) -> Iterator[Breach]:
    known = walk.values.fields(declaration["object"])
    for name, held in value.items():
        if name in known and name not in _ABOUT:
            yield from _inside(walk, held, known[name], (*at, name), value)
        elif "open" not in known:
            moved = known.get("moved", {}).get(name, "")
            walk.deadline.spend(len(known))
            near = "" if moved else nearest(name, (each for each in known if each not in _ABOUT))
            yield Breach(what="unknownField", at=(*at, name), given=name, expected=moved, nearest=near)
    for name, inner in known.items():
        is_asked = name not in _ABOUT and inner.get("required") and (*at, name) not in walk.settled
        if is_asked and value.get(name) in (None, ""):
            yield Breach(what="missing", at=(*at, name), expected=_expected(inner))


def _inside(walk: _Walk, value: JSON, declaration: Field, at: FieldPath, holder: JSON) -> Iterator[Breach]:
    if "forbidden" in declaration:
        if value not in ("", 0):
            yield Breach(what="forbidden", at=at, given=value, expected=declaration["forbidden"])
        return
    for sibling, wanted in declaration.get("with", {}).items():
        other = holder.get(sibling)
        if isinstance(other, str) and other not in ("", wanted) and not is_placeholder(other):
            yield Breach(what="excluded", at=at, given=f"{sibling} {other}", expected=f"{sibling} {wanted}")
            return
    yield from _value(walk, value, declaration, at)


def _list(walk: _Walk, value: JSON, declaration: Field, at: FieldPath) -> Iterator[Breach]:
    for what, is_broken in (("tooMany", int.__gt__), ("tooFew", int.__lt__)):
        limit = declaration.get("most" if what == "tooMany" else "least", len(value))
        if is_broken(len(value), limit):
            yield Breach(what=what, at=at, given=len(value), expected=str(limit))
            return
    seen: dict[str, int] = {}
    unique = declaration.get("unique")
    for index, entry in enumerate(value):
        if (*at, index) in walk.settled:
            continue
        yield from _value(walk, entry, declaration["list"], (*at, index))
        key = entry.get(unique) if isinstance(entry, dict) and unique else entry
        if unique and isinstance(key, str) and key and seen.setdefault(key, index) != index:
            yield Breach(what="duplicate", at=(*at, index), given=key, expected=str(seen[key]))


def _map(walk: _Walk, value: JSON, declaration: Field, at: FieldPath) -> Iterator[Breach]:
    is_good, expected = FORMS[declaration.get("keys", "text")]
    for name, held in value.items():
        if not is_placeholder(name) and not is_good(name):
            yield Breach(what=declaration.get("otherwise", "badName"), at=(*at, name), given=name, expected=expected)
        if held is not None:
            yield from _value(walk, held, declaration["map"], (*at, name))


def _text(_: _Walk, value: JSON, declaration: Field, at: FieldPath) -> Iterator[Breach]:
    if is_placeholder(value) or (value == "" and (declaration.get("empty") or declaration.get("required"))):
        return
    longest = declaration.get("longest")
    if longest is not None and len(value.encode()) > longest:
        yield Breach(what="tooLong", at=at, given=value, expected=str(longest))
    elif "one" in declaration:
        choices = declaration["one"]
        if value not in choices:
            near = nearest(value, choices)
            yield Breach(what="notOneOf", at=at, given=value, expected=", ".join(choices), nearest=near)
    elif not FORMS[declaration["text"]][0](value):
        yield Breach(what="badName", at=at, given=value, expected=FORMS[declaration["text"]][1])


def _number(_: _Walk, value: JSON, declaration: Field, at: FieldPath) -> Iterator[Breach]:
    if not declaration.get("least", value) <= value <= declaration.get("most", value):
        yield Breach(what="outOfRange", at=at, given=value, expected=_expected(declaration))


def _quantity(_: _Walk, value: JSON, declaration: Field, at: FieldPath) -> Iterator[Breach]:
    if isinstance(value, str) and is_placeholder(value):
        return
    amount = _parsed(value)
    if amount is None:
        yield Breach(what="notQuantity", at=at, given=value, expected=_QUANTITY)
    elif "least" in declaration and amount < parse(declaration["least"]):
        yield Breach(what="outOfRange", at=at, given=value, expected=_expected(declaration))


def _amount(_: _Walk, value: JSON, __: Field, at: FieldPath) -> Iterator[Breach]:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        yield Breach(what="wrongType", at=at, given=value, expected="a whole number or a string")


def _parsed(value: JSON) -> Quantity | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse(str(value))
    except ValueError:
        return None


def _expected(declaration: Field) -> str:
    """What a field wants, in words."""
    if "expected" in declaration:
        return str(declaration["expected"])
    if "one" in declaration:
        return f"one of {', '.join(declaration['one'])}"
    if "text" in declaration:
        return FORMS[declaration["text"]][1]
    if "least" in declaration:
        least, most = declaration["least"], declaration.get("most")
        return f"at least {least}" if most is None else f"{least} to {most}"
    return ""


_KINDS: Final[Mapping[str, Callable[[_Walk, JSON, Field, FieldPath], Iterator[Breach]]]] = {
    "object": _object,
    "list": _list,
    "map": _map,
    "text": _text,
    "one": _text,
    "number": _number,
    "quantity": _quantity,
    "amount": _amount,
}
