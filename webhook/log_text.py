"""A log line as text for people: time, level, message, then `name=value` for each field.

Values that are more than a word are JSON, so that a line can be split into its fields again. Always one line: what a
name holds is shown and never obeyed (terminal.py). Knows nothing of what is logged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from webhook.terminal import escape_json_text, one_line

_WORD: Final = re.compile(r"[^\s\"'=\[\]{}\\]+")
_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str).encode
_LEVEL: Final = 7
"""Characters of the longest level, `warning`: messages stand below each other."""


def log_line_as_text(fields: Mapping[str, Any]) -> str:
    """Return one line without a line break.

    Args:
        fields: `time`, `level` and `message` first, then the others.
    """
    head = f"{fields['time']} {fields['level']:<{_LEVEL}} {one_line(str(fields['message']))}"
    named = (
        f"{name}={_field_value_as_text(value)}"
        for name, value in fields.items()
        if name not in ("time", "level", "message")
    )
    return " ".join((head, *named))


def _field_value_as_text(value: Any) -> str:
    if isinstance(value, str) and _WORD.fullmatch(value) and value.isprintable():
        return one_line(value)
    return escape_json_text(_AS_JSON(value))
