"""Defines a line of a file for reports, with the place of a finding. A long line is cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.yamltext.confidential import HIDDEN

_MOST: Final = 240
"""The most characters of a line that are kept. A JSON document may be one line of a megabyte."""
_BEFORE: Final = 40
"""The most characters before the place in a cut line."""
_MORE: Final = "…"
_WORD: Final = re.compile(r"""- |"(?:[^"\\]|\\.)*"|'[^']*'|[^\s:,\[\]{}"']+|.""")

Columns: TypeAlias = tuple[int, int]
"""The beginning and the end of a part of a line, in characters from 0."""


class SourceLine(Struct, frozen=True):
    """A line without its indentation. `column` counts from 1. `length` is the length of the marked key or item."""

    text: str
    column: int
    length: int = 1

    def within(self, width: int) -> SourceLine:
        """Return the line cut to this number of characters, around the place."""
        if len(self.text) <= width:
            return self
        width_of_text = max(width - 2 * len(_MORE), 1)
        start = max(0, min(self.column - 1 - min(_BEFORE, width_of_text // 3), len(self.text) - width_of_text))
        before = _MORE if start else ""
        after = _MORE if start + width_of_text < len(self.text) else ""
        column = self.column - start + len(before)
        text = f"{before}{self.text[start : start + width_of_text]}{after}"
        return SourceLine(text, column, max(1, min(self.length, len(text) - len(after) - column + 1)))


class Place(Struct, frozen=True, kw_only=True):
    """The place of a finding in the input. Line and column count from 1, and 0 is unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def file_line_and_column(self) -> str:
        """Return `FILE:LINE:COLUMN`, as editors and terminals read it."""
        return f"{self}:{self.column}" if self.line and self.column else str(self)


Words: TypeAlias = tuple[str, ...]
"""Wrong words in a field. The first of them is the place of a finding about the field."""

Locate: TypeAlias = Callable[[str, Words], Place]
"""Returns the place of a printed path, or of a word in its field."""

FindLine: TypeAlias = Callable[[str, Words], SourceLine | None]
"""Returns the line of a printed path; None if no line can be shown."""


def offset_of_word(text: str, word: str) -> int:
    """Return the offset of a whole word; -1 if the text does not have the word. `_` and `-` are equal, as in flags."""
    text, word = text.replace("_", "-"), word.replace("_", "-")
    at = text.find(word)
    while at >= 0 and (_continues(text[at - 1 : at]) or _continues(text[at + len(word) : at + len(word) + 1])):
        at = text.find(word, at + 1)
    return at


def _continues(character: str) -> bool:
    return character == "-" or character.isalnum()


def source_line(text: str, column: int, confidential: Iterable[Columns]) -> SourceLine:
    """Return the line for reports, with confidential parts hidden. `column` counts from 1."""
    parts: list[str] = []
    end, moved = 0, column - 1
    for start, stop in confidential:
        parts += text[end:start], HIDDEN
        if stop < column:
            moved += len(HIDDEN) - (stop - start)
        elif start < column:
            moved += start - (column - 1)
        end = max(end, stop)
    shown = "".join((*parts, text[end:])).replace("\t", " ").rstrip()
    indent = min(len(shown) - len(shown.lstrip()), moved)
    word = _WORD.match(shown, moved)
    return SourceLine(shown[indent:], moved - indent + 1, len(word[0].rstrip()) if word else 1).within(_MOST)
