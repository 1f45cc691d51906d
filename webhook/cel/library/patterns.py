"""Compiles regular expressions to RE2 programs: patterns of policies once, patterns of users within bounds.

Nothing interrupts RE2, and a pattern of ten characters may become a program of 8 MB. RE2 stops when a program needs
more than the given memory. So a user's pattern is first compiled with SMALL_BYTES, in a few milliseconds. If this
memory does not suffice and the caller has time, the pattern is compiled with LARGE_BYTES; the event loop never has this
time. A pattern that is still too large is not evaluated, although Go accepts patterns of up to 128 MB.

Times: google-re2 1.1 on 10,000 random patterns with nesting, counts and classes of Unicode
    (tests/cel/test_patterns.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from sys import getsizeof
from typing import Any, Final
from weakref import WeakValueDictionary

from webhook.cel.library import private_api
from webhook.deadline import Deadline
from webhook.errors import TooLargeToCompile
from webhook.text.caches import TwoGenerationCache

SMALL_BYTES: Final = 32 << 10
"""The memory of a program that the event loop compiles: 2,700 instructions. Most patterns take 1 ms, the slowest 5
ms."""
LARGE_BYTES: Final = 8 << 20
"""The memory of other programs: RE2's default. Compiling such a program takes 50 to 150 ms, at worst a second."""
_SMALL_S: Final = 0.001
_LARGE_S: Final = 0.150
_CHARACTER_S: Final = 1.5e-6
"""Seconds to parse a character of a pattern, with either memory."""
_COSTLY_S: Final = 1.5e-4
"""Seconds to parse a class of Unicode or a negated class (hundreds of ranges), or a repetition of up to 1,000."""
_COSTLY_BYTES: Final = 8 << 10
_CHARACTER_BYTES: Final = 100
_STEP_S: Final = 1e-8
"""Seconds for each byte of a text and each instruction if RE2 has no memory for its automaton.

Most searches need a hundredth of this time.
"""
_CONSTANT_BYTES: Final = 24 << 20
"""The limit of memory for all constant patterns of one user's expression; a worker has 44 MB."""

_LONGEST_KEPT: Final = 64
"""Results are cached for texts of at most this many characters. A search takes ten times as long as a lookup."""

_COSTLY: Final = re.compile(r"\\[pPDSW]|\[\^|\[:\^|\{")
_TOO_LARGE: Final = "pattern too large"
_ESCAPES: Final = re.compile(r"\\Q(?:[^\\]|\\(?!E))*(?:\\E)?|\\.", re.DOTALL)
_GO_WORDING: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}


class Pattern:
    """A compiled pattern.

    Attributes:
        search: RE2's function Match; called with `unanchored`, the text as bytes, the first place and the end.
        unanchored: the first argument of `search`.
        bytes: an upper bound of the pattern's memory, also during a search.
        step_s: an upper bound of the seconds for a byte of a text; 0 for patterns of policies, which are trusted.
        text: the pattern, unchanged.
    """

    __slots__ = ("__weakref__", "bytes", "search", "step_s", "text", "unanchored")

    def __init__(self, text: str, program: Any, unanchored: Any, size: int) -> None:
        self.text = text
        self.search: Callable[..., list[tuple[int, int]]] = program.Match
        self.unanchored = unanchored
        self.bytes = size
        self.step_s = program.ProgramSize() * _STEP_S

    def is_found_in(self, text: str) -> bool:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = text.encode(errors="replace")
        return self.search(self.unanchored, data, 0, len(data))[0][0] >= 0


class _CachingPattern(Pattern):
    """A pattern of a policy. It caches results for short texts, because names and images repeat."""

    __slots__ = ()

    def __init__(self, text: str, program: Any, unanchored: Any, size: int) -> None:
        super().__init__(text, program, unanchored, size)
        self.step_s = 0.0

    def is_found_in(self, text: str) -> bool:
        if len(text) > _LONGEST_KEPT:
            return super().is_found_in(text)
        key = self.text, text
        matched = _ANSWERS.get(key, None)
        if matched is None:
            matched = super().is_found_in(text)
            _ANSWERS.put(key, matched, getsizeof(text))
        return matched


class PatternTable:
    """The constant patterns of one expression, each compiled once."""

    __slots__ = ("_deadline", "_found")

    def __init__(self, deadline: Deadline | None = None) -> None:
        """`deadline`: the deadline of the review, for an expression of a user; None for an expression of a policy."""
        self._deadline = deadline
        self._found: dict[str, Pattern] = {}

    def compiled_pattern(self, text: str) -> Pattern:
        """Return the compiled pattern for a text.

        Raises:
            ValueError: the text is not a pattern; the message is Go's.
            TooLargeToCompile: the pattern is too large, or all patterns together are too large.
            Exception: the deadline leaves no time.
        """
        pattern = self._found.get(text)
        if pattern is None:
            pattern = (
                compile_policy_pattern(text) if self._deadline is None else compile_user_pattern(text, self._deadline)
            )
            self._found[text] = pattern
            if self._deadline is not None and self.largest_size_bytes > _CONSTANT_BYTES:
                raise TooLargeToCompile("its regular expressions are too large together: simplify or split them")
        return pattern

    @property
    def largest_size_bytes(self) -> int:
        """Return an upper bound of the memory of all patterns together."""
        return sum(pattern.bytes for pattern in self._found.values())


_OF_POLICIES: Final[WeakValueDictionary[str, Pattern]] = WeakValueDictionary()
"""Patterns of compiled policies. `compile_user_pattern` also looks here at run time."""
_ANSWERS: Final[TwoGenerationCache[tuple[str, str], bool | None]] = TwoGenerationCache(2 << 20)
_KEPT: Final[TwoGenerationCache[str, Pattern | None]] = TwoGenerationCache(4 << 20)


def compile_policy_pattern(text: str) -> Pattern:
    """Return the compiled pattern of a policy.

    Raises:
        ValueError: the text is not a pattern, or the pattern is too large.
    """
    pattern = _OF_POLICIES.get(text)
    if pattern is None:
        pattern = _OF_POLICIES[text] = _compile_within_memory(text, LARGE_BYTES, _CachingPattern)
    return pattern


def compile_user_pattern(text: str, deadline: Deadline) -> Pattern:
    """Return the compiled pattern of a user, within small bounds.

    Raises:
        ValueError: the text is not a pattern; the message is Go's.
        TooLargeToCompile: the pattern needs too much memory.
        Exception: the deadline leaves no time.
    """
    pattern = _KEPT.get(text, None) or _OF_POLICIES.get(text)
    if pattern is not None:
        return pattern
    reading_s = len(text) * _CHARACTER_S + len(_COSTLY.findall(text)) * _COSTLY_S
    deadline.require_time_for_call(reading_s + _SMALL_S)
    try:
        pattern = _compile_within_memory(text, SMALL_BYTES)
    except _NoMemoryError:
        return _compile_large_pattern(text, reading_s, deadline)
    _KEPT.put(text, pattern, pattern.bytes)
    return pattern


def _compile_large_pattern(text: str, reading_s: float, deadline: Deadline) -> Pattern:
    deadline.require_time_for_call(reading_s + _LARGE_S)
    try:
        return _compile_within_memory(text, LARGE_BYTES)
    except _NoMemoryError:
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise TooLargeToCompile(f"the regular expression `{shown}` is too large: simplify it") from None


class _NoMemoryError(ValueError):
    """A pattern needs more memory than it may use."""


def _compile_within_memory(text: str, most_bytes: int, kind: type[Pattern] = Pattern) -> Pattern:
    from re2 import Options

    options = Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = most_bytes
    program = private_api.compiled_re2_program(text.encode("utf-8", "replace"), options)
    if not program.ok():
        mistake, _, part = program.error().decode(errors="replace").partition(": ")
        error = _NoMemoryError if mistake.startswith(_TOO_LARGE) else ValueError
        raise error(f"error parsing regexp: {_GO_WORDING.get(mistake, mistake)}: `{part}`")
    if "\\C" in _ESCAPES.findall(text):  # any byte in RE2, unknown in Go
        raise ValueError("error parsing regexp: invalid escape sequence: `\\C`")
    bytes_for_parsing = len(text) * _CHARACTER_BYTES + len(_COSTLY.findall(text)) * _COSTLY_BYTES
    return kind(text, program, private_api.unanchored_flag(), most_bytes + bytes_for_parsing)
