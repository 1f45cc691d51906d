"""Writes Markdown for a comment on a change: the sums, then a section for each object with its findings.

Follows what GitHub and GitLab render alike (GitHub Flavored Markdown), and stays below the 65,536 characters that a
comment may have there: what does not fit is counted. The sums come first, so findings are kept (spool).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import Final

from webhook.report.finding import Finding, Result, Subject
from webhook.report.rule import Rules
from webhook.report.spool import NonPassingFindings, file_and_object_of_finding
from webhook.report.writer import Totals
from webhook.text.terminal import one_line
from webhook.text.wording import counted

MOST_CHARACTERS: Final = 60_000
_SYMBOLS: Final = {Result.FAIL: "❌", Result.WARN: "⚠️", Result.ERROR: "❗", Result.SKIP: "❔"}
_WORDS: Final = {Result.FAIL: "denied", Result.WARN: "warning", Result.ERROR: "error", Result.SKIP: "not evaluated"}
_ADVICE: Final = ("💡", "advice")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~@])")
"""The characters that are special in Markdown, and `@`, with which a comment notifies people."""


class MarkdownFindingsWriter:
    """Writes one Markdown document."""

    def __init__(self) -> None:
        self._spoken = NonPassingFindings()

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Yield nothing, because the document is written at the end."""
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        """Keep a finding that is not a pass."""
        self._spoken.append(entry)
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the document."""
        yield _head_of_document(totals)
        left, unsaid = MOST_CHARACTERS, 0
        for (file, subject), several in groupby(self._spoken, file_and_object_of_finding):
            findings = list(several)
            section = _section_of_object(file, subject, findings)
            left -= len(section)
            if left < 0:
                unsaid += len(findings)
            else:
                yield section
        if unsaid:
            yield f"\n{counted(unsaid, 'further finding')} did not fit into a comment.\n"


def _head_of_document(totals: Totals) -> str:
    counts = ", ".join(f"{_SYMBOLS[result]} {totals.results[result]} {_WORDS[result]}" for result in _SYMBOLS)
    unread = "".join(f"- ❗ {_escaped_text(str(each))}\n" for each in totals.unreadable)
    told = f"\nThese could not be read:\n\n{unread}" if unread else ""
    left_out = f"\n{_escaped_text(str(totals.configured)).capitalize()}\n" if totals.configured else ""
    return f"### claimgate: {counted(totals.entries, 'object')}\n\n{counts}\n{left_out}{told}"


def _section_of_object(file: str, subject: Subject, findings: list[Finding]) -> str:
    lines = "".join(_line_of_finding(each) for each in findings)
    return f"\n**{_escaped_text(str(subject))}** in {_text_in_backticks(file)}\n\n{lines}"


def _line_of_finding(finding: Finding) -> str:
    symbol, word = _ADVICE if finding.is_advice else (_SYMBOLS[finding.result], _WORDS[finding.result])
    word = "" if finding.result is Result.SKIP else f"{word}: "  # its message says that it was not evaluated
    line = f"line {finding.place.line}, " if finding.place.line else ""
    rule = (
        f"[{_escaped_text(finding.rule.id)}]({finding.rule.docs})"
        if finding.rule.docs
        else _text_in_backticks(finding.rule.id)
    )
    return f"- {symbol} {word}{_escaped_text(finding.message)} ({line}{rule})\n"


def _escaped_text(text: str) -> str:
    """Return text with special characters escaped; text in pairs of backticks stays code."""
    parts = one_line(text).split("`")
    if not len(parts) % 2:
        return _SPECIAL.sub(r"\\\1", "`".join(parts))
    plain = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    code = [f"`{part}`" if part else "" for part in parts[1::2]]
    return "".join(map("".join, zip_longest(plain, code, fillvalue="")))


def _text_in_backticks(text: str) -> str:
    """Return text in backticks, with its own backticks replaced."""
    return f"`{one_line(text).replace('`', chr(39))}`"
