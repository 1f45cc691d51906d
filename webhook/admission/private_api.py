"""Uses the private parts of msgspec: the texts of its errors, which contain path and types.

pyproject.toml bounds msgspec.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from webhook.errors import DependencyChanged

_SHAPE: Final = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<given>[^`]+)`(?: - at `(?P<path>[^`]+)`)?")


class TypeMismatch(NamedTuple):
    """The type mismatch in an error of msgspec: both types in the words of msgspec, and the path, "$" for the
    root.
    """

    wanted: str
    given: str
    path: str


def type_mismatch_in_error(error: msgspec.ValidationError) -> TypeMismatch | None:
    """Return the type mismatch in an error, None if the error is about something else."""
    match = _SHAPE.search(str(error))
    return TypeMismatch(match["wanted"], match["given"], match["path"] or "$") if match else None


def check_installed_version() -> None:
    """Check that the errors of the installed msgspec have the expected wording.

    Raises:
        DependencyChanged: the errors have another wording.
    """
    try:
        msgspec.json.decode(b'{"a": [1]}', type=dict[str, list[str]])
    except msgspec.ValidationError as error:
        if type_mismatch_in_error(error) == TypeMismatch("str", "int", "$[...][0]"):
            return
    raise DependencyChanged("msgspec", "the wording of ValidationError")
