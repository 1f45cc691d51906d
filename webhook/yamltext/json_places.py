"""Finds the places of paths of JSON values in their text when they are needed, and the lines there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from webhook.apimachinery.paths import FieldPath
from webhook.yamltext import jsontext
from webhook.yamltext.ignore_comments import IgnoreComment
from webhook.yamltext.places import LONGEST_SHOWN, Places, places_of_json
from webhook.yamltext.source_line import SourceLine, Words, offset_of_word

_MOST_LISTS: Final = 8
"""A value inside more lists than these has the place of the list around it: no API of Kubernetes has so many."""


_MOST_BLANKS: Final = 1000
"""Blanks around a colon: real files have fewer."""


class JsonPlaces(Struct):
    """The places in one JSON text. `text` is the whole text; `at` is always the offset of a value in it."""

    text: str
    lines: list[int] | None = None
    has_repeated: bool = False
    items: dict[tuple[int, FieldPath], list[int]] = field(default_factory=dict)
    """The offsets of the items of a list, because a dump of a cluster is one list with thousands of items."""
    shown: dict[int, Places | None] = field(default_factory=dict)
    """The objects whose lines were shown; None if one is too long."""

    def position(self, at: int, path: FieldPath = (), words: Words = ()) -> tuple[int, int]:
        """Return line and column, from 1, of a path of the value at an offset, or of its nearest existing ancestor.

        `words`: the place of the first of them that is in the field counts instead.
        """
        if self.lines is None:
            self.lines = [0, *(index + 1 for index, character in enumerate(self.text) if character == "\n")]
        offset = self._offset(at, path)
        if words and path:
            value = self._value_of_key(offset) if isinstance(path[-1], str) else offset
            written = self.text[value : jsontext.end_of_value(self.text, value, LONGEST_SHOWN) or value]
            of_words = [value + inside for word in words if (inside := offset_of_word(written, word)) >= 0]
            offset = of_words[0] if of_words else offset
        line = bisect_right(self.lines, offset)
        return line, offset - self.lines[line - 1] + 1

    def source_line(self, at: int, path: FieldPath = (), words: Words = ()) -> SourceLine | None:
        """Return the line of that place; None if the object is too long."""
        first, begins = self.position(at)
        if at not in self.shown:
            end = jsontext.end_of_value(self.text, at, LONGEST_SHOWN)
            self.shown[at] = places_of_json(self.text[at:end], begins) if end else None
        places = self.shown[at]
        line, column = self.position(at, path, words)
        return places.line_at(0, line - first + 1, column) if places else None

    def ignore_comments(self, line: int) -> Sequence[IgnoreComment]:
        """Return nothing, because JSON has no comments."""
        del line
        return ()

    def _value_of_key(self, offset: int) -> int:
        """Return the offset of the value with its key at an offset, or of the value there if it is not a key."""
        end = jsontext.end_of_value(self.text, offset, LONGEST_SHOWN) or offset
        rest = self.text[end : end + _MOST_BLANKS]
        is_key = self.text[offset : offset + 1] == '"' and rest.lstrip()[:1] == ":"
        return end + len(rest) - len(rest.lstrip(" \t\r\n:")) if is_key else offset

    def _offset(self, at: int, path: FieldPath) -> int:
        """Return the offset of a place. The items of each list on the way are looked for once, so very many places in
        one list cost one walk over the text for each list around it.
        """
        if self.has_repeated:
            return jsontext.offset_at_path(self.text, at, path, has_repeated=True)
        lists = [length for length, step in enumerate(path) if isinstance(step, int)]
        if len(lists) > _MOST_LISTS:
            path, lists = path[: lists[_MOST_LISTS]], lists[:_MOST_LISTS]
        known = next((place for place in reversed(range(len(lists))) if (at, path[: lists[place]]) in self.items), 0)
        begin, done = at, 0
        for length in lists[known:]:
            above, index = (at, path[:length]), int(path[length])
            if above not in self.items:
                self.items[above] = jsontext.item_offsets(self.text, begin, path[done:length])
            if not 0 <= index < len(self.items[above]):
                return jsontext.offset_at_path(self.text, at, path[:length])
            begin, done = self.items[above][index], length + 1
        return jsontext.offset_at_path(self.text, begin, path[done:])
