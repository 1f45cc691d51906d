"""Finds the places of paths in YAML documents and in JSON texts, and the lines at these places. Nothing is computed
before a caller asks for a place.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any, Final, NamedTuple

import yaml
from msgspec import Struct
from msgspec import field as struct_field

from webhook.apimachinery.paths import FieldPath
from webhook.yamltext import jsontext, scalars
from webhook.yamltext.confidential import Span, confidential_spans
from webhook.yamltext.ignore_comments import MARK, IgnoreComment, ignore_comments
from webhook.yamltext.source_line import Columns, SourceLine, Words, offset_of_word, source_line

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LONGEST_SHOWN: Final = 1 << 20
"""The most characters of a document with shown lines. Before a line is shown, all nodes of the document are
visited to find confidential values.
"""
_MOST_SCALARS: Final = 5000
"""The most scalars of a field in which words are searched."""
_COMMANDS: Final = ("command", "args")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""Matches the end of a line in YAML 1.1 (b-break)."""


class Extent(NamedTuple):
    """The beginning of a document with its directives, its end in characters, and the place of its value.

    Lines and columns count from 0.
    """

    start: int
    end: int
    line: int
    column: int
    place: tuple[int, int]

    def moved(self, characters: int, lines: int) -> Extent:
        """Return the extent below this number of additional characters and lines."""
        line, column = self.place
        return Extent(
            self.start + characters, self.end + characters, self.line + lines, self.column, (line + lines, column)
        )


def places_of_json(text: str, column: int) -> Places:
    """Return the places of one JSON value that begins at this column, from 1.

    The YAML loader reads the value, with U+FFFD in place of surrogates, which YAML does not allow. Shown lines keep the
    surrogates.
    """
    padded = " " * (column - 1) + text
    extents = {0: Extent(0, len(padded), 0, 0, (0, column - 1))}
    return Places(_SURROGATE.sub(r"\\ufffd", padded), extents, lines=_BREAK.split(padded))


@dataclass(slots=True)
class Places:
    """The places of all paths in a text's documents.

    Attributes:
        extents: the extent of each document, by its number.
        nodes: the nodes of each document with a requested place. Other documents have no nodes: the nodes of a custom
            resource definition of some MB would take seconds and gigabytes.
        words_are_text: whether a plain `on` or `yes` is a text, as in YAML 1.2.
        refuses_repeats: whether the program that reads the text refuses a repeated key.
    """

    text: str
    extents: dict[int, Extent] = field(default_factory=dict, repr=False)
    nodes: dict[int, Any] = field(default_factory=dict, repr=False)
    lines: list[str] | None = field(default=None, repr=False)
    confidential: dict[int, list[Span]] = field(default_factory=dict, repr=False)
    comments: Mapping[int, Sequence[IgnoreComment]] | None = field(default=None, repr=False)
    words_are_text: bool = False
    refuses_repeats: bool = False

    def position(self, at: int, path: FieldPath = (), words: Words = ()) -> tuple[int, int]:
        """Return line and column, from 1, of a path of the document with this number, or of its nearest ancestor.

        If the field contains one of `words`, return the place of the first such word.
        """
        extent = self.extents[at]
        line, column = extent.place
        node = self._node(at) if path else None
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            mark, node = child
            line, column = extent.line + mark.line, mark.column
        is_searched = words and path and extent.end - extent.start <= LONGEST_SHOWN
        place = self._place_of_word(node, words, extent.start - extent.column) if is_searched else None
        if place is not None:
            line, column = extent.line + place[0], place[1]
        return line + 1, column + 1

    def _place_of_word(self, node: Any, words: Words, begin: int) -> tuple[int, int] | None:
        """Return line and column, from 0, of the first of `words` in a scalar below a node. Scalars of commands are
        searched first.

        The marks of the node count from the offset `begin`.
        """
        searched = islice(_scalars_below(node), _MOST_SCALARS)
        ordered = [scalar for _, scalar in sorted(searched, key=lambda each: not each[0])]
        for word in words:
            for scalar in ordered:
                start = scalar.start_mark
                written = self.text[begin + start.index : begin + scalar.end_mark.index]
                at = offset_of_word(written, word)
                if at >= 0:
                    above = _BREAK.split(written[:at])
                    return start.line + len(above) - 1, len(above[-1]) + (start.column if len(above) == 1 else 0)
        return None

    def source_line(self, at: int, path: FieldPath = (), words: Words = ()) -> SourceLine | None:
        """Return the line at the place of `position`, without confidential values; None for a long document."""
        return self.line_at(at, *self.position(at, path, words))

    def ignore_comments(self, line: int) -> Sequence[IgnoreComment]:
        """Return the comments about a line, from 1, that ask for an exception."""
        if self.comments is None:
            self.comments = ignore_comments(_BREAK.split(self.text)) if MARK in self.text else {}
        return self.comments.get(line, ())

    def line_at(self, at: int, line: int, column: int) -> SourceLine | None:
        """Return the line at a known place of a document, without confidential values; None for a long document."""
        extent = self.extents[at]
        if extent.end - extent.start > LONGEST_SHOWN or (node := self._node(at)) is None:
            return None
        if at not in self.confidential:
            self.confidential[at] = confidential_spans(node)
        if self.lines is None:
            self.lines = _BREAK.split(self.text)
        text = self.lines[line - 1]
        return source_line(text, column, columns_within_line(self.confidential[at], line - 1 - extent.line, len(text)))

    def _node(self, at: int) -> Any:
        if at not in self.nodes:
            extent = self.extents[at]
            self.nodes[at] = _composed(" " * extent.column + self.text[extent.start : extent.end])
        return self.nodes[at]


def _scalars_below(node: Any) -> Iterator[tuple[bool, Any]]:
    """Yield the scalars of a node in order, each once. The boolean says whether a scalar is a word of a command."""
    seen: set[int] = set()
    waiting = [(False, node)]
    while waiting:
        is_command, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield is_command, node
        elif isinstance(node, yaml.MappingNode):
            waiting += [(is_command or key.value in _COMMANDS, value) for key, value in reversed(node.value)]
        else:
            waiting += [(is_command, item) for item in reversed(node.value)]


def columns_within_line(spans: list[Span], line: int, length: int) -> Iterator[Columns]:
    """Yield the columns of a line that are in spans. The line counts from 0."""
    first = bisect_left(spans, line, key=lambda span: span.last_line)
    for span in takewhile(lambda span: span.line <= line, islice(spans, first, None)):
        start = span.column if span.line == line else 0
        end = span.last_column if span.last_line == line else length
        if start < end:
            yield start, min(end, length)


def _composed(document: str) -> Any:
    try:
        return yaml.compose(document, Loader=LOADER)
    except yaml.composer.ComposerError:
        with suppress(yaml.YAMLError):  # the loader in Python refuses tabs that libyaml accepts
            return yaml.compose(document, Loader=_RepeatedAnchorLoader)
        return None
    except yaml.YAMLError:  # JSON with a character that YAML does not allow
        return None


class _RepeatedAnchorLoader(yaml.SafeLoader):
    """Composes texts that define an anchor twice, which PyYAML refuses. An alias means the last anchor above it."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if not self.check_event(yaml.AliasEvent):
            self.anchors.pop(self.peek_event().anchor, None)  # type: ignore[no-untyped-call]  # the stubs lack it
        return super().compose_node(parent, index)


def _child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """Return the mark of a key or an item, and the node of its value; None if the node has no such key or item."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    if not isinstance(node, yaml.MappingNode) or isinstance(step, int):
        return None
    child = None
    for key, value in node.value:  # the last of repeated keys counts; a key with nothing but a tag is an empty text
        if _is_merge(key):
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            child = next(filter(None, (_child(source, step) for source in sources)), child)
        elif (scalars.key(scalars.resolve(key.value)) if key.value and not key.style else key.value) == step:
            child = key.start_mark, value
    return child


def _is_merge(scalar: Any) -> bool:
    return scalar.value == "<<" and not scalar.style


_MOST_LISTS: Final = 8
"""The most nested lists on a path. Any value inside more lists gets the place of a list above the value. No API of
Kubernetes nests so many lists.
"""


_MOST_BLANKS: Final = 1000
"""The most blanks around a colon. Real files have fewer."""


class JsonPlaces(Struct):
    """The places in one JSON text. `text` is the whole text. The `at` of a method is the offset of a value."""

    text: str
    lines: list[int] | None = None
    has_repeated: bool = False
    items: dict[tuple[int, FieldPath], list[int]] = struct_field(default_factory=dict)
    """The offsets of the items of each list, by the offset of the value and the path of the list."""
    shown: dict[int, Places | None] = struct_field(default_factory=dict)
    """The places in each object with shown lines, by the object's offset. None means that the object is too long."""

    def position(self, at: int, path: FieldPath = (), words: Words = ()) -> tuple[int, int]:
        """Return line and column, from 1, of a path of the value at an offset, or of its nearest ancestor.

        If the field contains one of `words`, return the place of the first such word.
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
        """Return the line at the place of `position`; None if the object is too long."""
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
        """Return the offset of the value if a key is at `offset`. Otherwise return `offset`."""
        end = jsontext.end_of_value(self.text, offset, LONGEST_SHOWN) or offset
        rest = self.text[end : end + _MOST_BLANKS]
        is_key = self.text[offset : offset + 1] == '"' and rest.lstrip()[:1] == ":"
        return end + len(rest) - len(rest.lstrip(" \t\r\n:")) if is_key else offset

    def _offset(self, at: int, path: FieldPath) -> int:
        """Return the offset of a path. The offsets of the items of a list are stored. So the text of a long list, such
        as the dump of a cluster, is read only once.
        """
        if self.has_repeated:
            return jsontext.offset_at_path(self.text, at, path, has_repeated=True)
        lists = [length for length, step in enumerate(path) if isinstance(step, int)]
        if len(lists) > _MOST_LISTS:
            path, lists = path[: lists[_MOST_LISTS]], lists[:_MOST_LISTS]
        index_of_nearest = next(
            (place for place in reversed(range(len(lists))) if (at, path[: lists[place]]) in self.items), 0
        )
        begin, done = at, 0
        for length in lists[index_of_nearest:]:
            above, index = (at, path[:length]), int(path[length])
            if above not in self.items:
                self.items[above] = jsontext.item_offsets(self.text, begin, path[done:length])
            if not 0 <= index < len(self.items[above]):
                return jsontext.offset_at_path(self.text, at, path[:length])
            begin, done = self.items[above][index], length + 1
        return jsontext.offset_at_path(self.text, begin, path[done:])
