"""Reads YAML documents quickly if they have the style of most manifests: one key, item or value in each line.

This reader accepts a part of block style, and collections in brackets that begin and end in one line. It refuses a
document with anchors, tags, `<<`, plain scalars of several lines, tabs, or a key that occurs twice. PyYAML's parser
then reads the document. Both readers return the same values. docs/decisions/0008-two-readers-of-yaml.md gives the
reasons for two readers.

A line has an indentation, dashes, a key and a value. Each pattern matches less than YAML 1.1 allows. A line that does
not match is an UnsupportedStyleError. Source: YAML 1.1 as libyaml 0.2.5 reads it (src/scanner.c).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.yamltext import scalars

_PLAIN: Final = r"(?:[A-Za-z0-9_/.+$(<~=^;\\]|-(?=[^ ]))(?:[^ :#]++|:(?=[^ ])|(?<! )#| ++(?=[^ #]))*+"
"""Matches a plain scalar in one line that has no ` #` and no `: `, and does not end with `:`."""
_DOUBLE: Final = r'"(?:[^"\\]|\\["\\nt])*+"'
_SINGLE: Final = r"'(?:[^']|'')*+'"
_WORD: Final = r"(?:[A-Za-z0-9_./$]|-(?=[A-Za-z0-9-]))[A-Za-z0-9_./$=-]*+"
_ENTRY: Final = rf"(?:{_WORD}|{_DOUBLE}|{_SINGLE})"
_LIST: Final = rf"\[ *+(?:{_ENTRY} *+(?:, *+{_ENTRY} *+)*+)?\]"
_FLOW_ITEM: Final = rf"(?:{_WORD}(?::(?=[A-Za-z0-9/])[A-Za-z0-9_./$=-]*+)*+|{_DOUBLE}|{_SINGLE})"
_FLOW: Final = rf"(?=[\[{{])(?: *+(?:[\[\]{{}},]|{_FLOW_ITEM}(?::(?= )|(?=[ ,\]}}]))))*+(?<=[\]}}])"
"""Matches a text that may be a collection in brackets. `read_flow` reads the text."""
_KEY: Final = r"""[A-Za-z0-9_./$][A-Za-z0-9_./$-]*+|"[^"\\]++"|'[^']++'"""
_LINE: Final = re.compile(
    rf"( *+)((?:- ++)*+)(?:({_KEY}):(?= |$) *+)?"
    rf"({_DOUBLE}|{_SINGLE}|{_LIST}|\{{\}}|{_FLOW}|\|-?|>-?|-(?= *$)|{_PLAIN})?"
    r" *+(?:(?<![^ ])#.*)?"
)
"""Matches a line: indentation, dashes, key, value and comment. Each of these may be empty."""
_PLAIN_LIST: Final = re.compile(_LIST)
_ITEMS: Final = re.compile(_ENTRY)
_FLOW_TOKEN: Final = re.compile(rf"({_FLOW_ITEM})(: ++)?|([\[\]{{}},])| ++")
_DASH: Final = re.compile(r"- +")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "t": "\t"}
_LONGEST_KEY: Final = 500
"""The most characters of a key: half of the limit of libyaml."""

MOST_NESTED: Final = 8
"""The most levels of nested collections in brackets."""

SCALAR, BELOW, BLANK, LIST, MAP, FLOW, LITERAL, FOLDED = range(8)
"""The kinds of a line's value. BELOW means that the value is in the lines below, or is null."""
_BEGIN: Final = re.compile(r"---(?: +(?:#.*)?)?")
_FOREIGN: Final = re.compile("[\x00-\t\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Matches tabs, ends of lines other than `\\n`, byte order marks, and characters that YAML refuses."""
_DEEPEST: Final = MAX_DEPTH - 1
"""The most open collections. This reader leaves deeper texts to the parser."""
_NOTHING: Final = object()
_ITEM: Final = object()
"""Stands in place of a key if the next value is an item of a list or the whole document."""


def read_block_document(text: str) -> JSON:
    """Return the value of a document, with or without a `---` above it.

    Raises:
        UnsupportedStyleError: the document has another style, or a mistake.
    """
    if _FOREIGN.search(text):
        raise UnsupportedStyleError
    lines = text.split("\n")
    return _read(lines, 1 if _BEGIN.fullmatch(lines[0]) else 0)


def _read(lines: Sequence[str], at: int) -> JSON:  # noqa: PLR0915 - one loop, because calls would take most of its time
    result: list[JSON] = []
    # the innermost open collection, the column where it begins, and the key or _ITEM that waits for a value
    container: Any = result
    indent, pending = -1, _ITEM
    above: list[tuple[Any, int]] = []
    count = len(lines)
    while at < count:
        text = lines[at]
        column, dashes, key, form, scalar = _short(text) if len(text) <= _SHORT else _line(text)
        at += 1
        if form is BLANK:
            continue
        while column < indent:
            if pending is not _NOTHING:
                _put(container, pending, None)
                pending = _NOTHING
            container, indent = above.pop()
        for width in dashes:
            if column > indent or container.__class__ is dict:
                if pending is _NOTHING or len(above) >= _DEEPEST:
                    raise UnsupportedStyleError
                above.append((container, indent))
                container, indent = _put(container, pending, []), column
            elif pending is _ITEM:
                container.append(None)
            pending = _ITEM
            column += width
        if key is not None:
            if column > indent:
                if pending is _NOTHING or len(above) >= _DEEPEST:
                    raise UnsupportedStyleError
                above.append((container, indent))
                container, indent = _put(container, pending, {}), column
            else:
                if pending is not _NOTHING:
                    _put(container, pending, None)
                if container.__class__ is list:  # a list may have the indentation of its key
                    container, indent = above.pop()
                    if column != indent:
                        raise UnsupportedStyleError
            if key in container:
                raise UnsupportedStyleError
            pending = key
        elif not dashes:
            raise UnsupportedStyleError
        if form is SCALAR:
            if pending is _ITEM:
                container.append(scalar)
            else:
                container[pending] = scalar
        elif form is BELOW:
            continue
        elif form is LITERAL or form is FOLDED:
            text, at = _literal(lines, at, indent)
            _put(container, pending, (_folded(text) if form is FOLDED else text) + scalar)
        elif form is FLOW:
            if len(above) >= _DEEPEST - MOST_NESTED:
                raise UnsupportedStyleError
            _put(container, pending, read_flow(scalar))
        else:
            _put(container, pending, list(scalar) if form is LIST else {})
        pending = _NOTHING
    if pending is not _NOTHING:
        _put(container, pending, None)
    return result[0]


def _put(container: Any, key: Any, value: JSON) -> JSON:
    if key is _ITEM:
        container.append(value)
    else:
        container[key] = value
    return value


def _literal(lines: Sequence[str], first: int, indent: int) -> tuple[str, int]:
    """Return the text of the lines with a greater indentation, and the index of the next line."""
    at = first
    while at < len(lines) and not lines[at]:
        at += 1
    text = lines[at] if at < len(lines) else ""
    margin = text[: len(text) - len(text.lstrip(" "))]
    if len(margin) <= indent or margin == text:
        raise UnsupportedStyleError
    text_lines = [""] * (at - first)
    while at < len(lines):
        if lines[at].startswith(margin):
            text_lines.append(lines[at][len(margin) :])
        elif lines[at].strip(" "):
            break
        else:
            text_lines.append("")
        at += 1
    if at == len(lines) and text_lines[-1]:  # the last line break is missing
        raise UnsupportedStyleError
    return "\n".join(text_lines).rstrip("\n"), at


def _folded(text: str) -> str:
    """Return the lines joined by spaces. A blank line, or a space at an end of a line, is an UnsupportedStyleError."""
    lines = text.split("\n")
    if any(not each or each[0] == " " or each[-1] == " " for each in lines):
        raise UnsupportedStyleError
    return " ".join(lines)


class UnsupportedStyleError(Exception):
    """A text has a style that only the parser reads."""


Line: TypeAlias = tuple[int, tuple[int, ...], str | None, int, Any]
"""A parsed line as a tuple:

- the number of spaces at its beginning
- the width of each dash with the spaces after the dash
- the key, or None
- the kind of the value
- the value

The value is a scalar, the items of a list in brackets, or the text of another collection in brackets. If a literal or
folded text follows in the next lines, the value is the line break at the end of that text, or "".
"""
_SHORT: Final = 100
"""The most characters of a cached line. A full cache of 8192 lines takes about 4 MB."""
_BLANK: Final[Line] = 0, (), None, BLANK, None


def line(text: str) -> Line:
    """Return the parsed line. Short lines are cached, because manifests repeat them.

    Raises:
        UnsupportedStyleError: the line has another style.
    """
    return _short(text) if len(text) <= _SHORT else _line(text)


def _line(text: str) -> Line:
    match = _LINE.fullmatch(text)
    if match is None:
        raise UnsupportedStyleError
    indent, dashes, key, written = match.groups()
    if key is None and written is None and not dashes:
        return _BLANK
    widths = tuple(map(len, _DASH.findall(dashes))) if dashes else ()
    if written == "-":
        if key is not None:
            raise UnsupportedStyleError
        widths, written = (*widths, 1), None
    return len(indent), widths, None if key is None else _key(key), *_value(written)


_short = lru_cache(maxsize=8192)(_line)


def _key(written: str) -> str:
    if len(written) > _LONGEST_KEY:
        raise UnsupportedStyleError
    if written[0] in "\"'":
        return written[1:-1]
    try:
        return scalars.key(scalars.resolve(written))
    except ValueError:
        raise UnsupportedStyleError from None


def _value(written: str | None) -> tuple[int, Any]:
    if not written:
        return BELOW, None
    match written[0]:
        case "[" if _PLAIN_LIST.fullmatch(written):
            return LIST, tuple(map(_scalar, _ITEMS.findall(written)))
        case "{" if written == "{}":
            return MAP, None
        case "[" | "{":
            return FLOW, written
        case "|":
            return LITERAL, "\n" * (written == "|")
        case ">":
            return FOLDED, "\n" * (written == ">")
    return SCALAR, _scalar(written)


def read_flow(written: str) -> JSON:
    """Return the value of a collection in brackets that begins and ends in one line.

    Raises:
        UnsupportedStyleError: the text is not a collection, or contains something other than keys, one-word or quoted
            scalars, commas and brackets.
    """
    outermost: list[JSON] = []
    container: Any = outermost
    above: list[tuple[Any, str | None]] = []
    key: str | None = None
    wants_value = True  # a value or key may follow; if false, a comma or a closing bracket must follow
    for match in _FLOW_TOKEN.finditer(written):
        item, colon, mark = match.groups()
        if item is not None:
            if not wants_value:
                raise UnsupportedStyleError
            if colon is not None:
                is_escaped = item[0] in "\"'" and (item[0] in item[1:-1] or "\\" in item)
                if container.__class__ is list or key is not None or is_escaped:
                    raise UnsupportedStyleError
                key = _key(item)
                if key in container:
                    raise UnsupportedStyleError
                continue
            value = _scalar(item)
        elif mark is None:  # only spaces
            continue
        elif mark in "[{":
            if not wants_value or len(above) >= MOST_NESTED:
                raise UnsupportedStyleError
            above.append((container, key))
            container, key = [] if mark == "[" else {}, None
            continue
        elif mark == ",":
            if wants_value:
                raise UnsupportedStyleError
            wants_value = True
            continue
        else:
            is_wrong_end = not above or (mark == "]") is not (container.__class__ is list)
            if is_wrong_end or key is not None or (wants_value and container):
                raise UnsupportedStyleError
            value = container
            container, key = above.pop()
        if container.__class__ is list:
            container.append(value)
        elif key is None:
            raise UnsupportedStyleError
        else:
            container[key], key = value, None
        wants_value = False
    if above or wants_value:
        raise UnsupportedStyleError
    return outermost[0]


def _scalar(written: str) -> Any:
    if written[0] == '"':
        inside = written[1:-1]
        return _ESCAPE.sub(_unescaped, inside) if "\\" in inside else inside
    if written[0] == "'":
        return written[1:-1].replace("''", "'")
    try:
        return scalars.resolve(written)
    except ValueError:
        raise UnsupportedStyleError from None


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])
