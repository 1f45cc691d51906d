"""Reads the documents of a YAML text with the quick reader of block_style.py. The parser reads the documents that the
quick reader refuses.

A line that begins with `---` always begins a document (YAML 1.1, l-forbidden in 1.2). So documents can be separated
without the parser, except in a text with directives, `...` or rare ends of lines. The parser reads such a text whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.yamltext import block_style
from webhook.yamltext.block_style import UnsupportedStyleError
from webhook.yamltext.places import Extent, Places
from webhook.yamltext.reading import YamlError, parse_documents

_BEGINS: Final = re.compile(r"\n---(?=\s|$)", re.MULTILINE)
"""Matches the end of a line and the beginning of a document below it."""
_FOR_PARSER: Final = ("%", "...")
"""The beginnings of lines that only a parser reads: directives, and ends of documents."""
_FOR_PARSER_ANYWHERE: Final = (*(f"\n{each}" for each in _FOR_PARSER), "\r", "\x85", "\u2028", "\u2029")
"""The beginnings of `_FOR_PARSER` below the first line, and characters that end a line only in YAML."""
_BEFORE: Final = re.compile(r"(?:---[^\n]*\n)?(?: *(?:#[^\n]*)?\n)*( *)")
"""Matches the text before the value of a document in block style."""


def read_documents(places: Places, repeated: list[YamlError]) -> Iterator[tuple[int, JSON]]:
    """Yield every document of a text with its number in the stream. Some empty documents are left out.

    Args:
        places: contains the text, and gets the extents of the documents.
        repeated: gets an error for each repeated key that matters. kubectl v1.36 uses the last value of the key.

    Raises:
        YamlError: the text cannot be read.
    """
    if places.words_are_text or _needs_parser(places.text):
        yield from parse_documents(places, repeated)
        return
    above = 0
    for start, end in pairwise(_starts(places.text)):
        part = places.text[start:end]
        yield from _part(places, part, start, above, repeated)
        above += part.count("\n")


def split_documents(text: str) -> tuple[str, ...]:
    """Return the documents of a text, each with the `---` above it; () if only a parser can separate them."""
    return () if _needs_parser(text) else tuple(text[start:end] for start, end in pairwise(_starts(text)))


def _needs_parser(text: str) -> bool:
    """Return whether only a parser can separate the documents of a text. A regular expression would be much slower."""
    return text.startswith(_FOR_PARSER) or any(each in text for each in _FOR_PARSER_ANYWHERE)


def _starts(text: str) -> list[int]:
    return [0, *(match.start() + 1 for match in _BEGINS.finditer(text)), len(text)]


def _part(places: Places, part: str, start: int, above: int, repeated: list[YamlError]) -> Iterator[tuple[int, JSON]]:
    """Yield the documents of a part that begins at character `start`, below `above` lines."""
    number = len(places.extents)
    try:
        value = block_style.read_block_document(part)
    except UnsupportedStyleError:
        yield from _parse_part_with_shifted_places(places, part, start, above, repeated)
        return
    before = _BEFORE.match(part)
    assert before is not None
    place = above + part.count("\n", 0, before.start(1)), len(before[1])
    places.extents[number] = Extent(start, start + len(part), above, 0, place)
    yield number, value


def _parse_part_with_shifted_places(
    places: Places, part: str, start: int, above: int, repeated: list[YamlError]
) -> Iterator[tuple[int, JSON]]:
    """Parse only the part, and make places and errors count in the whole text."""
    inside, repeated_in_part = Places(part, refuses_repeats=places.refuses_repeats), list[YamlError]()
    try:
        for at, value in parse_documents(inside, repeated_in_part):
            number, extent = len(places.extents), inside.extents[at]
            places.extents[number] = extent.moved(start, above)
            yield number, value
    except YamlError as error:
        raise error.with_lines_above(above) from None
    finally:
        repeated.extend(each.with_lines_above(above) for each in repeated_in_part)
