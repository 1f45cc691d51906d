"""The text of problems for people at a terminal: one sentence each, lists cut between sentences and never inside one.

Whatever is shown to `kubectl` is put together here; what other formats show of a problem is theirs. Knows no policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from webhook.problem import Problem

MOST_LISTED: Final = 8
"""Problems of one validation that its message names; no reader gets further."""
MOST_PLACES: Final = MOST_LISTED - 1
"""Further places of one problem that its sentence names."""
_LONGEST_PATH: Final = 500
"""Characters of a path that are shown: the keys of a map may be of any length."""
_LAST: Final = len("; and 1000000 more")


def sentence(problem: Problem) -> str:
    """`path (likewise path): found message: fix`, without the parts that are not there."""
    where = f"{_path(problem.path)} (likewise {_places(problem.also)})" if problem.also else _path(problem.path)
    return ": ".join(
        part for part in (where, problem.said or not_evaluated(map(str, problem.missing)), problem.fix) if part
    )


def _path(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"


def _places(paths: Sequence[str]) -> str:
    """Paths as a list of few."""
    left = len(paths) - MOST_PLACES
    named = [_path(path) for path in paths[:MOST_PLACES]]
    *others, last = [*named, f"{left} more"] if left > 0 else named
    return f"{', '.join(others)} and {last}" if others else last


def not_evaluated(missing: Iterable[str]) -> str:
    """What is said of a rule that needed something that is not there."""
    return f"not evaluated: {', '.join(dict.fromkeys(missing))}"


def message(problems: Sequence[Problem], longest: int) -> str:
    """The problems of one validation in a text of at most so many characters; the same of several places once."""
    return listed([sentence(problem) for problem in _said_once(problems)], longest, MOST_LISTED)


def _said_once(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Problems whose sentences differ in more than the place, the first of each with the places of the others."""
    same: dict[tuple[object, ...], list[Problem]] = {}
    for problem in problems:
        key = *problem.without_path, problem.fix, problem.missing
        same.setdefault(key, []).append(problem)
    for first, *others in same.values():
        places = (place for each in others for place in (each.path, *each.also))
        yield replace(first, also=(*first.also, *places)) if others else first


def listed(texts: Sequence[str], longest: int, most: int = 1_000_000) -> str:
    """Texts in one, as many as fit, and how many more there are; the first one always, and cut where it is too long."""
    whole = "; ".join(texts[:most])
    if len(texts) <= most and len(whole) <= longest:
        return whole
    kept = [ended(texts[0], longest - _LAST)]
    remaining = longest - _LAST - len(kept[0])
    for text in texts[1:most]:
        remaining -= len(text) + 2
        if remaining < 0:
            break
        kept.append(text)
    left = len(texts) - len(kept)
    return "; ".join((*kept, f"and {left} more")) if left else kept[0]


def ended(text: str, longest: int) -> str:
    """A text of at most so many characters; only one that nobody here has made is ever too long."""
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"
