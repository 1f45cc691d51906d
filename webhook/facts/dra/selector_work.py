r"""How long it takes to compile a selector, estimated from its text: users write selectors, and nothing interrupts it.

Patterns that are written in an expression are compiled with it. RE2 spends most on classes of Unicode (`\pL` is 400
ranges of bytes), again for every repetition, and refuses a pattern of more than 8 MB, after about 100 ms. The estimate
is from above, but for the texts that an expression puts together: those are patterns when it is evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from webhook.cel.syntax.constants import string_value
from webhook.cel.syntax.lexer import tokenize

_SECONDS_A_CHARACTER: Final = 2.5e-5
"""Of an expression; `1<2&&` and `[1]+` again and again are the slowest that are known."""
_SECONDS_A_STEP: Final = 1e-6
"""Of a pattern: a character, of which RE2 compiles several in this time."""
_SMALL: Final = 800
"""Characters of an expression that is small: a program of as many takes 30 KB …"""
_FEW: Final = 2000
"""… and patterns of so many steps 100 KB."""
_CLASS: Final = 3
"""Steps of a class of characters."""
_UNICODE: Final = 500
"""Steps of a class of Unicode."""
_LARGEST: Final = 100_000
"""Steps after which RE2 gives up on a pattern."""
_PART: Final = re.compile(
    r"(?P<open>\()|(?P<close>\))|\{(?P<least>[0-9]{1,4})(?:,(?P<most>[0-9]{0,4}))?\}"
    r"|(?P<class>\[\^?\]?(?:\\.|\[:|[^\]\\])*\]?|[.]|\\[DSWdsw])|(?P<unicode>\\[pP](?:\{[^}]*\}?|.)?)|\\.|.",
    re.DOTALL,
)
_UNICODE_CLASS: Final = re.compile(r"\\[pP]")


@dataclass(frozen=True, slots=True)
class SelectorWork:
    """The work of compiling one expression: its characters, and the steps of the patterns that may be in it."""

    characters: int
    steps: int

    @property
    def is_small(self) -> bool:
        """Whether it is compiled in no time, and the program is small enough to be kept."""
        return self.characters <= _SMALL and self.steps <= _FEW

    @property
    def seconds(self) -> float:
        """How long it takes at most."""
        return self.characters * _SECONDS_A_CHARACTER + self.steps * _SECONDS_A_STEP


def selector_work(expression: str) -> SelectorWork:
    """What it takes to compile an expression."""
    return SelectorWork(len(expression), sum(map(_steps, _texts(expression))))


def _texts(expression: str) -> list[str]:
    """The texts of an expression, any of which may be a pattern; none where it has a bad one and is refused."""
    tokens = tokenize(expression)
    written = [text for kind, text in zip(tokens.kinds, tokens.texts, strict=True) if kind == "string"]
    try:
        return list(map(string_value, written))
    except ValueError:
        return []


def _steps(pattern: str) -> int:
    """The steps of a pattern: a repetition multiplies what stands before it, a character or a group."""
    groups, last = [0], 0
    for part in _PART.finditer(pattern):
        if part["open"]:
            groups.append(0)
            last = 0
            continue
        if part["least"]:
            times = max(int(part["least"]), int(part["most"] or 0), 1)
            groups[-1] += last * (times - 1)
            last *= times
            continue
        last = (groups.pop() if len(groups) > 1 else 0) if part["close"] else _steps_of_one(part)
        groups[-1] += last
    return min(sum(groups), _LARGEST)


def _steps_of_one(part: re.Match[str]) -> int:
    """The steps of one character or class."""
    if part["unicode"]:
        return _UNICODE
    if part["class"]:
        return _CLASS + len(part[0]) + _UNICODE * len(_UNICODE_CLASS.findall(part[0]))
    return 1
