"""A value of a wrong type: its path, the value and the expected type."""

from __future__ import annotations

import json
import re
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.text.wording import shown
from webhook.yamltext.unread import Unread


class Mismatch(Struct, frozen=True, kw_only=True):
    """A value of a wrong type. `at` is the path from the root of the object, `expected` describes the type: `a
    list`.
    """

    at: FieldPath
    expected: str
    value: JSON

    @property
    def path(self) -> str:
        """Return the path as users know it."""
        return path_as_text(self.at)

    @property
    def value_as_text(self) -> str:
        """Return a description of the value."""
        return described(self.value)

    @property
    def message(self) -> str:
        """Return the message without the path: ``must be a list, not an object``."""
        return f"must be {self.expected}, not {self.value_as_text}"

    @property
    def fix(self) -> str:
        """Return the fix if only quotes are wrong, else "": YAML reads some texts as other types."""
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
"""Matches texts that have the expected type once their quotes are removed (schema/types.py)."""


def described(value: JSON) -> str:
    """Return a description of a value: ``an object``, ``the string `2 GPUs` ``, ``the number 4``."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, Unread):
        return f"a value that is not read because {value.reason}"
    if isinstance(value, str):
        return f"the string `{shown(value)}`"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"the number {shown(value)}"
