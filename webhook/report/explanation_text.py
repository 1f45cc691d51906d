"""Prints explanations: a table for each phase, and a sentence with the policies that do not apply to the request's
kind.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from webhook.attributes import Phase
from webhook.explanation import Explanation

_HEAD: Final = ("POLICY", "OBJECT", "OUTCOME", "MS", "COST", "WHY")
_WIDTH: Final = 116


def lines_of_explanations(explanations: Sequence[tuple[Phase, Explanation]]) -> Iterator[str]:
    """Yield the lines of the tables of one review."""
    for phase, listed in groupby(explanations, key=lambda each: each[0]):
        explained = [each for _, each in listed]
        told = [each for each in explained if not each.is_not_registered]
        yield f"{phase}:"
        if told:
            yield from _lines_of_table([_HEAD, *map(_row_of_explanation, told)])
        for reason, names in _never_evaluated_policies(explained).items():
            text = f"not registered, because {reason}: {', '.join(names)}"
            yield from textwrap.wrap(
                text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )


def _row_of_explanation(explained: Explanation) -> tuple[str, ...]:
    name = explained.policy
    if explained.binding not in ("", name):
        name = f"{name} ({explained.binding})"
    is_evaluated = explained.elapsed_s > 0
    elapsed = f"{explained.elapsed_s * 1000:.2f}" if is_evaluated else "-"
    cost = str(explained.cost) if is_evaluated else "-"
    return name, explained.place or "-", explained.outcome, elapsed, cost, " ".join(explained.reason.split())


def _lines_of_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows with columns as wide as their widest cell; the last column may be longer."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True))
        yield f"  {'  '.join([*cells, row[-1]])}".rstrip()


def _never_evaluated_policies(explained: Sequence[Explanation]) -> Mapping[str, Sequence[str]]:
    """Return the policies that are not evaluated at all, by the reason."""
    names: dict[str, list[str]] = {}
    for each in explained:
        if each.is_not_registered:
            names.setdefault(each.reason, []).append(each.policy)
    return names
