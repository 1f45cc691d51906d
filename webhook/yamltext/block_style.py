"""A quick reader of YAML in the style of most manifests: one key, item or value a line.

Reads a subset of block style, with collections in brackets that end in their line, and stops at the first line with
anything else: anchors, tags, `<<`, scalars of several lines, tabs, a key that occurs twice. Its values are those of
PyYAML's parser; that parser reads the texts at which it stops. docs/decisions/0008-two-readers-of-yaml.md says why
there are two, and how they are compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.yamltext.block_lines import (
    BELOW,
    BLANK,
    FLOW,
    FOLDED,
    LIST,
    LITERAL,
    MOST_NESTED,
    SCALAR,
    UnsupportedStyleError,
    line,
    read_flow,
)

_BEGUN: Final = re.compile(r"---(?: +(?:#.*)?)?")
_FOREIGN: Final = re.compile("[\x00-\t\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Matches characters that YAML rejects or treats as the end of a line or a byte order mark, and tabs."""
_DEEPEST: Final = MAX_DEPTH - 1
"""How many collections may be open; the other reader reads deeper texts."""
_NOTHING: Final = object()
_ITEM: Final = object()
"""Means that no value follows for a key, or that an item follows."""


def read_block_document(text: str) -> JSON:
    """Return the value of one document, with or without the `---` above it.

    Raises:
        UnsupportedStyleError: it is written in another way, or is wrong; the other reader knows which.
    """
    if _FOREIGN.search(text):
        raise UnsupportedStyleError
    lines = text.split("\n")
    return _read(lines, 1 if _BEGUN.fullmatch(lines[0]) else 0)


def _read(lines: Sequence[str], at: int) -> JSON:  # noqa: PLR0915 - one loop, because calls would take most of its time
    """Return the value of the lines from index `at` on."""
    result: list[JSON] = []
    # the innermost open collection, its column, and whether a value follows
    container: Any = result
    indent, pending = -1, _ITEM
    above: list[tuple[Any, int]] = []
    count = len(lines)
    while at < count:
        column, dashes, key, form, scalar = line(lines[at])
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
                if container.__class__ is list:  # its items are below their key without an indentation
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
    """Return the text of the lines that are indented further than the collection around them, and the next line's
    index.
    """
    at = first
    while at < len(lines) and not lines[at]:
        at += 1
    text = lines[at] if at < len(lines) else ""
    margin = text[: len(text) - len(text.lstrip(" "))]
    if len(margin) <= indent or margin == text:
        raise UnsupportedStyleError
    kept = [""] * (at - first)
    while at < len(lines):
        if lines[at].startswith(margin):
            kept.append(lines[at][len(margin) :])
        elif lines[at].strip(" "):
            break
        else:
            kept.append("")
        at += 1
    if at == len(lines) and kept[-1]:  # the last line break is missing
        raise UnsupportedStyleError
    return "\n".join(kept).rstrip("\n"), at


def _folded(text: str) -> str:
    """Return folded text of lines that all begin at the same column, without blank lines and spaces at their ends."""
    lines = text.split("\n")
    if any(not each or each[0] == " " or each[-1] == " " for each in lines):
        raise UnsupportedStyleError
    return " ".join(lines)
