"""Finds comments in YAML that ask for an exception, `# claimgate:ignore RULE reason`.

A comment at the end of a line is about this line. A comment on a separate line is about the next line that is not a
comment. This module does not check whether the rule exists and whether the exception is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

MARK: Final = "claimgate:ignore"
_COMMENT: Final = re.compile(r"#[ \t]*+claimgate:ignore[ \t]++([^ \t]++)(.*)", re.DOTALL)
_MOST_COMMENTS: Final = 1_000
"""The most comments that are read in a file."""
_LONGEST: Final = 200
"""The most characters of a reason that are shown."""


class IgnoreComment(Struct, frozen=True):
    """A comment with its line, from 1. The reason may be ""."""

    line: int
    rule: str
    reason: str


def ignore_comments(lines: Sequence[str]) -> Mapping[int, Sequence[IgnoreComment]]:
    """Return the comments of a text, by the number of the line that they are about, from 1."""
    comments: dict[int, list[IgnoreComment]] = {}
    waiting: list[IgnoreComment] = []
    count = 0
    for number, line in enumerate(lines, 1):
        stripped = line.lstrip()
        is_alone = stripped.startswith("#")
        if MARK in line and count < _MOST_COMMENTS and (comment := _comment_in_line(line, number)) is not None:
            count += 1
            (waiting if is_alone else comments.setdefault(number, [])).append(comment)
        if waiting and not is_alone:
            comments.setdefault(number, []).extend(waiting)
            waiting = []
    return comments


def _comment_in_line(line: str, number: int) -> IgnoreComment | None:
    """Return the comment of a line; None if the `#` is neither at the beginning of the line nor after a blank."""
    start = line.rindex("#", 0, line.index(MARK)) if "#" in line[: line.index(MARK)] else -1
    if start < 0 or line[start - 1 : start].strip():
        return None
    match = _COMMENT.fullmatch(line[start:].rstrip())
    return IgnoreComment(number, match[1], match[2].strip()[:_LONGEST]) if match else None
