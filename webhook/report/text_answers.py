"""Prints the answers of reviews, and with `--explain` a table of policies for each phase.

Messages to the caller and changes are below the line of a review. The sums are at the end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from webhook.apimachinery.attributes import JSON, Phase
from webhook.report.records import compact_json
from webhook.report.results import Answer
from webhook.report.rule import Rules
from webhook.report.screen import PLAIN, Screen, Style
from webhook.report.writer import Totals
from webhook.rules.decisions import Explanation
from webhook.text import terminal
from webhook.text.wording import counted

_HEAD: Final = ("POLICY", "OBJECT", "OUTCOME", "MS", "COST", "WHY")
_WIDTH: Final = 116


def lines_of_explanations(explanations: Sequence[tuple[Phase, Explanation]]) -> Iterator[str]:
    """Yield the lines of the tables of one review."""
    for phase, with_phases in groupby(explanations, key=lambda each: each[0]):
        explained = [each for _, each in with_phases]
        registered = [each for each in explained if not each.is_not_registered]
        yield f"{phase}:"
        if registered:
            yield from _lines_of_table([_HEAD, *map(_row_of_explanation, registered)])
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
    """Yield the lines of a table. Columns are as wide as their widest cell. The last column is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True))
        yield f"  {'  '.join([*cells, row[-1]])}".rstrip()


def _never_evaluated_policies(explained: Sequence[Explanation]) -> Mapping[str, Sequence[str]]:
    names: dict[str, list[str]] = {}
    for each in explained:
        if each.is_not_registered:
            names.setdefault(each.reason, []).append(each.policy)
    return names


_VALUE_WIDTH = 160
"""A longer value of a patch is cut to this number of characters. json and ndjson have the whole value."""
_INDENT: Final = "    "
_STYLES: Final[Mapping[str, Style]] = {"warning": "yellow", "further warning": "yellow", "advice": "cyan"}


class TextAnswersWriter:
    """Prints one replay, answer by answer."""

    def __init__(self) -> None:
        self._screen = PLAIN

    def use_screen(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Answer) -> Iterator[str]:
        yield "".join(f"{line}\n" for line in _lines_of_answer(entry, self._screen))

    def end(self, totals: Totals) -> Iterator[str]:
        allowed = totals.entries - totals.failures
        left_out = f"; {totals.configured}" if totals.configured else ""
        sums = f"{counted(totals.entries, 'review')}: {allowed} allowed, {totals.failures} denied{left_out}"
        yield terminal.lines([sums])


def _lines_of_answer(answer: Answer, screen: Screen) -> Iterator[str]:
    verdict, status = answer.verdict, answer.verdict.status
    is_allowed = verdict.allowed or status is None
    result = "allowed" if verdict.allowed or status is None else f"denied {status.code} {status.reason}"
    sign, result = (
        screen.symbol_of_result("pass" if is_allowed else "fail"),
        screen.styled(result, "green" if is_allowed else "red"),
    )
    request = terminal.one_line(f"{answer.operation} {answer.subject}")
    yield f"{sign} {result}  {terminal.one_line(str(answer.place))}  {screen.styled(request, 'bold')}"
    if not verdict.allowed and status is not None:
        first, *others = terminal.message_lines(status.message)
        yield from screen.wrapped(first, _INDENT)
        for line in others:
            yield from [_INDENT + line] if line.startswith(" | ") else screen.wrapped(line, _INDENT, "  ")
    for kind, texts in _messages_by_kind(answer).items():
        for text in texts:
            first, *others = screen.wrapped(terminal.one_line(f"{kind}: {text}"), _INDENT, "  ")
            yield first.replace(f"{kind}:", screen.styled(f"{kind}:", _STYLES.get(kind, "")), 1)
            yield from others
    for unknown in answer.unevaluated_messages:
        yield from screen.wrapped(terminal.one_line(unknown), _INDENT, "  ")
    yield from (_INDENT + terminal.one_line(f"patch: {patch_operation_as_text(change)}") for change in verdict.patch)
    yield from (_INDENT + terminal.one_line(line) for line in lines_of_explanations(answer.explanations))


def _messages_by_kind(answer: Answer) -> Mapping[str, tuple[str, ...]]:
    return {
        "warning": answer.verdict.warnings,
        "advice": answer.advice_texts,
        "further warning": answer.hidden_validating_warnings,
        "exception": answer.applied_exceptions,
    }


def patch_operation_as_text(change: Mapping[str, JSON]) -> str:
    """Return one patch operation on one line, such as `add /metadata/labels = {"a":"b"}`."""
    shown = f"{change['op']} {change['path']}"
    if "from" in change:
        return f"{shown} from {change['from']}"
    if "value" not in change:
        return shown
    value = compact_json(change["value"])
    return f"{shown} = {value if len(value) <= _VALUE_WIDTH else value[: _VALUE_WIDTH - 1] + '…'}"
