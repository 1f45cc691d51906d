r"""Regular expressions in RE2's syntax and linear time: kubernetes.regex, and the function `matches`.

Source: k8s.io/apiserver v0.36.1 pkg/cel/library/regex.go. patterns.py compiles patterns within bounds.

string.find(string) -> string
    The first match, '' if there is none.

    'abc 123'.find('[0-9]+') // '123'
    'abc'.find('[0-9]+') // ''
    ['('].map(p, 'abc'.find(p)) // error: Illegal regex: error parsing regexp: missing closing ): `(`

string.findAll(string) -> list(string)
    All matches, which do not overlap.

    '123 abc 456'.findAll('[0-9]+') // ['123', '456']
    'abc'.findAll('[0-9]+') // []
    ['*'].map(p, 'abc'.findAll(p)) // error: Illegal regex: error parsing regexp: missing argument to repetition

string.findAll(string, int) -> list(string)
    At most this number of matches; a negative number means all.

    '1 2 3'.findAll('[0-9]', 2) // ['1', '2']
    '1 2 3'.findAll('[0-9]', -1) // ['1', '2', '3']
    ['\\q'].map(p, 'abc'.findAll(p, 1)) // error: Illegal regex: error parsing regexp: invalid escape sequence
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from webhook.cel.library import costs, lists
from webhook.cel.library.declaration import Overload
from webhook.cel.library.patterns import compile_user_pattern
from webhook.cel.types import INT, STRING, list_of
from webhook.deadline import CHARACTERS, Deadline
from webhook.errors import BudgetExceeded, EvaluationError

MAX_SCANNED = 500_000_000
"""A findAll that has scanned more bytes than this stops after MAX_SECONDS. Each search counts the rest of the text."""

MAX_SECONDS = 1.0
"""The limit of processor time for a findAll that has scanned more than MAX_SCANNED bytes."""

MAX_STEPS = 40_000_000
"""The limit of the characters of a text times the characters of its pattern. A larger search is not started.

The cost limit of an expression, 1,000,000, allows this product (costs.pattern_match_cost). RE2 needs as many steps as
this product if a pattern is too large for its automaton.
"""


def matches(deadline: Deadline, text: str, pattern: str) -> bool:
    """Return whether the pattern matches somewhere in a text; for patterns from data."""
    _refuse_costly_match(text, pattern)
    deadline.spend_text(text)
    try:
        compiled = compile_user_pattern(pattern, deadline)
    except ValueError as error:
        raise EvaluationError(str(error)) from None
    deadline.check_clock_before_slow_call(len(text) * compiled.step_s)
    return compiled.is_found_in(text)


def _refuse_costly_match(text: str, pattern: str) -> None:
    costs.refuse_above_bound(len(text) * len(pattern), MAX_STEPS)


def find_first(deadline: Deadline, text: str, pattern: str) -> str:
    return next(_successive_matches(deadline, text, pattern), "")


def find_all(deadline: Deadline, text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return all matches that do not overlap, at most `limit`."""
    results = lists.record_string_list([])
    if limit == 0:
        return results
    for place, match in enumerate(_successive_matches(deadline, text, pattern), 1):
        results.append(match)
        if place == limit:
            break
    return results


def _successive_matches(deadline: Deadline, text: str, pattern: str) -> Iterator[str]:
    # an empty match directly after a match is skipped (Go regexp.FindAll)
    _refuse_costly_match(text, pattern)
    try:
        compiled = compile_user_pattern(pattern, deadline)
    except ValueError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
    search, unanchored = compiled.search, compiled.unanchored
    deadline.check_clock_before_slow_call(len(text) * compiled.step_s)
    data = text.encode("utf-8", "replace")
    size = len(data)
    position, previous_end, scanned = 0, -1, 0
    start_s = time.thread_time()
    while position <= size:
        if scanned > MAX_SCANNED and time.thread_time() - start_s > MAX_SECONDS:
            raise BudgetExceeded(costs.EXCEEDED)
        deadline.spend(2 + (size - position) // (10 * CHARACTERS))  # most searches end early
        start, end = search(unanchored, data, position, size)[0]
        if start < 0:
            return
        scanned += size - position
        if start == end < size and data[start] & 0xC0 == 0x80:  # RE2 finds \\B inside a character, Go does not
            position = start + _character_width(data, start)
            continue
        if end > start or start != previous_end:
            yield data[start:end].decode("utf-8", "replace")
        previous_end = end
        position = end if end > position else position + _character_width(data, position)


def _character_width(data: bytes, position: int) -> int:
    # in bytes; 1 at the end of the text
    width = 1
    while position + width < len(data) and data[position + width] & 0xC0 == 0x80:
        width += 1
    return width


def _regex_overload(name: str, id_: str, implementation: Callable[..., Any], *more: Any) -> Overload:
    return Overload(
        name,
        id_,
        (STRING, STRING, *more),
        STRING if name == "find" else list_of(STRING),
        implementation,
        member=True,
        cost=costs.pattern_match_cost,
        metered=True,
    )


FUNCTIONS = (
    _regex_overload("find", "string_find_string", find_first),
    _regex_overload("findAll", "string_find_all_string", find_all),
    _regex_overload("findAll", "string_find_all_string_int", find_all, INT),
)
