"""Splits long texts and replaces parts of them piece by piece, and reads the clock between the pieces.

Python does this in one call of C, which takes a tenth of a second for a few megabytes with a part at every character. A
piece ends where the part is found, so that the results of the pieces are the result of the text. A part that can
overlap itself, such as `aa`, stays in one call, because it occurs at most half as often. Knows no CEL values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.deadline import STEP, Deadline

LONG: Final = 20_000
"""How many characters are split or replaced in one call: less than a millisecond."""
CHARACTERS: Final = LONG // STEP
"""How many characters C splits in one unit of work, where every character may begin a part."""


def split(deadline: Deadline, text: str, part: str) -> list[str]:
    """Return the texts between the occurrences of a part, as str.split does; the part must not be empty."""
    if len(text) <= LONG or _may_overlap_itself(part):
        deadline.spend(len(text) // CHARACTERS)
        return text.split(part)
    return [each for piece in _text_pieces(deadline, text, part) for each in piece.split(part)]


def split_into_characters(deadline: Deadline, text: str) -> list[str]:
    """Return every character of a text."""
    texts: list[str] = []
    for start in range(0, len(text), LONG):
        deadline.spend(min(LONG, len(text) - start) // CHARACTERS)
        texts += text[start : start + LONG]
    return texts


def replace(deadline: Deadline, text: str, old: str, new: str) -> str:
    """Return the text with every occurrence of a part replaced, as str.replace does."""
    if len(text) <= LONG or not old or _may_overlap_itself(old):
        deadline.spend(len(text) // CHARACTERS)
        return text.replace(old, new)
    return new.join([piece.replace(old, new) for piece in _text_pieces(deadline, text, old)])


def _may_overlap_itself(part: str) -> bool:
    """Return whether two occurrences of a part can overlap. A long part occurs too rarely to matter."""
    return len(part) > STEP or any(part.startswith(part[place:]) for place in range(1, len(part)))


def _text_pieces(deadline: Deadline, text: str, part: str) -> Iterator[str]:
    """Yield the text in pieces, each longer than LONG but the last; the part is between the pieces."""
    start = 0
    while start >= 0:
        deadline.spend(STEP + 1)
        end = text.find(part, start + LONG)
        yield text[start:end] if end >= 0 else text[start:]
        start = end + len(part) if end >= 0 else -1
