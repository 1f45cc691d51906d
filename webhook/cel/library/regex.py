r"""Regular expressions in RE2's syntax and linear time: kubernetes.regex, and the matcher of the standard `matches`.

Source: k8s.io/apiserver v0.36.1 pkg/cel/library/regex.go. RE2 through its lowest call: the public `search` of
google-re2 costs ten times as much. A pattern that is written in the expression is compiled once with it; patterns that
come from data go through a bounded cache.

string.find(string) -> string
    The first match, '' if there is none.

    'abc 123'.find('[0-9]+') // '123'
    'abc'.find('[0-9]+') // ''
    'abc'.find(dyn('(')) // error: Illegal regex: missing ): (

string.findAll(string) -> list(string)
    All matches that do not overlap.

    '123 abc 456'.findAll('[0-9]+') // ['123', '456']
    'abc'.findAll('[0-9]+') // []
    'abc'.findAll(dyn('*')) // error: Illegal regex: no argument for repetition operator: *

string.findAll(string, int) -> list(string)
    As many matches at most; a negative number means all.

    '1 2 3'.findAll('[0-9]', 2) // ['1', '2']
    '1 2 3'.findAll('[0-9]', -1) // ['1', '2', '3']
    'abc'.findAll(dyn('\\q'), 1) // error: Illegal regex: invalid escape sequence: \q
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.types import INT, STRING, list_of
from webhook.errors import EvaluationError

CACHED_PATTERNS = 512
"""How many compiled patterns are kept; one takes about 10 KB, and RE2 lets none grow over 8 MB."""

MAX_SCANNED = 4_000_000_000
"""Bytes that findAll may come to scan in the worst case, when each match looks to the end of the text: some seconds."""

_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # RE2 has \C, Go's regexp and so the API server have not


@lru_cache(maxsize=CACHED_PATTERNS)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern to a predicate on text: `matches` with a constant pattern.

    Raises:
        ValueError: not a pattern; the text says what is wrong with it.

    """
    search = _compiled(pattern)

    def matched(text: str) -> bool:
        data = text.encode("utf-8", "replace")
        return search(data, 0, len(data))[0][0] >= 0

    return matched


@lru_cache(maxsize=CACHED_PATTERNS)
def _compiled(pattern: str) -> Callable[[bytes, int, int], list[tuple[int, int]]]:
    from re2 import Options, _re2

    options = Options()
    options.never_capture = True
    options.log_errors = False
    program = _re2.RE2(pattern.encode("utf-8", "replace"), options)
    if not program.ok():
        raise ValueError(program.error().decode(errors="replace"))
    if _ANY_BYTE.search(pattern):
        raise ValueError("invalid escape sequence: \\C")
    match, unanchored = program.Match, _re2.RE2.Anchor.UNANCHORED
    return lambda data, start, end: match(unanchored, data, start, end)


def matches(text: str, pattern: str) -> bool:
    """The pattern is found somewhere in the text: the standard function, for patterns that come from data."""
    try:
        matched = matcher(pattern)
    except ValueError as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None
    return matched(text)


def find(text: str, pattern: str) -> str:
    """The first match, or ''."""
    return next(_found(text, pattern), "")


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches that do not overlap, or the first `limit` of them."""
    results: list[str] = []
    if limit == 0:
        return results
    for place, match in enumerate(_found(text, pattern), 1):
        results.append(match)
        if place == limit:
            break
    return results


def _found(text: str, pattern: str) -> Iterator[str]:
    """The matches from left to right; an empty one directly after a match does not count (Go regexp.FindAll)."""
    try:
        search = _compiled(pattern)
    except ValueError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
    data = text.encode("utf-8", "replace")
    size = len(data)
    position, previous_end, scanned = 0, -1, 0
    while position <= size:
        costs.bounded(scanned, MAX_SCANNED)
        start, end = search(data, position, size)[0]
        if start < 0:
            return
        scanned += size - position
        if end > start or start != previous_end:
            yield data[start:end].decode("utf-8", "replace")
        previous_end = end
        position = end if end > position else position + _width(data, position)


def _width(data: bytes, position: int) -> int:
    """Bytes of the character at a position; 1 behind the end."""
    width = 1
    while position + width < len(data) and data[position + width] & 0xC0 == 0x80:
        width += 1
    return width


def _function(name: str, id_: str, implementation: Callable[..., Any], *more: Any) -> Overload:
    return Overload(
        name,
        id_,
        (STRING, STRING, *more),
        STRING if name == "find" else list_of(STRING),
        implementation,
        member=True,
        cost=costs.apply_pattern,
    )


FUNCTIONS = (
    _function("find", "string_find_string", find),
    _function("findAll", "string_find_all_string", find_all),
    _function("findAll", "string_find_all_string_int", find_all, INT),
)
