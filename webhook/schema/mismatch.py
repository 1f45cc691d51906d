"""A value that is not of its type: where it stands, what is there and what must be."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON
from webhook.paths import FieldPath, path_as_text
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
        return path_as_text(self.at)

    @property
    def shown(self) -> str:
        """What stands there, in words."""
        return described(self.value)

    @property
    def message(self) -> str:
        """What is wrong, without the path: ``must be a list, not an object``."""
        return f"must be {self.expected}, not {self.shown}"

    @property
    def fix(self) -> str:
        """What to do where the value is right but for its quotes, else "": YAML makes other types of such texts."""
        if self.expected == "a string":
            if isinstance(self.value, bool):
                return "put it in quotes, because YAML reads words such as yes, no, on and off as true or false"
            return "put it in quotes" if isinstance(self.value, int | float) else ""
        unquoted = _UNQUOTED.get(self.expected)
        is_meant = unquoted and isinstance(self.value, str) and unquoted.fullmatch(self.value)
        return "write it without quotes" if is_meant else ""


_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_UNQUOTED: Final = {
    "a whole number": _WHOLE,
    "a whole number of 32 bits": _WHOLE,
    "true or false": re.compile("true|false"),
}
"""What a text must be to be of another type without its quotes, by what is expected (schema/types.py)."""


def described(value: JSON) -> str:
    """A value of the wrong type in words: ``an object``, ``the string `2 GPUs` ``, ``the number 4``."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the string `{shown(value)}`"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"the number {shown(value)}"
