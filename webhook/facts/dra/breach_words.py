"""The messages about invalid values of claims, classes and configurations, for all groups of rules.

The breaches are those of webhook/schema/values.py and of the checks of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from webhook.paths import path_as_text
from webhook.schema.forms import fault_of
from webhook.schema.values import Breach
from webhook.wording import counted, shown


class Words(NamedTuple):
    """The message about a breach, the fix, and the value that is shown, "" if none is."""

    message: str
    fix: str
    shown: str = ""


def message_and_fix(breach: Breach) -> Words:
    """Return the message and the fix for a breach of the API server's validation."""
    return _WORDS[breach.what](breach)


def _found(breach: Breach) -> str:
    return shown(breach.given) if breach.given != "" else ""


def _shown(breach: Breach, message: str, fix: str) -> Words:
    return Words(message, fix, f"`{_found(breach)}`")


def _if_meant(breach: Breach, otherwise: str = "") -> str:
    return f"write `{breach.nearest}` if that is meant" if breach.nearest else otherwise


def _wrong_type(breach: Breach) -> Words:
    kind, _, examples = breach.expected.partition(" such as ")
    return _shown(breach, f"must be {kind}", f"write a value such as {examples}" if examples else f"write {kind}")


def _missing(breach: Breach) -> Words:
    field = path_as_text(breach.at).rpartition(".")[2]
    message = f"must be set to {breach.expected}" if breach.expected else "must be set"
    return Words(message, f"add the field {field}")


def _too_many(breach: Breach) -> Words:
    more = breach.given - int(breach.expected)
    message = f"has {breach.given} entries, but at most {breach.expected} are allowed"
    return Words(message, f"remove {counted(more, 'entry', 'entries')}")


def _too_long(breach: Breach) -> Words:
    message = f"has {breach.given} bytes of JSON, but at most {breach.expected} are allowed"
    return Words(message, "shorten the parameters")


def _duplicate(breach: Breach) -> Words:
    return _shown(breach, f"is also the entry at index {breach.expected}", "give every entry its own name")


def _bad_name(breach: Breach) -> Words:
    if fault := fault_of(_found(breach), breach.expected):
        return _shown(breach, f"is not a valid name because {fault}", f"use {breach.expected}")
    return _shown(breach, f"must be {breach.expected}", f"write {breach.expected}")


def _not_one_of(breach: Breach) -> Words:
    return _shown(breach, f"must be one of {breach.expected}", _if_meant(breach, "use one of them"))


def _forbidden(breach: Breach) -> Words:
    return Words(f"must not be set because {breach.expected}", "remove the field")


def _excluded(breach: Breach) -> Words:
    fix = f"remove the field, or set {breach.expected}"
    return Words(f"must not be set with {_found(breach)}", fix)


def _unknown_field(breach: Breach) -> Words:
    place = breach.expected  # a field, or what to do about one that has no place
    move = place if " " in place else f"move the field to {place}" if place else "remove the field, or correct its name"
    return Words("is ignored because there is no such field", _if_meant(breach, move))


def _unknown_request(breach: Breach) -> Words:
    fix = _if_meant(breach, "name a request, or an alternative as request/alternative")
    return _shown(breach, "is not a request of this claim", fix)


def _no_capacity(breach: Breach) -> Words:
    message = f"cannot be the name of a capacity because {fault_of(_found(breach), breach.expected)}"
    return _shown(breach, message, "write the name of a capacity of the device")


_WORDS: Final[Mapping[str, Callable[[Breach], Words]]] = {
    "wrongType": _wrong_type,
    "notQuantity": _wrong_type,
    "parameters": lambda breach: _shown(breach, "must be an object", "write the parameters as an object"),
    "missing": _missing,
    "tooMany": _too_many,
    "tooLong": _too_long,
    "duplicate": _duplicate,
    "badName": _bad_name,
    "notOneOf": _not_one_of,
    "outOfRange": lambda breach: _shown(breach, f"must be {breach.expected}", "set a number in this range"),
    "forbidden": _forbidden,
    "excluded": _excluded,
    "allocationMode": lambda breach: Words("must be ExactCount or All", "set one of them", f"`{breach.given}`"),
    "noAttribute": lambda _: Words("must have an attribute", "set one of matchAttribute and distinctAttribute"),
    "unknownField": _unknown_field,
    "unknownRequest": _unknown_request,
    "noCapacity": _no_capacity,
}
