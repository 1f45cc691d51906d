"""A value that is not of its type: where it stands, what is there and what must be."""

from __future__ import annotations

import json
from dataclasses import dataclass

from webhook.attributes import JSON
from webhook.paths import FieldPath, render
from webhook.wording import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """`at` is the path from the root of the object, `expected` says in words what must stand there: `a list`."""

    at: FieldPath
    expected: str
    value: JSON

    @property
    def path(self) -> str:
        """The path as users know it."""
        return render(self.at)

    @property
    def shown(self) -> str:
        """What stands there, in words."""
        return described(self.value)

    @property
    def message(self) -> str:
        """What is wrong, without the path: ``must be a list, not an object``."""
        return f"must be {self.expected}, not {self.shown}"


def described(value: JSON) -> str:
    """A value of the wrong type in words: ``an object``, ``the string `2 GPUs` ``, ``the number 4``."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the string `{shown(value)}`"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"the number {shown(value)}"
