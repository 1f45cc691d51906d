"""Values of the right type that the CustomResourceDefinition of their kind refuses all the same: values.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.schema.mismatch import described
from webhook.schema.values import Breach, values
from webhook.wording import shown

problem: Final = Group("object-shape").problem
_FILE: Final = Path(__file__).with_name("values.yaml")


def validate_values(subject: Subject) -> Iterator[Problem]:
    """Everything that is wrong with the values of an object, but for what was stored so before."""
    if subject.mismatches:
        return
    known = set(map(_kind, _breaches(subject.old_object, subject))) if subject.old_object is not None else set()
    for each in _breaches(subject.object, subject):
        if _kind(each) not in known:
            yield _problem(each)


def _breaches(obj: JSON, subject: Subject) -> Iterator[Breach]:
    declared, kind = values(_FILE), subject.group_kind[1]
    breaches = declared.breaches(obj, kind, (), subject.deadline)
    yield from (each for each in breaches if each.at not in subject.omitted)


def _kind(breach: Breach) -> tuple[str, str, str]:
    return breach.what, str(breach.at), str(breach.given)


def _problem(breach: Breach) -> Problem:
    match breach.what:
        case "missing":
            return problem("required", breach.at, "must be set", f"name {breach.expected}")
        case "duplicate":
            message = f"must differ from entry {breach.expected}, which has the same name"
            return problem("duplicate", breach.at, message, "join them, or correct the name", breach.given)
        case "tooMany":
            given = f"{breach.given} entries"
            return problem("length", breach.at, f"must not be more than {breach.expected}", "shorten it", shown=given)
        case "tooLong":
            given = f"{len(breach.given.encode())} bytes"
            message = f"must not be more than {breach.expected}"
            return problem("length", breach.at, message, "shorten it", shown=given)
        case "wrongType":
            message = f"should be {breach.expected}, not {described(breach.given)}, which the API server refuses"
            return problem("fraction", breach.at, message, "write it as a string")
        case _:
            message = f"must be {breach.expected}"
            return problem("out-of-range", breach.at, message, "correct the number", shown(breach.given))
