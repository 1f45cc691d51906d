"""A typed object: its JSON, its path, and the context in which it is read. Subclasses declare fields (fields.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from re import Pattern
from typing import Any, Final, Self, TypeVar

from msgspec import Struct, field

from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.deadline import Deadline
from webhook.typed.collections import Items

Item = TypeVar("Item")
_CHARACTERS: Final = 10
"""A search in this many characters costs one unit of work."""
_LONG: Final = 5_000
"""A search in more characters reserves its time in advance."""
_CHARACTER_S: Final = 2e-7
"""An upper bound of the seconds that a search takes for each character. Python tries each alternative of the pattern at
each character.
"""


class ReadingContext(Struct):
    """The context in which an object is read. Treat it as immutable.

    Args:
        deadline: the deadline that is charged for every value that is read.
        omitted: the paths at which the object's JSON lacks a part of the file: a placeholder for a value that is not
            a text, or a pod template that cannot be decoded.
        is_decoded: whether an API server has decoded the object, so that every value has the declared type.
    """

    deadline: Deadline = field(default_factory=Deadline)
    omitted: Collection[FieldPath] = frozenset()
    is_decoded: bool = False

    def reject(self, value: Any, at: FieldPath) -> None:
        """Raise an error for a value of a wrong type in an object that an API server has decoded; null is allowed.

        Raises:
            TypeError: the object is marked as decoded, but no API server decoded the object.

        """
        if self.is_decoded and value is not None:
            raise TypeError(f"{path_as_text(at)} is of another type")


class Typed:
    """A whole object, or an object inside another object.

    Args:
        json: the object's JSON; {} if the object does not exist.
        at: the path from the root of the whole object.
        reading: the context in which the object is read.
        is_set: whether the object exists.
    """

    def __init__(self, json: Mapping[str, Any], at: FieldPath, reading: ReadingContext, *, is_set: bool = True) -> None:
        self.json = json
        self.at = at
        self.reading = reading
        self.is_set = is_set

    @classmethod
    def of(cls, value: Any, at: FieldPath = (), reading: ReadingContext | None = None) -> Self:
        """Return a JSON object as an object of this type. A value of another type gives a false and empty object."""
        is_set = isinstance(value, dict)
        return cls(value if is_set else {}, at, reading or ReadingContext(), is_set=is_set)

    def __bool__(self) -> bool:
        return self.is_set

    def path(self, *steps: str | int) -> FieldPath:
        """Return the path of something inside the object: `task.path("template", "spec")`."""
        return (*self.at, *steps)

    def has(self, name: str) -> bool:
        """Return whether a field is set, perhaps to a value that is not yet filled in."""
        return self.json.get(name) is not None or (bool(self.reading.omitted) and self.is_omitted(name))

    def is_omitted(self, name: str) -> bool:
        """Return whether a field is set to a value that is not yet filled in."""
        omitted = self.reading.omitted
        return bool(omitted) and (*self.at, name) in omitted

    def differs(self, other: Typed, *names: str) -> bool:
        """Return whether another object differs in one of the fields `names`; without `names`, in any field."""
        if not names:
            return bool(self.json != other.json)
        return any(self.json.get(name) != other.json.get(name) for name in names)

    def charged_list(self, values: Sequence[Item]) -> Items[Item]:
        """Return values of this object as a list that charges each walk, because users can make the list long."""
        return Items(values, self.reading.deadline)

    def is_found_in(self, pattern: Pattern[str], texts: Iterable[str]) -> bool:
        """Return whether a pattern is found in one of these texts of this object; each search is charged."""
        for text in texts:
            self.charge_search(text)
            if pattern.search(text) is not None:
                return True
        return False

    def charge_search(self, text: str, character_s: float = _CHARACTER_S) -> None:
        """Charge a search in a text of this object before it begins, because a search cannot be interrupted. A search
        takes at most `character_s` seconds for each character.
        """
        deadline, length = self.reading.deadline, len(text)
        deadline.left -= 1 + length // _CHARACTERS  # `spend` without a call: a review searches dozens of times
        if deadline.left < 0:
            deadline.check_clock()
        if length > _LONG:
            deadline.check_clock_before_slow_call(length * character_s)
