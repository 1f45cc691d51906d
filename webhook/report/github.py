"""Writes annotations for GitHub Actions. GitHub shows the line of each finding beside the changed line.

Follows the grammar of workflow commands (actions/toolkit packages/core/src/command.ts). A message escapes `%`, CR and
LF, and a property also `:` and `,`. Passes are left out. One notice at the end is about missing objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.errors import InputProblem
from webhook.report.finding import Finding, Result
from webhook.report.rule import Rules
from webhook.report.writer import Totals
from webhook.text.terminal import one_line
from webhook.text.wording import counted, some_of
from webhook.yamltext.source_line import Place

_MOST_REASONS: Final = 5
"""The notice gives at most this number of reasons."""
_COMMANDS: Final = {Result.FAIL: "error", Result.WARN: "warning", Result.ERROR: "error"}


class GithubFindingsWriter:
    """Writes a line for each finding at once."""

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        command = "notice" if entry.is_advice else _COMMANDS.get(entry.result)
        if command:
            yield _workflow_command(command, entry.place, entry.rule.id, f"{entry.subject}: {entry.message}")

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield lines about unreadable files, findings that were left out, and rules that were not evaluated."""
        yield from (_line_about_unreadable(each) for each in totals.unreadable)
        if totals.configured:
            yield _workflow_command("notice", Place(file=""), "left out by configuration", str(totals.configured))
        if reasons := [each.why for each in totals.counts.not_evaluated.values()]:
            some = counted(totals.counts.incomplete, "object")
            message = f"{some} not evaluated in full: {some_of(reasons, _MOST_REASONS)}"
            yield _workflow_command("notice", Place(file=""), "not evaluated", message)


def _line_about_unreadable(problem: InputProblem) -> str:
    place = Place(file=problem.file, line=problem.line, column=problem.column)
    return _workflow_command("error", place, "cannot be read", problem.message)


def _workflow_command(command: str, place: Place, title: str, message: str) -> str:
    position = {"file": place.file.removeprefix("./"), "line": place.line, "col": place.column}
    properties = {**{name: str(value) for name, value in position.items() if value}, "title": title}
    written = ",".join(f"{name}={_escaped_property(value)}" for name, value in properties.items())
    text = "\n".join(map(one_line, message.split("\n")))
    return f"::{command} {written}::{_escaped_data(text)}\n"


def _escaped_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped_data(one_line(text)).replace(":", "%3A").replace(",", "%2C")
