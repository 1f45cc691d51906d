"""Uses private parts of msgspec: the messages of its errors, with path and types. pyproject.toml bounds msgspec."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from webhook.errors import DependencyChanged

_SHAPE: Final = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<given>[^`]+)`(?: - at `(?P<path>[^`]+)`)?")


class TypeMismatch(NamedTuple):
    """The wanted and the given type in an error of msgspec, in msgspec's words, and the path ("$" for the root)."""

    wanted: str
    given: str
    path: str


def type_mismatch_in_error(error: msgspec.ValidationError) -> TypeMismatch | None:
    """Return the type mismatch in an error; None for other errors."""
    match = _SHAPE.search(str(error))
    return TypeMismatch(match["wanted"], match["given"], match["path"] or "$") if match else None


def check_installed_version() -> None:
    """Check the wording of the installed msgspec.

    Raises:
        DependencyChanged: the errors have other messages.
    """
    try:
        msgspec.json.decode(b'{"a": [1]}', type=dict[str, list[str]])
    except msgspec.ValidationError as error:
        if type_mismatch_in_error(error) == TypeMismatch("str", "int", "$[...][0]"):
            return
    raise DependencyChanged("msgspec", "the wording of ValidationError")
