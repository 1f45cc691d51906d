"""Writes numbers, lists and values in sentences. Only this module makes plurals of words.

apimachinery/attributes.py makes the resource names of kinds, such as `pytorchjobs`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

_LONGEST: Final = 60
_OTHER: Final = re.compile(r"\s*|[-+]?[0-9][0-9._]*|true|false|null|~")  # a text that YAML would read as another value


def counted(count: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun: `1 object`, `2 objects`, `3 policies`.

    `plural` is for a noun that does not add an s.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def named(names: Sequence[str], noun: str, plural: str = "") -> str:
    """Write names after their noun: `policy a`, `policies a, b`."""
    return f"{noun if len(names) == 1 else plural or f'{noun}s'} {', '.join(names)}"


def some_of(names: Sequence[str], most: int) -> str:
    """Write the first of many names, and the number of the others: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def either(choices: Iterable[str]) -> str:
    """Write alternatives: `a, b or c`."""
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(name: str, otherwise: str) -> str:
    """Return the fix for an unknown name: a similar known name, or else `otherwise`."""
    return f"did you mean `{name}`?" if name else otherwise


def change(before: object, after: object) -> str:
    """Describe a forbidden change: `cannot change from `a` to `b``; "" and None mean no value."""
    if before in (None, ""):
        return "cannot be added"
    return "cannot be removed" if after in (None, "") else f"cannot change from `{before}` to `{after}`"


def shown(value: object) -> str:
    """Return a value as JSON on one line, shortened; a text has quotes only if it looks like another value."""
    is_plain = isinstance(value, str) and not _OTHER.fullmatch(value)
    text = str(value) if is_plain else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split()) if is_plain else text.replace("\n", " ")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
