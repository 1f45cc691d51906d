"""Comments that make an exception: where they are read, and for which line."""

from __future__ import annotations

from tests.rows import all_rows
from webhook.yamltext.ignore_comments import ignore_comments

READ = {
    "at the end of a line": ("a: 1  # claimgate:ignore x/y the old plugin", {1: [(1, "x/y", "the old plugin")]}),
    "above a line": ("# claimgate:ignore x/y why\na: 1", {2: [(1, "x/y", "why")]}),
    "above other comments": ("# claimgate:ignore x/y why\n  # more\na: 1", {3: [(1, "x/y", "why")]}),
    "two comments above a line": (
        "# claimgate:ignore x why\n#claimgate:ignore y  why\na: 1",
        {3: [(1, "x", "why"), (2, "y", "why")]},
    ),
    "without a reason": ("a: 1 #  claimgate:ignore x", {1: [(1, "x", "")]}),
    "without a rule": ("a: 1 # claimgate:ignore", {}),
    "in a text": ("a: b#claimgate:ignore x why", {}),
    "in the middle of a comment": ("a: b # see claimgate:ignore x why", {}),
    "at the end of the file": ("a: 1\n# claimgate:ignore x why", {}),
}


@all_rows(("text", "expected"), READ.values(), ids=READ)
def test_a_comment_is_about_a_line(text: str, expected: dict[int, list[tuple[int, str, str]]]) -> None:
    read = ignore_comments(text.split("\n"))
    assert {line: [(each.line, each.rule, each.reason) for each in made] for line, made in read.items()} == expected


def test_comments_are_bounded() -> None:
    lines = ["a: 1 # claimgate:ignore x " + "y" * 1_000] * 2_000
    read = ignore_comments(lines)
    assert len(read) == 1_000
    assert {len(each.reason) for made in read.values() for each in made} == {200}
