"""Defines the types of settings: how a text is parsed, and how a default is shown.

A `read` function raises a ValueError such as "is not a size". The caller puts the flag or variable and the value
before this text.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery import releases
from webhook.apimachinery.names import dns1123_label_errors
from webhook.yamltext import input_files

EngineName: TypeAlias = Literal["compiled", "celpy"]
EnforcementAction: TypeAlias = Literal["deny", "warn", "audit"]

_UNITS: Final = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}


class ValueType(Struct, frozen=True, kw_only=True):
    """The type of the value of a setting.

    Attributes:
        metavar: the word for the value in help texts.
        read: parses the text of a flag or variable.
        show: returns the text of a default.
        many: whether the flag may be repeated.
        with_commas: whether a value of the flag may have several names, with commas between them.
        form: `path` if a shell completes file names, `switch` if the flag has no value.
    """

    metavar: str
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str
    many: bool = False
    with_commas: bool = False
    form: Literal["text", "path", "switch"] = "text"


def text_type(metavar: str) -> ValueType:
    """Return the type of any text."""
    return ValueType(metavar=metavar, read=str)


def name_list_type(metavar: str, *, with_commas: bool = False) -> ValueType:
    """Return the type of a list of names. The flag may be repeated, and a variable has commas between the names. With
    `with_commas`, a value of the flag has them too, because no name has a comma.
    """
    return ValueType(metavar=metavar, read=_names, show=", ".join, many=True, with_commas=with_commas)


def file_type(metavar: str = "FILE") -> ValueType:
    """Return the type of a file or folder."""
    return ValueType(metavar=metavar, read=_file, form="path")


def _file(value: str) -> Path:
    if input_files.url_in_place_of_file(value):
        raise ValueError("is an address; write the name of a file")
    return Path(value)


def path_list_type(metavar: str) -> ValueType:
    """Return the type of a list of files or folders. The flag may be repeated. The paths in an environment variable are
    separated as in PATH.
    """
    return ValueType(
        metavar=metavar, read=_paths, show=lambda value: os.pathsep.join(map(str, value)), many=True, form="path"
    )


def whole_number_type(metavar: str, minimum: int, maximum: int | None = None) -> ValueType:
    """Return the type of a whole number within bounds."""
    bounds = f"from {minimum} to {maximum}" if maximum is not None else f"of {minimum} or more"

    def read(value: str) -> int:
        # int() also accepts blanks, underscores and digits of other scripts
        if not re.fullmatch(r"-?[0-9]{1,18}", value) or not minimum <= int(value) <= (maximum or int(value)):
            raise ValueError(f"is not a whole number {bounds}")
        return int(value)

    return ValueType(metavar=metavar, read=read)


def seconds_type(minimum: float) -> ValueType:
    """Return the type of a duration in seconds."""

    def read(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not minimum <= number < math.inf:
            raise ValueError(f"is not a number of {minimum:g} or more seconds")
        return number

    return ValueType(metavar="SECONDS", read=read, show=lambda value: f"{value:g}")


def byte_size_type(minimum: int = 1) -> ValueType:
    """Return the type of a number of bytes, such as `20Mi`."""

    def read(value: str) -> int:
        number = _bytes(value)
        if number < minimum:
            raise ValueError(f"is too small; the minimum is {_shown_bytes(minimum)}")
        return number

    return ValueType(metavar="SIZE", read=read, show=_shown_bytes)


def kubernetes_version_type() -> ValueType:
    """Return the type of a Kubernetes release with known CEL."""
    return ValueType(metavar="1.N", read=releases.parse_supported_release, show=releases.release_as_text)


def namespace_type() -> ValueType:
    """Return the type of the name of a namespace."""

    def read(value: str) -> str:
        if dns1123_label_errors(value):
            raise ValueError("is not the name of a namespace: expected lower case letters, digits and dashes")
        return value

    return ValueType(metavar="NAMESPACE", read=read, show=str)


def choice_type(*allowed: str) -> ValueType:
    """Return the type of one word of a closed set."""

    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"is not one of {', '.join(allowed)}")
        return value

    return ValueType(metavar="|".join(allowed), read=read)


def switch_type() -> ValueType:
    """Return the type of a switch: a flag without a value, and `true` or `false` in a variable."""
    return ValueType(metavar="", read=_switch, show=lambda value: "true" if value else "false", form="switch")


def _paths(value: str) -> tuple[Path, ...]:
    if "://" in value:  # the colon of an address would separate two paths
        raise ValueError("contains an address; write names of files and folders")
    named = tuple(Path(part) for part in value.split(os.pathsep) if part)
    missing = [str(path) for path in named if str(path) != "-" and _does_not_exist(path)]
    if missing:  # reported here with the name of the variable, because users forget that it is set
        which = f"names {', '.join(missing)}, which does" if len(named) > 1 else "does"
        raise ValueError(f"{which} not exist; write files and folders, separated by `{os.pathsep}`")
    return named


def _does_not_exist(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:  # the code that reads the file reports the mistake
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _bytes(value: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,17})(Ki|Mi|Gi|)", value)
    if match is None:
        raise ValueError("is not a size; write bytes, or a number with Ki, Mi or Gi")
    return int(match[1]) << _UNITS[match[2]]


def _shown_bytes(value: int) -> str:
    unit, bits = next((unit, bits) for unit, bits in reversed(_UNITS.items()) if value % (1 << bits) == 0)
    return f"{value >> bits}{unit}"


def _switch(value: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if value.lower() not in words:
        raise ValueError("is not a truth value; write true or false")
    return words[value.lower()]
