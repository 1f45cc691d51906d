"""Checks the values of an object by the declarations of a data file: forms, ranges, choices, and unknown fields.

A data file has `objects`. Each entry of `objects` has fields. One key of a field is its type, other keys are its
bounds:

    text: FORM              a text of a form of `FORMS`, with at most `longest` bytes; `empty: true` also allows ""
    one: [A, B]             a text of a closed set
    number: true            a whole number from `least` to `most`
    amount: true            a whole number or a text, as custom kinds declare quantities
    quantity: true          a quantity of at least `least`
    flag: true              true or false
    list: FIELD             a list of `least` to `most` entries
      unique: NAME          the entries differ in the field NAME
      unique: true          the entries differ as a whole
    map: FIELD              a map with keys of the form `keys`
      otherwise: KIND       the kind of breach for a bad key; by default badName
    object: NAME            an entry of `objects`; {VERSION: NAME} if it depends on the version
    any: true               any value

Each field may also have these keys:

    required: true          the field must be set
    expected: WORDS         messages describe the expected value with these words
    forbidden: REASON       the field must not be set
    with: {SIBLING: VALUE}  the field must not be set if the field SIBLING has another value

An entry of `objects` may also have these keys:

    moved: {NAME: PLACE}    the unknown field NAME belongs to this path inside the object
    open: true              unknown fields are allowed

An object is first decoded by these types (decode.py). Values of wrong types and placeholders are not checked further.

Sources of the forms: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go (validateQualifiedName,
validatePoolName), pkg/apis/core/validation ValidateCSIDriverName, pkg/apis/core/v1/helper IsExtendedResourceName, and
k8s.io/apimachinery pkg/util/validation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    forbidden_character_fault,
    label_fault,
    label_fix,
    label_value_errors,
    label_value_fault,
    label_value_fix,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
    subdomain_fault,
    subdomain_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.quantity import Quantity, parse_quantity
from webhook.deadline import Deadline
from webhook.schema.decode import decode
from webhook.schema.types import Fields, Items, Scalar, Type
from webhook.text.similar_names import nearest_name
from webhook.yamltext import yamlfile
from webhook.yamltext.placeholders import is_placeholder

_LONGEST_DRIVER, _LONGEST_ID = 63, 32
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DURATION = re.compile(r"[-+]?(0|(([0-9]++[.]?[0-9]*+|[.][0-9]++)(ns|us|µs|μs|ms|s|m|h))++)")
"""The quantifiers are possessive. With backtracking, a text of 100,000 digits would take minutes."""
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_DEVICE = re.compile(r"[0-9]+|(GPU|MIG)-[0-9A-Za-z/-]+")


def is_dns_label(value: str) -> bool:
    """Return whether a text is a DNS label: a name without dots."""
    return not dns1123_label_errors(value)


def is_subdomain(value: str) -> bool:
    """Return whether a text is a DNS subdomain, the form of most objects' names."""
    return not dns1123_subdomain_errors(value)


def is_driver(value: str) -> bool:
    """Return whether a text names a driver. Upper case is allowed (core validation ValidateCSIDriverName)."""
    return len(value) <= _LONGEST_DRIVER and not dns1123_subdomain_errors(value.lower())


def is_identifier(value: str) -> bool:
    """Return whether a text can be the part after the domain in the name of an attribute or a capacity."""
    return len(value) <= _LONGEST_ID and _IDENTIFIER.fullmatch(value) is not None


def is_capacity_name(value: str) -> bool:
    """Return whether a text is the name of an attribute or a capacity, with or without a domain."""
    domain, slash, id_ = value.partition("/")
    return is_identifier(value) if not slash else is_driver(domain) and is_identifier(id_)


def is_qualified_attribute_name(value: str) -> bool:
    """Return whether a text names an attribute with its domain. As in Kubernetes, several slashes are accepted."""
    return value.count("/") > 1 or ("/" in value and is_capacity_name(value))


def is_extended_resource(value: str) -> bool:
    """Return whether a text is the name of an extended resource to which a quota can refer with `requests.`."""
    if "/" not in value or "kubernetes.io/" in value or value.startswith("requests."):
        return False
    return not qualified_name_errors(f"requests.{value}")


def _fault_of_identifier(name: str) -> str:
    if len(name) > _LONGEST_ID:
        return f"it has {len(name)} characters, and at most {_LONGEST_ID} are allowed"
    if name[:1].isdigit():
        return f"it begins with the digit `{name[0]}`"
    return forbidden_character_fault(name, "_") or "it is empty"


def _fault_of_capacity_name(name: str) -> str:
    domain, slash, id_ = name.partition("/")
    if slash and not is_driver(domain):
        return f"before the slash, {subdomain_fault(domain.lower())}"
    return _fault_of_identifier(id_ if slash else name)


def _fault_of_attribute_name(name: str) -> str:
    return _fault_of_capacity_name(name) if "/" in name else "it has no domain"


def _extended_resource_fault(name: str) -> str:
    if "/" not in name:
        return "it has no domain"
    if "kubernetes.io/" in name:
        return "its domain is kubernetes.io"
    return "it begins with `requests.`" if name.startswith("requests.") else qualified_name_fault(name)


def is_pool(value: str) -> bool:
    """Return whether a text names a pool of devices: subdomains separated by slashes."""
    return len(value) <= 253 and all(map(is_subdomain, value.split("/")))


def is_duration(value: str) -> bool:
    """Return whether a text is a duration that Go can parse (time.ParseDuration)."""
    return _DURATION.fullmatch(value) is not None


_LABEL = "at most 63 lower-case letters, digits and dashes, starting and ending with a letter or digit"
_SUBDOMAIN = "lower-case letters, digits, dashes and dots, starting and ending with a letter or digit"
_KEY = "at most 63 letters, digits, dashes, dots and underscores, with or without a domain and a slash before them"
FORMS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "label": (is_dns_label, _LABEL),
    "subdomain": (is_subdomain, _SUBDOMAIN),
    "driver": (is_driver, "the name of a driver: at most 63 letters, digits, dashes and dots"),
    "attribute": (is_qualified_attribute_name, "a domain, a slash, and at most 32 letters, digits and underscores"),
    "capacity": (
        is_capacity_name,
        "at most 32 letters, digits and underscores, with or without a domain and a slash before them",
    ),
    "extendedResource": (
        is_extended_resource,
        "a name with a domain other than kubernetes.io, such as example.com/gpu",
    ),
    "pool": (is_pool, "lower-case names separated by slashes, with at most 253 characters in all"),
    "labelKey": (lambda value: not qualified_name_errors(value), _KEY),
    "annotationKey": (lambda value: not qualified_name_errors(value.lower()), _KEY),
    "labelValue": (
        lambda value: not label_value_errors(value),
        "at most 63 letters, digits, dashes, dots and underscores",
    ),
    "nvidiaDevice": (lambda value: _DEVICE.fullmatch(value) is not None, "an index from 0 or the UUID of a device"),
    "duration": (is_duration, "a duration such as 30s or 1h30m"),
    "mountPath": (lambda value: value != "" and ":" not in value, "a path without a colon"),
    "absolutePath": (lambda value: value.startswith("/"), "a path that begins with /"),
    "decimal": (lambda value: _DECIMAL.fullmatch(value) is not None, "a number in quotes such as 0.5"),
    "text": (lambda _: True, "a string"),
    "some": (lambda value: value != "", "a string that is not empty"),
}
_FAULTS: Final[Mapping[str, Callable[[str], str]]] = {
    "label": label_fault,
    "subdomain": subdomain_fault,
    "driver": lambda value: subdomain_fault(value.lower()),
    "attribute": _fault_of_attribute_name,
    "capacity": _fault_of_capacity_name,
    "extendedResource": _extended_resource_fault,
    "labelKey": qualified_name_fault,
    "annotationKey": qualified_name_fault,
    "labelValue": label_value_fault,
}
_FAULT_OF: Final = {FORMS[form][1]: fault for form, fault in _FAULTS.items()}

_FIX_OF: Final[Mapping[str, Callable[[str], str]]] = {
    FORMS[form][1]: fix
    for form, fix in (
        ("label", label_fix),
        ("subdomain", subdomain_fix),
        ("driver", lambda value: subdomain_fix(value.lower())),
        ("labelKey", qualified_name_fix),
        ("annotationKey", qualified_name_fix),
        ("labelValue", label_value_fix),
    )
}


def fault_of_name(value: str, expected: str) -> str:
    """Return the fault of a name, such as `it contains `-``; "" if the expected form is not a name."""
    return _FAULT_OF[expected](value) if expected in _FAULT_OF else ""


def fix_of_name(value: str, expected: str) -> str:
    """Return how to correct the name for which `fault_of_name` returns a fault."""
    return _FIX_OF[expected](value) if expected in _FIX_OF else f"use {expected}"


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
Judge: TypeAlias = "Callable[[_BreachCollector, JSON, FieldPath, JSON], None]"
"""Collects the breaches of a value that is set and has the right type. The last argument is the object around the
value.
"""


class Breach(Struct, frozen=True, kw_only=True):
    """One breach of a declaration.

    Attributes:
        what: wrongType, notQuantity, missing, tooMany, tooFew, tooLong, duplicate, badName, notOneOf, outOfRange,
            forbidden, excluded, unknownField, or a kind from the key `otherwise`.
        given, expected, nearest: the wrong value, the expected value and a similar valid name, for the message.
    """

    what: str
    at: FieldPath
    given: JSON = ""
    expected: str = ""
    nearest: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the kind, the place and the value, which are equal in an object and its update."""
        return self.what, str(self.at), str(self.given)


class ValueDeclarations(Struct, frozen=True):
    """The declarations of one file, for the objects of one version of an API."""

    objects: Mapping[str, Mapping[str, Any]]
    version: str = ""
    types: dict[str, Type] = field(default_factory=dict)
    judges: dict[str, Judge] = field(default_factory=dict)

    def breaches(self, value: JSON, name: str, at: FieldPath, deadline: Deadline) -> Iterator[Breach]:
        """Yield all breaches of an object: first wrong types, then other breaches in the order of fields.

        `name` is the entry of `objects` for the object at path `at`. The deadline is charged for walked values.
        """
        decoded = decode(value, _type_of_declaration(self, {"object": name}), at, deadline)
        for each in deadline.charge_for_items(decoded.mismatches):
            yield Breach(what="wrongType", at=each.at, given=each.value, expected=each.expected)
        settled = {each.at for each in deadline.charge_for_items(decoded.mismatches)} | set(decoded.unfilled)
        if decoded.value is not None:
            yield from self.breaches_of_decoded(decoded.value, name, at, deadline, settled)

    def breaches_of_decoded(
        self, value: JSON, name: str, at: FieldPath, deadline: Deadline, settled: Collection[FieldPath] = ()
    ) -> Sequence[Breach]:
        """Return the breaches of an object with values of the right types. Values at `settled` paths, which have
        another problem, are skipped.
        """
        walk = _BreachCollector(deadline, settled)
        self.judge_of_entry(name)(walk, value, at, None)
        return walk.breaches

    def judge_of_entry(self, named: str | Mapping[str, str]) -> Judge:
        """Return the function that checks an entry of `objects`, created once."""
        name = self.name_of_entry(named)
        if name not in self.judges:
            self.judges[name] = _judge_of_object(self, self.objects[name])
        return self.judges[name]

    def name_of_entry(self, named: str | Mapping[str, str]) -> str:
        """Return the entry of `objects` that a declaration names."""
        return named if isinstance(named, str) else named[self.version]


class _BreachCollector(Struct, frozen=True):
    """Collects the breaches of one object. Values at `settled` paths are skipped."""

    deadline: Deadline
    settled: Collection[FieldPath]
    breaches: list[Breach] = field(default_factory=list)

    def add_breach(self, what: str, at: FieldPath, given: JSON = "", expected: str = "", near: str = "") -> None:
        self.breaches.append(Breach(what=what, at=at, given=given, expected=expected, nearest=near))


@cache
def read_data_file(file: Path) -> Mapping[str, Any]:
    """Return the content of a data file, which has one document."""
    (document,) = yamlfile.read(file)
    value: Mapping[str, Any] = document.value
    return value


@cache
def declarations_of_file(file: Path, version: str = "") -> ValueDeclarations:
    """Return the declarations of a data file for one version of its API."""
    return ValueDeclarations(read_data_file(file)["objects"], version)


def _type_of_declaration(known: ValueDeclarations, declaration: Field) -> Type:
    """Return the type of a declaration. The type of an entry of `objects` is created once."""
    if "object" in declaration:
        name = known.name_of_entry(declaration["object"])
        if name not in known.types:
            inner = {
                each: _type_of_declaration(known, of) for each, of in known.objects[name].items() if each not in _ABOUT
            }
            known.types[name] = Fields(inner)
        return known.types[name]
    if "list" in declaration:
        return Items(_type_of_declaration(known, declaration["list"]))
    if "map" in declaration:
        return Fields({}, _type_of_declaration(known, declaration["map"]))
    return next((_SCALARS[key] for key in declaration if key in _SCALARS), "any")


def _judge_of_declaration(known: ValueDeclarations, declaration: Field) -> Judge | None:
    """Return the function that checks values; None if every value is valid."""
    if "object" in declaration:
        return known.judge_of_entry(declaration["object"])
    return next((make(known, declaration) for kind, make in _KINDS.items() if kind in declaration), None)


def _judge_of_object(known: ValueDeclarations, declared: Mapping[str, Any]) -> Judge:
    fields = {name: _judge_of_field(known, inner) for name, inner in declared.items() if name not in _ABOUT}
    required = [(name, _expected_value_as_text(declared[name])) for name in fields if declared[name].get("required")]
    moved, is_open = declared.get("moved", {}), "open" in declared

    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        walk.deadline.spend(len(value))
        for name, member in value.items():
            if (inner := fields.get(name)) is not None:
                inner(walk, member, (*at, name), value)
            elif name not in fields and not is_open:
                walk.deadline.spend(len(fields))
                near = "" if name in moved else nearest_name(name, fields)
                walk.add_breach("unknownField", (*at, name), name, moved.get(name, ""), near)
        for name, expected in required:
            if value.get(name) in (None, "") and (*at, name) not in walk.settled:
                walk.add_breach("missing", (*at, name), expected=expected)

    return judge


def _judge_of_field(known: ValueDeclarations, declaration: Field) -> Judge | None:
    """Return the function that checks the value of a field and the keys `forbidden` and `with`; None if every value is
    valid.
    """
    forbidden, others, inner = (
        declaration.get("forbidden"),
        declaration.get("with"),
        _judge_of_declaration(known, declaration),
    )

    def refuse(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        if value not in ("", 0):
            walk.add_breach("forbidden", at, value, forbidden or "")

    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, holder: JSON) -> None:
        for sibling, wanted in (others or {}).items():
            other = holder.get(sibling)
            if isinstance(other, str) and other not in ("", wanted) and not is_placeholder(other):
                walk.add_breach("excluded", at, f"{sibling} {other}", f"{sibling} {wanted}")
                return
        if inner is not None:
            inner(walk, value, at, holder)

    return refuse if forbidden is not None else judge if others else inner


def _judge_of_list(known: ValueDeclarations, declaration: Field) -> Judge:
    inner, unique = _judge_of_declaration(known, declaration["list"]), declaration.get("unique")
    least, most = declaration.get("least", 0), declaration.get("most", math.inf)

    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        if not least <= len(value) <= most:
            what, limit = ("tooFew", least) if len(value) < least else ("tooMany", most)
            walk.add_breach(what, at, len(value), str(limit))
        elif inner is not None or unique:
            entries(walk, value, at)

    def entries(walk: _BreachCollector, value: JSON, at: FieldPath) -> None:
        if inner is None and unique and _all_differ_under_key(value, unique, walk.deadline):
            return
        seen: dict[str, int] = {}
        for index, entry in enumerate(walk.deadline.charge_for_items(value)):
            if walk.settled and (*at, index) in walk.settled:
                continue
            if inner is not None:
                inner(walk, entry, (*at, index), None)
            key = entry.get(unique) if isinstance(entry, dict) and unique else entry
            if unique and isinstance(key, str) and key and seen.setdefault(key, index) != index:
                walk.add_breach("duplicate", (*at, index), key, str(seen[key]))

    return judge


def _all_differ_under_key(entries: Sequence[JSON], key: str, deadline: Deadline) -> bool:
    """Return whether the values certainly differ. The result may be False although they differ."""
    deadline.spend(len(entries) // 10)  # most of the work is in C
    try:
        return len({each[key] for each in entries}) == len(entries)
    except (KeyError, TypeError):
        return False


def _judge_of_map(known: ValueDeclarations, declaration: Field) -> Judge:
    is_good, expected = FORMS[declaration.get("keys", "text")]
    inner, otherwise = _judge_of_declaration(known, declaration["map"]), declaration.get("otherwise", "badName")

    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        for name, member in walk.deadline.charge_for_items(value.items()):
            if not is_placeholder(name) and not is_good(name):
                walk.add_breach(otherwise, (*at, name), name, expected)
            if member is not None and inner is not None:
                inner(walk, member, (*at, name), value)

    return judge


def _judge_of_text(_: ValueDeclarations, declaration: Field) -> Judge:
    may_be_empty = bool(declaration.get("empty") or declaration.get("required"))
    choices, longest = declaration.get("one"), declaration.get("longest", math.inf)
    is_good, expected = FORMS[declaration.get("text", "text")]

    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        if is_placeholder(value) or (value == "" and may_be_empty):
            return
        if len(value.encode()) > longest:
            walk.add_breach("tooLong", at, value, str(longest))
        elif choices is not None and value not in choices:
            walk.deadline.spend(len(choices))
            walk.add_breach("notOneOf", at, value, ", ".join(choices), nearest_name(value, choices))
        elif not is_good(value):
            walk.add_breach("badName", at, value, expected)

    return judge


def _judge_of_number(_: ValueDeclarations, declaration: Field) -> Judge:
    least, most = declaration.get("least", -math.inf), declaration.get("most", math.inf)
    expected = _expected_value_as_text(declaration)

    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        if not least <= value <= most:
            walk.add_breach("outOfRange", at, value, expected)

    return judge


def _judge_of_quantity(_: ValueDeclarations, declaration: Field) -> Judge:
    least = parse_quantity(declaration["least"]) if "least" in declaration else None

    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        if isinstance(value, str) and is_placeholder(value):
            return
        amount = _quantity_or_none(value)
        if amount is None:
            walk.add_breach("notQuantity", at, value, _QUANTITY)
        elif least is not None and amount < least:
            walk.add_breach("outOfRange", at, value, _expected_value_as_text(declaration))

    return judge


def _judge_of_whole_number_or_text(_: ValueDeclarations, __: Field) -> Judge:
    def judge(walk: _BreachCollector, value: JSON, at: FieldPath, _: JSON) -> None:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            walk.add_breach("wrongType", at, value, "a whole number or a string")

    return judge


def _quantity_or_none(value: JSON) -> Quantity | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(str(value))
    except ValueError:
        return None


def _expected_value_as_text(declaration: Field) -> str:
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


_KINDS: Final[Mapping[str, Callable[[ValueDeclarations, Field], Judge]]] = {
    "list": _judge_of_list,
    "map": _judge_of_map,
    "text": _judge_of_text,
    "one": _judge_of_text,
    "number": _judge_of_number,
    "quantity": _judge_of_quantity,
    "amount": _judge_of_whole_number_or_text,
}
