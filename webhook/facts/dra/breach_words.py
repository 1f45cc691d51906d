"""What is wrong with single fields of claims, classes and configurations, as problems of a group.

The notes are those of webhook/schema/values.py and of the checks of this package; a rule stands in every group that can
break it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.problem import Problem
from webhook.schema.forms import fault_of
from webhook.wording import counted

_Words: TypeAlias = tuple[str, str]
"""The message about a note, and what to do."""


def problems(group: str, notes: Iterable[JSON]) -> Iterator[Problem]:
    """The problems of some notes."""
    for note in notes:
        rule, words, shows = _RULES[note["what"]]
        message, fix = words(note)
        shown = f"`{note['found']}`" if shows else ""
        yield Problem(code=f"{group}/{rule}", path=note["path"], message=message, fix=fix, found=shown)


def _meant(note: JSON, otherwise: str = "") -> str:
    return f"write `{note['nearest']}` if that is meant" if note["nearest"] else otherwise


def _type(note: JSON) -> _Words:
    kind, _, examples = note["expected"].partition(" such as ")
    return f"must be {kind}", f"write a value such as {examples}" if examples else f"write {kind}"


def _name(note: JSON) -> _Words:
    expected = note["expected"]
    fault = fault_of(note["found"], expected) if isinstance(note["found"], str) else ""
    if fault:
        return f"is not a valid name because {fault}", f"use {expected}"
    return f"must be {expected}", f"write {expected}"


def _at_most(note: JSON, what: str) -> _Words:
    return (
        f"has {note['found']} {what}, but at most {note['expected']} are allowed",
        f"remove {counted(int(note['found']) - int(note['expected']), 'entry', 'entries')}"
        if what == "entries"
        else "shorten the parameters",
    )


def _missing(note: JSON) -> _Words:
    field = note["path"].rpartition(".")[2]
    return f"must be set to {note['expected']}" if note["expected"] else "must be set", f"add the field {field}"


def _unknown_field(note: JSON) -> _Words:
    place = note["expected"]  # a field, or what to do about one that has no place
    move = place if " " in place else f"move the field to {place}" if place else "remove the field, or correct its name"
    return "is ignored because there is no such field", _meant(note, move)


def _request(note: JSON) -> _Words:
    return "is not a request of this claim", _meant(note, "name a request, or an alternative as request/alternative")


_RULES: Final[Mapping[str, tuple[str, Callable[[JSON], _Words], bool]]] = {
    "wrongType": ("type", _type, True),
    "notQuantity": ("quantity", _type, True),
    "parameters": ("parameters", lambda _: ("must be an object", "write the parameters as an object"), True),
    "missing": ("required", _missing, False),
    "tooMany": ("too-large", lambda note: _at_most(note, "entries"), False),
    "tooLong": ("too-large", lambda note: _at_most(note, "bytes of JSON"), False),
    "duplicate": (
        "duplicate",
        lambda note: (f"is also the entry at index {note['expected']}", "give every entry its own name"),
        True,
    ),
    "badName": ("name-format", _name, True),
    "notOneOf": (
        "unsupported-value",
        lambda note: (f"must be one of {note['expected']}", _meant(note, "use one of them")),
        True,
    ),
    "outOfRange": ("out-of-range", lambda note: (f"must be {note['expected']}", "set a number in this range"), True),
    "forbidden": ("forbidden", lambda note: (f"must not be set because {note['expected']}", "remove the field"), False),
    "excluded": (
        "excluded",
        lambda note: (f"must not be set with {note['found']}", f"remove the field, or set {note['expected']}"),
        False,
    ),
    "noSource": (
        "group-source",
        lambda _: ("must have a source", "set one of resourceClaimName and resourceClaimTemplateName"),
        False,
    ),
    "twoSources": (
        "group-source",
        lambda _: ("must not have two sources", "keep one of resourceClaimName and resourceClaimTemplateName"),
        False,
    ),
    "noAttribute": (
        "constraint-attribute",
        lambda _: ("must have an attribute", "set one of matchAttribute and distinctAttribute"),
        False,
    ),
    "unknownRequest": ("unknown-request", _request, True),
    "unknownField": ("unknown-field", _unknown_field, False),
    "noCapacity": (
        "capacity-name",
        lambda note: (
            f"cannot be the name of a capacity because {fault_of(note['found'], note['expected'])}",
            "write the name of a capacity of the device",
        ),
        True,
    ),
    "unknownKind": (
        "unknown-kind",
        lambda note: (
            f"must be {note['expected']} because the driver, as of 0.5, accepts nothing else",
            _meant(note, f"write {note['expected']}"),
        ),
        True,
    ),
    "otherDriver": (
        "other-driver",
        lambda note: (
            f"is ignored because only driver `{note['expected']}` applies this kind",
            f"set the driver to {note['expected']}",
        ),
        True,
    ),
    "otherDevice": (
        "other-device",
        lambda note: (
            (
                f"names a request of DeviceClass `{note['found']}`, but the configuration is only for "
                f"DeviceClass `{note['expected']}`"
            ),
            f"name a request of DeviceClass {note['expected']}",
        ),
        False,
    ),
    "alternatives": (
        "alternatives",
        lambda note: (
            f"names request `{note['found']}`, so the driver does not configure the alternatives of this request",
            f"name each alternative, such as {note['expected']}",
        ),
        False,
    ),
    "gated": (
        "feature-gate",
        lambda note: (
            f"needs the driver's feature gate {note['expected']}, which is off by default",
            "ask the administrator to turn the gate on and name it in featureGates of ConfigMap nvidia-device-configs",
        ),
        True,
    ),
}
"""Rule, words, and whether what is there is shown before them, by what a note says."""
