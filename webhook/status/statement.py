"""A statement of one object of a cluster about a job: a sentence, the text of its controller, and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get

Standing: TypeAlias = Literal["failed", "stuck", "waits", "starting", "done"]
"""failed: it ended, and nothing starts it again. stuck: a person has to fix it. waits: it continues after others are
done. starting: it is on its way. done: it ended well.
"""
_LONGEST: Final = 4_000
"""Characters of a text of a controller that are read: a scheduler's message has a part for each kind of reason."""


class Turn(IntEnum):
    """The statement that decides: earlier steps in the life of a job block all later ones."""

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
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Statement(Struct, frozen=True, kw_only=True):
    """One statement about a job.

    Args:
        about: the object with the statement.
        standing: the meaning for the job.
        turn: when in the life of a job it decides.
        says: a sentence without a full stop.
        fix: the fix, "" without one.
        words: the text of the controller, "" if there is none.
        alike: the number of other objects of the kind with the same statement.
        last_seen: when the event with this text was last seen, in RFC 3339; "" if the text is not of an event.
    """

    about: ObjectName
    standing: Standing
    turn: Turn
    says: str
    fix: str = ""
    words: str = ""
    alike: int = 0
    last_seen: str = ""


class Condition(Struct, frozen=True, kw_only=True):
    """A condition of a status, with only its texts."""

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
    obj: JSON, standing: Standing, turn: Turn, says: str, fix: str = "", *, words: str = ""
) -> Statement:
    """Return the statement of an object."""
    return Statement(about=name_of(obj), standing=standing, turn=turn, says=says, fix=fix, words=words)


def text_at(obj: JSON, path: FieldPath) -> str:
    """Return a text of an object, shortened; "" if it has none."""
    value = get(obj, path, "")
    return value[:_LONGEST] if isinstance(value, str) else ""


def number_at(obj: JSON, path: FieldPath) -> int:
    """Return a whole number of an object, 0 if it has none."""
    value = get(obj, path, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def items_at(obj: JSON, path: FieldPath) -> Iterator[Mapping[str, JSON]]:
    """Yield the objects in a list of an object."""
    value = get(obj, path, ())
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def map_at(obj: JSON, path: FieldPath) -> Mapping[str, JSON]:
    """Return a map of an object; an empty map if it has none."""
    value = get(obj, path, None)
    return value if isinstance(value, dict) else {}


def conditions_of(obj: JSON, path: FieldPath = ("status", "conditions")) -> Mapping[str, Condition]:
    """Return the conditions of an object by their types."""
    conditions: dict[str, Condition] = {}
    for each in items_at(obj, path):
        made = Condition(
            type=text_at(each, ("type",)),
            status=text_at(each, ("status",)),
            reason=text_at(each, ("reason",)),
            message=text_at(each, ("message",)).strip(),
        )
        conditions[made.type] = made
    return conditions


def true_condition(conditions: Mapping[str, Condition], *types: str) -> Condition | None:
    """Return the first of these conditions that is True."""
    return next((conditions[each] for each in types if each in conditions and conditions[each].status == "True"), None)
