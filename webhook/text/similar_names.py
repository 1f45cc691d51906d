"""Finds the known name that is closest to a misspelled name.

For names of objects, every different letter is an edit. Names of resources are similar on purpose (`npu` and `gpu`), so
nearest_resource accepts only edits that are probably typing errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from os.path import commonprefix

_WORDS = re.compile(r"[^._-]+")
_DIGITS = re.compile(r"[0-9]+")
_DIFFERENT = 9  # more than every limit: the words are different
_LONGEST = 317  # characters of a name with its domain; a longer text is not a name
_FARTHEST = 2  # edits; with more edits, a name is another word


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the closest known name, or "". A name that differs only in case and underscores comes first. Another name
    may differ in at most two edits, and in fewer edits than a third of the letters of `name`.
    """
    known, letters = [*known] if len(name) <= _LONGEST else [], _letters(name)
    alike = (each for each in known if each != name and each[:1].lower() == letters[:1] and _letters(each) == letters)
    if same := next(alike, ""):
        return same
    best, distance = "", min(_FARTHEST, (len(name) - 1) // 3) + 1
    for candidate in known:
        if abs(len(candidate) - len(name)) < distance and candidate != name:
            count = count_edits(name, candidate, distance)
            if count < distance:
                best, distance = candidate, count
    return best


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def count_edits(one: str, other: str, limit: int) -> int:
    """Count insertions, deletions, substitutions and swaps of neighbours between two words, up to `limit`.

    Common ends are skipped, and only the diagonals that the limit allows are computed (Ukkonen, Algorithms for
    approximate string matching, 1985). Keys with the same long domain take a few microseconds.
    """
    one, other = _without_common_ends(one, other)
    if not one or not other:
        return min(len(one) + len(other), limit)
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        current = [i] + [limit] * len(other)
        first, last = max(1, i - limit), min(len(other), i + limit)
        for j in range(first, last + 1):
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (letter != other[j - 1]))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == other[j - 1]:
                cost = min(cost, before[j - 2] + 1)
            current[j] = cost
        if min(current) >= limit:
            return limit
        before, row = row, current
    return min(row[-1], limit)


def _without_common_ends(one: str, other: str) -> tuple[str, str]:
    start = len(commonprefix((one, other)))  # noqa: RUF071 - character by character
    one, other = one[start:], other[start:]
    end = len(commonprefix((one[::-1], other[::-1])))  # noqa: RUF071
    return (one[:-end], other[:-end]) if end else (one, other)


def nearest_resource(name: str, known: Iterable[str]) -> str:
    """Return the known resource that differs by one or two typing errors, or ""."""
    best, fewest = "", _FARTHEST + 1
    if len(name) > _LONGEST:
        return best
    domain, _, last = name.lower().partition("/")
    for candidate in known:
        its_domain, _, its_last = candidate.lower().partition("/")
        errors = int(name != candidate and name.lower() == candidate.lower())
        errors += _typing_errors_of_domain(domain, its_domain) + _typing_errors(last, its_last)
        if 0 < errors < fewest:
            best, fewest = candidate, errors
    return best


def _typing_errors_of_domain(domain: str, known: str) -> int:
    # `nvidia` (the company alone) and `com.nvidia` (another order of the words) are one error for `nvidia.com`
    is_company = "." not in domain and known.startswith(f"{domain}.")
    is_turned = domain != known and sorted(_WORDS.findall(domain)) == sorted(_WORDS.findall(known))
    return 1 if is_company or is_turned else _typing_errors(domain, known)


def _typing_errors(name: str, known: str) -> int:
    # the result exceeds every limit if a word is different
    words, meant = _WORDS.findall(name), _WORDS.findall(known)
    if len(words) != len(meant):
        return _DIFFERENT
    return sum(_typing_errors_of_word(word, other) for word, other in zip(words, meant, strict=True))


def _typing_errors_of_word(word: str, meant: str) -> int:
    # different digits are never a typing error; in a short word, only a swap, a missing letter, or a letter that is
    # added after the first letter is a typing error
    if word == meant:
        return 0
    if _DIGITS.findall(word) != _DIGITS.findall(meant):
        return _DIFFERENT
    count = count_edits(word, meant, _FARTHEST + 1)
    if len(meant) > 4:
        is_typing_error = count <= (_FARTHEST if len(meant) > 5 else 1)
    else:
        is_typing_error = count == 1 and _is_typing_error_in_short_word(word, meant)
    return count if is_typing_error else _DIFFERENT


def _is_typing_error_in_short_word(word: str, meant: str) -> bool:
    if len(word) < len(meant):
        return word[0] == meant[0]
    if len(word) == len(meant):
        return sorted(word) == sorted(meant) or meant == "com"
    return word[0] == meant[0]  # vgpu and npu are other names
