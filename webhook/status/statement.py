"""Defines statements: what one object of a cluster says about a job, as a sentence with its cause and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.names import object_as_text
from webhook.apimachinery.paths import FieldPath, get

Standing: TypeAlias = Literal["failed", "stuck", "waits", "starting", "done"]
"""What a statement means for a job:

- failed: the job ended, and nothing starts it again
- stuck: a person has to fix something
- waits: the job continues after other jobs end
- starting: the job is about to run
- done: the job succeeded
"""
_LONGEST: Final = 4_000
"""A longer text of a controller is cut. Schedulers have long messages with many reasons."""


class Turn(IntEnum):
    """The step in the life of a job that a statement is about. The earliest step decides: it blocks all later steps."""

    ENDED = 0
    NO_RUNTIME = 5
    NOT_MADE = 10
    QUEUE = 20
    SUSPENDED = 25
    GANG = 30
    GATE = 35
    CLAIM = 38
    NODE = 40
    CONTAINER = 50
    PROGRESS = 60
    READINESS = 70
    SILENCE = 90


class ObjectName(Struct, frozen=True, kw_only=True):
    """An object by its kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return object_as_text(self.kind, self.namespace, self.name)


class Statement(Struct, frozen=True, kw_only=True):
    """One statement about a job.

    Args:
        about: the object that says this.
        standing: the meaning of the statement for the job.
        turn: the step in the life of the job.
        sentence: the sentence, without a full stop.
        fix: what to do; "" if nothing can be done.
        words: the text of the controller, or "".
        alike: the number of other objects of the kind with the same statement.
        last_seen: when the event with this text was last seen, in RFC 3339; "" if the text is not from an event.
    """

    about: ObjectName
    standing: Standing
    turn: Turn
    sentence: str
    fix: str = ""
    words: str = ""
    alike: int = 0
    last_seen: str = ""


class Condition(Struct, frozen=True, kw_only=True):
    """The texts of one condition in a status."""

    type: str
    status: str
    reason: str
    message: str

    @property
    def words(self) -> str:
        """Return the condition as `Type is Status (Reason): message`."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.type} is {self.status}{reason}{f': {self.message}' if self.message else ''}"


def name_of(obj: JSON) -> ObjectName:
    """Return the name of an object."""
    return ObjectName(
        kind=text_at(obj, ("kind",)),
        namespace=text_at(obj, ("metadata", "namespace")),
        name=text_at(obj, ("metadata", "name")),
    )


def statement_about(
    obj: JSON, standing: Standing, turn: Turn, sentence: str, fix: str = "", *, words: str = ""
) -> Statement:
    """Return the statement of an object."""
    return Statement(about=name_of(obj), standing=standing, turn=turn, sentence=sentence, fix=fix, words=words)


def text_at(obj: JSON, path: FieldPath) -> str:
    """Return the text at a path, shortened; "" without a text."""
    value = get(obj, path, "")
    return value[:_LONGEST] if isinstance(value, str) else ""


def number_at(obj: JSON, path: FieldPath) -> int:
    """Return the whole number at a path; 0 without a whole number."""
    value = get(obj, path, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def items_at(obj: JSON, path: FieldPath) -> Iterator[Mapping[str, JSON]]:
    """Yield the objects in the list at a path of an object."""
    value = get(obj, path, ())
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def map_at(obj: JSON, path: FieldPath) -> Mapping[str, JSON]:
    """Return the map at a path; an empty map if there is no map."""
    value = get(obj, path, None)
    return value if isinstance(value, dict) else {}


def conditions_of(obj: JSON, path: FieldPath = ("status", "conditions")) -> Mapping[str, Condition]:
    """Return the conditions of an object by their types."""
    conditions: dict[str, Condition] = {}
    for each in items_at(obj, path):
        condition = Condition(
            type=text_at(each, ("type",)),
            status=text_at(each, ("status",)),
            reason=text_at(each, ("reason",)),
            message=text_at(each, ("message",)).strip(),
        )
        conditions[condition.type] = condition
    return conditions


def true_condition(conditions: Mapping[str, Condition], *types: str) -> Condition | None:
    """Return the first of these conditions that is True."""
    return next((conditions[each] for each in types if each in conditions and conditions[each].status == "True"), None)
