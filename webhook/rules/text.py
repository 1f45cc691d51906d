"""Makes the texts of problems for people at a terminal, with one sentence for each problem.

Long lists are cut only between sentences. All texts for `kubectl` are made here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery import paths
from webhook.rules.problem import Problem

MOST_LISTED: Final = 8
"""The maximum number of problems in the message of a validation. Users do not read more problems."""
MOST_PLACES: Final = MOST_LISTED - 1
"""The maximum number of additional places in the sentence of a problem."""
_LONGEST_PATH: Final = 500
"""The maximum length of a shown path, in characters. Keys of a map may have any length."""
_LAST: Final = len("; and 1000000 more")
_ITEM: Final = "\n* "
_COLON_OR_QUOTED: Final = re.compile(r'`[^`]*`|"[^"]*"|: ')
"""Matches a colon that ends a part of a sentence, or a quoted part, which may contain colons."""
_NOTE: Final = 100
"""The maximum length of the remark before a list, in characters."""


_EXPRESSION: Final = "expression '"
_RESULTED: Final = "' resulted in error: "
_LONGEST_EXPRESSION: Final = 120
"""The maximum length of a failed expression in a message: users recognize the expression, and also see the error."""


def with_short_expression(message: str) -> str:
    """Shorten the expression in a message to one line, so users see the error.

    An API server quotes the whole expression, and so does claimgate with `--api-server-text`.
    """
    before, opened, rest = message.partition(_EXPRESSION)
    source, closed, error = rest.partition(_RESULTED)
    if not (opened and closed):
        return message
    source = " ".join(source.split())
    if len(source) > _LONGEST_EXPRESSION:
        source = f"{source[:_LONGEST_EXPRESSION].rstrip()}…"
    return f"{before}{opened}{source}{closed}{error}"


def problem_as_sentence(problem: Problem) -> str:
    """Return a problem as `path (likewise path): found message: fix`, without absent parts."""
    where = (
        f"{_shortened_path(problem.path)} (likewise {_paths_as_text(problem.also)})"
        if problem.also
        else _shortened_path(problem.path)
    )
    return ": ".join(
        part
        for part in (where, problem.found_and_message or not_evaluated_sentence(map(str, problem.missing)), problem.fix)
        if part
    )


def sentence_without_path(problem: Problem) -> str:
    """Return the sentence of a problem without the path, for formats that show the path separately."""
    return problem_as_sentence(replace(problem, path="")).strip()


def split_off_fix(message: str) -> tuple[str, str]:
    """Split the message of a policy in CEL into the message and its fix. If the text does not end with a fix, the fix
    is "".

    Each sentence of the text is `path: found message: fix`, as in problem_as_sentence. Equal fixes are returned once.
    """
    root, *_ = paths.split_off_leading_path(message)[0] or ("",)
    sentences = re.split(rf"; (?={re.escape(str(root))}\b)", message) if root else [message]
    parts = [_message_and_fix(each) for each in sentences]
    return "; ".join(mistake for mistake, _ in parts), "; ".join(dict.fromkeys(fix for _, fix in parts if fix))


def _message_and_fix(sentence: str) -> tuple[str, str]:
    rest = paths.split_off_leading_path(sentence)[1].removeprefix(": ")
    colons = [match.start() for match in _COLON_OR_QUOTED.finditer(rest) if match[0] == ": "]
    if not colons:
        return sentence, ""
    fix = rest[colons[-1] + 2 :]
    return sentence[: -len(fix) - 2], fix


def _shortened_path(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"


def _paths_as_text(paths: Sequence[str]) -> str:
    """Name some of the paths, and count the others."""
    left = len(paths) - MOST_PLACES
    named = [_shortened_path(path) for path in paths[:MOST_PLACES]]
    *others, last = [*named, f"{left} more"] if left > 0 else named
    return f"{', '.join(others)} and {last}" if others else last


def not_evaluated_sentence(missing: Iterable[str]) -> str:
    """Return the sentence about a rule that needed objects that were not found."""
    return f"not evaluated: {', '.join(dict.fromkeys(missing))}"


def message_of_problems(problems: Sequence[Problem], longest: int) -> str:
    """Return the problems of a validation in at most `longest` characters. Equal problems are written once."""
    different = list(_group_similar_problems(problems))
    listed = [problem_as_sentence(problem) for problem in different[:MOST_LISTED]]
    return join_fitting_texts(listed, longest, len(different) - len(listed))


def _group_similar_problems(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Join problems that differ only in their places."""
    same: dict[tuple[object, ...], list[Problem]] = {}
    for problem in problems:
        key = *problem.code_found_and_message, problem.fix, problem.missing
        same.setdefault(key, []).append(problem)
    for first, *others in same.values():
        places = (place for each in others for place in (each.path, *each.also))
        yield replace(first, also=(*first.also, *places)) if others else first


def texts_that_fit(texts: Sequence[str], longest: int) -> Sequence[str]:
    """Return the first texts that fit in a list of `longest` characters. The first text always counts as fitting."""
    if len(texts) == 1:
        return [shorten_text(texts[0], longest)]
    remaining = longest - len(itemized_text((), len(texts))) - _NOTE
    kept: list[str] = []
    for text in texts:
        shown = text if kept else shorten_text(text, remaining - len(_ITEM))
        remaining -= len(shown) + len(_ITEM)
        if remaining < 0:
            break
        kept.append(shown)
    return kept


def itemized_text(texts: Sequence[str], left: int = 0, note: str = "") -> str:
    """Return a list with a line for each text, like kubectl's lists. A single text stays unchanged if `left` is 0.

    `left` is the number of texts that are not listed. `note` is a remark about all problems.
    """
    if len(texts) == 1 and not left:
        return texts[0]
    more = [f"and {left} more"] * bool(left)
    return "".join((f"{len(texts) + left} problems{note}:", *(f"{_ITEM}{text}" for text in (*texts, *more))))


def join_fitting_texts(texts: Sequence[str], longest: int, others: int = 0) -> str:
    """Join the first texts that fit, and add the number of the other texts plus `others`. The first text is always
    included, shortened if necessary.
    """
    whole = "; ".join(texts)
    if not others and len(whole) <= longest:
        return whole
    kept = [shorten_text(texts[0], longest - _LAST)]
    remaining = longest - _LAST - len(kept[0])
    for text in texts[1:]:
        remaining -= len(text) + 2
        if remaining < 0:
            break
        kept.append(text)
    left = len(texts) + others - len(kept)
    return "; ".join((*kept, f"and {left} more")) if left else kept[0]


def shorten_text(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters. Only texts of users or of other authors' policies are longer."""
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"
