"""Writes Markdown for a comment on a change: the sums, then each rule with its findings and their places.

Uses the Markdown that GitHub and GitLab render in the same way (GitHub Flavored Markdown). A comment may have 65,536
characters, so further findings are only counted. A text about several objects is written once, with all places. The
sums come first, so texts are kept until the end, as many as fit in a comment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Final, NamedTuple

from msgspec import Struct, field

from webhook.apimachinery.paths import parse_path, path_as_text
from webhook.report.finding import Finding, Result, Subject
from webhook.report.rule import Rule, Rules
from webhook.report.writer import Totals
from webhook.rules.text import sentence_without_path
from webhook.text.terminal import one_line
from webhook.text.wording import counted
from webhook.yamltext.source_line import Place

MOST_CHARACTERS: Final = 60_000
_MOST_TEXTS: Final = 1_000
"""At most this number of different texts is kept. More texts do not fit in a comment."""
_MOST_PLACES: Final = 10
"""A comment names at most this number of places of a text."""
_MOST_REASONS: Final = 50
_SYMBOLS: Final = {
    Result.FAIL: ("❌", "denied"),
    Result.ERROR: ("❗", "error"),
    Result.WARN: ("⚠️", "warning"),
    Result.SKIP: ("❔", "not evaluated"),
    Result.PASS: ("✅", "passed"),
}
_ADVICE: Final = ("💡", "advice")
_ORDER: Final = (*_SYMBOLS.values(), _ADVICE)
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~@])")
"""Matches characters that are special in Markdown, and `@`, which would notify people."""


class _Head(NamedTuple):
    """The heading of a group of findings: symbol and word of the result, and the rule."""

    symbol_and_word: tuple[str, str]
    rule: str


class _Places(Struct):
    """The first places of a text, and the number of all places."""

    named: list[str] = field(default_factory=list)
    count: int = 0


class MarkdownFindingsWriter:
    """Writes one Markdown document."""

    def __init__(self) -> None:
        self._texts: dict[_Head, dict[str, _Places]] = {}
        self._rules: dict[str, Rule] = {}
        self._counts: Counter[_Head] = Counter()
        self._kept = 0
        self._unkept = 0

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        symbol_and_word = _ADVICE if entry.is_advice else _SYMBOLS[entry.result]
        head = _Head(symbol_and_word, entry.rule.id)
        text = _text_of_finding(entry)
        texts = self._texts.setdefault(head, {})
        if text not in texts and self._kept == _MOST_TEXTS:
            self._unkept += 1
            return
        self._kept += text not in texts
        self._rules[entry.rule.id] = entry.rule
        self._counts[head] += 1
        places = texts.setdefault(text, _Places())
        places.count += 1 + len(entry.also_in)
        for place, subject in islice(_places_of_finding(entry), _MOST_PLACES - len(places.named)):
            places.named.append(f"{_text_in_backticks(str(place))} {_escaped_text(str(subject))}")
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        section_at_end = _section_of_not_evaluated(totals)
        yield (head := _head_of_document(totals))
        left, left_out = MOST_CHARACTERS - len(head) - len(section_at_end), self._unkept
        for group in sorted(
            self._counts, key=lambda each: (_ORDER.index(each.symbol_and_word), -self._counts[each], each.rule)
        ):
            section = self._section_of_rule(group)
            left -= len(section)
            if left < 0:
                left_out += self._counts[group]
            else:
                yield section
        if left_out:
            yield f"\n{counted(left_out, 'further finding')} did not fit into a comment.\n"
        yield section_at_end

    def _section_of_rule(self, head: _Head) -> str:
        symbol, word = head.symbol_and_word
        rule = self._rules[head.rule]
        named = f"[{_escaped_text(rule.id)}]({rule.docs})" if rule.docs else _text_in_backticks(rule.id)
        lines = "".join(_lines_of_text(text, places) for text, places in self._texts[head].items())
        return f"\n**{symbol} {word}: {named}**\n\n{lines}"


def _places_of_finding(finding: Finding) -> Iterator[tuple[Place, Subject]]:
    yield finding.place, finding.subject
    yield from ((each.place, each.subject) for each in finding.also_in)


def _text_of_finding(finding: Finding) -> str:
    """Return problem and fix as Markdown. If the place has a line, the field path is shortened to its end."""
    problem = finding.problem
    if problem is None or not finding.place.line:
        return _escaped_text(finding.message)
    field_name = _end_of_path(problem.path)
    sentence = _escaped_text(sentence_without_path(problem))
    exception = f" ({_escaped_text(finding.exception_reason)})" if finding.exception_reason else ""
    return f"{f'{_text_in_backticks(field_name)}: ' if field_name else ''}{sentence}{exception}"


def _end_of_path(path: str) -> str:
    try:
        return path_as_text(parse_path(path)[-2:])
    except ValueError:
        return path


def _lines_of_text(text: str, places: _Places) -> str:
    """Return a list item. One place is on the same line, and several places have a line each."""
    if places.count == 1:
        return f"- {places.named[0]}: {text}\n"
    named = "".join(f"  - {each}\n" for each in places.named)
    more = places.count - len(places.named)
    return f"- {text}\n{named}" + (f"  - and {more} more\n" if more else "")


def _head_of_document(totals: Totals) -> str:
    unread = "".join(f"- ❗ {_escaped_text(str(each))}\n" for each in totals.unreadable)
    unreadable = f"\nCould not be read:\n\n{unread}" if unread else ""
    not_read = f"\nNot read: {totals.files_not_read_in_words}\n" if totals.files_not_read_in_words else ""
    left_out = f"\n{_escaped_text(str(totals.configured)).capitalize()}\n" if totals.configured else ""
    head = f"### claimgate: {counted(totals.entries, 'object')}\n\n{totals.objects_in_words}\n"
    return f"{head}{not_read}{left_out}{unreadable}"


def _section_of_not_evaluated(totals: Totals) -> str:
    """Return the section about rules that were not evaluated. These are not findings, so the section is folded."""
    reasons = totals.counts.not_evaluated.values()
    if not reasons:
        return ""
    lines = "".join(
        f"- {_escaped_text(each.why)} ({counted(each.objects, 'object')}, first {_escaped_text(str(each.subject))})\n"
        for each in islice(reasons, _MOST_REASONS)
    )
    more = f"- and {len(reasons) - _MOST_REASONS} more\n" if len(reasons) > _MOST_REASONS else ""
    title = f"Not evaluated: {counted(totals.counts.incomplete, 'object')}, {counted(len(reasons), 'reason')}"
    return f"\n<details><summary>{title}</summary>\n\n{lines}{more}\n</details>\n"


def _escaped_text(text: str) -> str:
    """Return a text with escaped special characters. Text between two backticks stays code."""
    parts = one_line(text).split("`")
    if not len(parts) % 2:
        return _SPECIAL.sub(r"\\\1", "`".join(parts))
    plain = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    code = [f"`{part}`" if part else "" for part in parts[1::2]]
    return "".join(map("".join, zip_longest(plain, code, fillvalue="")))


def _text_in_backticks(text: str) -> str:
    """Return a text as code. Apostrophes replace the backticks in the text."""
    return f"`{one_line(text).replace('`', chr(39))}`"
