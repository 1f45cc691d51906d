"""Knows the width, colours and symbols of the screen to which a report is printed.

Follows no-color.org (`NO_COLOR`), force-color.org (`FORCE_COLOR`) and terminfo's `dumb`.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from typing import Final, Literal, Protocol, TextIO, TypeAlias, runtime_checkable

from msgspec import Struct

from webhook.report.finding import Result
from webhook.text import terminal

_LEAST_WIDTH: Final = 40
_CONTINUATION: Final = "  "
"""The indentation of continuation lines of a text without indentation."""
_SIMPLE: Final = ("dumb", "linux")
"""Terminals with little more than ASCII. `dumb` also has no colours."""
Style: TypeAlias = Literal["", "bold", "dim", "red", "green", "yellow", "blue", "cyan"]
_CODES: Final[Mapping[str, int]] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}
"""Select Graphic Rendition (ECMA-48 8.3.117)."""
_SYMBOLS: Final = {"pass": "✔v", "fail": "✖x", "warn": "⚠!", "error": "‼E", "skip": "○?", "advice": "▸i"}
_STYLES: Final[Mapping[str, Style]] = {
    "pass": "green",
    "fail": "red",
    "warn": "yellow",
    "error": "red",
    "skip": "blue",
    "advice": "cyan",
}


class Screen(Struct, frozen=True, kw_only=True):
    """The properties of a screen. `width` is in characters. 0 means no limit, as for a file or a pipe."""

    width: int = 0
    is_colored: bool = False
    is_unicode: bool = True

    def styled(self, text: str, style: Style) -> str:
        """Return a text in a style. The text must have no control characters."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.is_colored and style else text

    def symbol_of_result(self, result: str) -> str:
        return self.styled(_SYMBOLS[result][0 if self.is_unicode else 1], _STYLES[result])

    def result_with_symbol(self, result: str) -> str:
        word = self.styled(result, _STYLES[result])
        return f"{self.symbol_of_result(result)} {word}"

    def wrapped(self, text: str, indent: str, hanging: str = "") -> list[str]:
        """Return a text in lines that fit. Words are never cut.

        CI systems read some lines as commands. So continuation lines are indented, and each line is escaped.

        `text` is one line. `indent` is written before each line, and `hanging` after it in all lines except the first.
        """
        if not self.width:
            return [terminal.one_line(indent + text)]
        lines = textwrap.wrap(
            text,
            max(self.width, _LEAST_WIDTH),
            initial_indent=indent,
            subsequent_indent=indent + hanging or _CONTINUATION,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [terminal.one_line(line) for line in lines]


PLAIN: Final = Screen()
"""The screen for a file: no colours, and lines of any length."""


@runtime_checkable
class ScreenAwareWriter(Protocol):
    """A writer with output that depends on the screen."""

    def use_screen(self, screen: Screen) -> None:
        """Use this screen from now on."""
        ...


def screen_of(stream: TextIO, variables: Mapping[str, str] = os.environ) -> Screen:
    """Return the screen of a stream. Reads the variables NO_COLOR, FORCE_COLOR, TERM and COLUMNS."""
    is_terminal, term = stream.isatty(), variables.get("TERM", "")
    is_colored = is_terminal and term != "dumb"
    if variables.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        is_colored = True
    encoding = (getattr(stream, "encoding", "") or "utf-8").lower().replace("-", "")
    return Screen(
        width=_width_of_screen(stream, variables, is_terminal=is_terminal),
        is_colored=is_colored and not variables.get("NO_COLOR"),
        is_unicode=encoding.startswith("utf") and not (is_terminal and term in _SIMPLE),
    )


def _width_of_screen(stream: TextIO, variables: Mapping[str, str], *, is_terminal: bool) -> int:
    """Return the width from COLUMNS, or from the terminal; 0 for other streams."""
    columns = variables.get("COLUMNS", "")
    if columns.isdecimal():
        return int(columns)
    if not is_terminal:
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def result_word(result: Result, *, is_advice: bool) -> str:
    """Return the word for a result. Advice is a warning that is not counted."""
    return "advice" if is_advice and result is Result.WARN else str(result)
