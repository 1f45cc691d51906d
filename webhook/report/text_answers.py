"""Prints answers: a line for each review, below it the messages to the caller and the changes, and the sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook import terminal
from webhook.attributes import JSON
from webhook.report import explanation_text
from webhook.report.answer import Answer
from webhook.report.records import compact_json
from webhook.report.rule import Rules
from webhook.report.screen import PLAIN, Screen, Style
from webhook.report.writer import Totals
from webhook.wording import counted

_VALUE_WIDTH = 160
"""How many characters of a patch's value are shown; json and ndjson have the whole value."""
_INDENT: Final = "    "
_STYLES: Final[Mapping[str, Style]] = {"warning": "yellow", "further warning": "yellow", "advice": "cyan"}


class TextAnswersWriter:
    """Prints one replay, answer by answer."""

    def __init__(self) -> None:
        self._screen = PLAIN

    def use_screen(self, screen: Screen) -> None:
        """Use this screen."""
        self._screen = screen

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Yield nothing, because the text has no beginning."""
        yield from ()

    def entry(self, entry: Answer) -> Iterator[str]:
        """Yield the lines of one review."""
        yield "".join(f"{line}\n" for line in _lines_of_answer(entry, self._screen))

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the sums."""
        allowed = totals.entries - totals.failures
        yield terminal.lines([f"{counted(totals.entries, 'review')}: {allowed} allowed, {totals.failures} denied"])


def _lines_of_answer(answer: Answer, screen: Screen) -> Iterator[str]:
    verdict, status = answer.verdict, answer.verdict.status
    is_allowed = verdict.allowed or status is None
    said = "allowed" if verdict.allowed or status is None else f"denied {status.code} {status.reason}"
    sign, said = (
        screen.symbol_of_result("pass" if is_allowed else "fail"),
        screen.styled(said, "green" if is_allowed else "red"),
    )
    about = terminal.one_line(f"{answer.operation} {answer.subject}")
    yield f"{sign} {said}  {terminal.one_line(str(answer.place))}  {screen.styled(about, 'bold')}"
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
    yield from (
        _INDENT + terminal.one_line(line) for line in explanation_text.lines_of_explanations(answer.explanations)
    )


def _messages_by_kind(answer: Answer) -> Mapping[str, tuple[str, ...]]:
    """Return the messages to users in addition to the verdict, by their kind."""
    return {
        "warning": answer.verdict.warnings,
        "advice": answer.advice_texts,
        "further warning": answer.hidden_validating_warnings,
        "exception": answer.applied_exceptions,
    }


def patch_operation_as_text(change: Mapping[str, JSON]) -> str:
    """Return one patch operation on one line: `add /metadata/labels = {"a":"b"}`."""
    shown = f"{change['op']} {change['path']}"
    if "from" in change:
        return f"{shown} from {change['from']}"
    if "value" not in change:
        return shown
    value = compact_json(change["value"])
    return f"{shown} = {value if len(value) <= _VALUE_WIDTH else value[: _VALUE_WIDTH - 1] + '…'}"
