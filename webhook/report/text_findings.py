"""Prints findings as linters do, below their objects, and at the end a table of the rules with numbers of findings.

A finding has a line with symbol, place and rule, then the problem, the fix, and the source line. A missing object is
reported once, with the number of objects that need it. Hundreds of objects may need the same few objects.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import east_asian_width

from webhook.report.counts import FINDINGS
from webhook.report.finding import Finding
from webhook.report.rule import Rule, Rules
from webhook.report.screen import PLAIN, Screen, result_word
from webhook.report.spool import file_and_object_of_finding
from webhook.report.writer import Totals
from webhook.rules.decisions import severity_rank
from webhook.text import terminal
from webhook.text.wording import counted, named, some_of
from webhook.yamltext.source_line import SourceLine

_ORDER: Final = ("fail", "warn", "error", "skip", "advice", "pass")
_INDENT: Final = "    "
_MOST_HELD: Final = 500
"""The most findings of one object that are sorted together. A file may have one object thousands of times."""
_MOST_COPIES: Final = 3
"""The most copies of an object that are named."""
_BREAK: Final = re.compile(r"(?<!\s)\s*\n(?! \| |\* )\s*")
"""Matches a line break of a message, unless the next line shows source or an item of a list. A match begins at the
first of several blanks, because otherwise many blanks would take quadratic time."""
_MOST_RULES: Final = 20
_WIDEST: Final = 120
"""The most characters of a source line if the screen has no width."""


class TextFindingsWriter:
    """Prints one report. The findings of an object are kept until the next object."""

    def __init__(self) -> None:
        self._screen = PLAIN
        self._object: list[Finding] = []
        self._rules: Counter[tuple[str, str, str]] = Counter()

    def use_screen(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        """Keep the finding. If a new object begins, yield the lines of the previous object."""
        if entry.result in FINDINGS:
            severity = entry.rule.severity or entry.decision.severity
            self._rules[_result_word_of_finding(entry), severity, rule_or_policy(entry.rule)] += 1
        findings = self._object
        if findings and (
            file_and_object_of_finding(findings[0]) != file_and_object_of_finding(entry) or len(findings) == _MOST_HELD
        ):
            yield self._flush_object_findings()
        self._object.append(entry)

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the last object, the rules that were not evaluated, and the sums."""
        if self._object:
            yield self._flush_object_findings()
        if totals.counts.not_evaluated:
            yield _lines_as_text([*self._lines_about_not_evaluated(totals), ""])
        if lines := list(_lines_about_not_audited(totals)):
            yield terminal.lines([*lines, ""])
        if self._rules.total() > 1:
            yield _lines_as_text([*self._table_of_broken_rules(), ""])
        yield _lines_as_text(self._screen.wrapped(terminal.one_line(summary_of_totals(totals)), ""))

    def _flush_object_findings(self) -> str:
        """Return the lines of the current object, the worst finding first."""
        findings = sorted(self._object, key=lambda each: _ORDER.index(_result_word_of_finding(each)))
        self._object = []
        heading = self._screen.styled(terminal.one_line(str(findings[0].subject)), "bold")
        return _lines_as_text([heading, *(line for each in findings for line in finding_lines(each, self._screen)), ""])

    def _lines_about_not_evaluated(self, totals: Totals) -> Iterator[str]:
        yield self._screen.styled("Not evaluated:", "bold")
        for each in totals.counts.not_evaluated.values():
            first = "first " if each.objects > 1 else ""
            example = f"{first}{each.subject} at {each.place.file_line_and_column}"
            rules = f"; {_ids_as_text(tuple(each.rules))}" if totals.is_verbose else ""
            text = terminal.one_line(f"{each.why} ({counted(each.objects, 'object')}: {example}{rules})")
            first_line, *others = self._screen.wrapped(text, "    ")
            yield f"  {self._screen.symbol_of_result('skip')} {first_line[4:]}"
            yield from others
        if totals.files and any(
            each.missing and each.missing.is_absent for each in totals.counts.not_evaluated.values()
        ):
            fix = "name files that have the missing objects with --context"
            yield from fix_lines(
                "create the missing objects, or correct their names" if totals.is_whole else fix, self._screen
            )

    def _table_of_broken_rules(self) -> Iterator[str]:
        """Yield a line for each rule, the worst first."""
        ordered = sorted(
            self._rules.items(),
            key=lambda each: (_ORDER.index(each[0][0]), severity_rank(each[0][1]), -each[1], each[0][2]),
        )
        widest = max(len(severity) for _, severity, _ in self._rules)
        for (result_name, severity, rule), count in ordered[:_MOST_RULES]:
            cell = f"{severity:<{widest}}  " if widest else ""
            result = f"{self._screen.result_with_symbol(result_name)}{' ' * (6 - len(result_name))}"
            yield f"{result}  {cell}{count:>5}  {terminal.one_line(rule)}"
        if ordered[_MOST_RULES:]:
            yield f"and {counted(len(ordered) - _MOST_RULES, 'rule')} more"


def lines_of_message(message: str) -> list[str]:
    """Return a message without line breaks that only wrap the text. Source and items of a list stay separate lines."""
    return terminal.message_lines(_BREAK.sub(" ", message.strip()) or "no message")


def finding_lines(finding: Finding, screen: Screen) -> Iterator[str]:
    """Yield the lines of one finding."""
    rule = screen.styled(terminal.one_line(rule_or_policy(finding.rule)), "cyan")
    result = screen.result_with_symbol(_result_word_of_finding(finding))
    yield f"  {result}  {terminal.one_line(finding.place.file_line_and_column)}  {rule}"
    message, fix = finding.message_and_fix()
    first, *others = lines_of_message(message)
    yield from screen.wrapped(first, _INDENT)
    yield from (f"{_INDENT}{line}" for line in others)
    if fix:
        yield from fix_lines(fix, screen)
    if finding.exception_reason:
        yield from screen.wrapped(terminal.one_line(finding.exception_reason), _INDENT)
    if finding.also_in:
        yield from screen.wrapped(terminal.one_line(_copies_in_words(finding)), _INDENT)
    if finding.line is not None:
        yield from _source_line_with_mark(finding.line, finding.place.line, screen)


def _copies_in_words(finding: Finding) -> str:
    """Return a text such as `also in 4 places: a.yaml:7:3, b.yaml:7:3, c.yaml:9:3 and 1 more`."""
    places = [each.place.file_line_and_column for each in finding.also_in]
    number = "" if len(places) == 1 else f"{counted(len(places), 'place')}: "
    return f"also in {number}{some_of(places, _MOST_COPIES)}"


def fix_lines(fix: str, screen: Screen) -> Iterator[str]:
    """Yield the lines of a fix."""
    first, *others = screen.wrapped(f"fix: {terminal.one_line(fix)}", _INDENT, "     ")
    yield first.replace("fix:", screen.styled("fix:", "green"), 1)
    yield from others


def _source_line_with_mark(line: SourceLine, number: int, screen: Screen) -> Iterator[str]:
    """Yield the source line, and a mark under the place."""
    margin = f"{_INDENT}{number} | "
    shown = line.within((screen.width or _WIDEST) - len(margin))
    end = shown.column - 1 + shown.length
    before, marked, after = shown.text[: shown.column - 1], shown.text[shown.column - 1 : end], shown.text[end:]
    before, marked, after = (terminal.one_line(part) if part else "" for part in (before, marked, after))
    gutter = screen.styled(f"{number} | ", "dim")
    yield f"{_INDENT}{gutter}{terminal.one_line(f'{before}{marked}{after}')}"
    empty = screen.styled(f"{' ' * len(str(number))} | ", "dim")
    mark = screen.styled("^" * max(_width_in_columns(marked), 1), "red" if screen.is_colored else "")
    yield f"{_INDENT}{empty}{' ' * _width_in_columns(before)}{mark}"


def _width_in_columns(text: str) -> int:
    """East Asian wide letters need two columns (Unicode Standard Annex 11)."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _result_word_of_finding(finding: Finding) -> str:
    return result_word(finding.result, is_advice=finding.is_advice)


def rule_or_policy(rule: Rule) -> str:
    """Return the id of the rule, or the policy if the rule has no id."""
    return _ids_as_text((rule.id,))


def _ids_as_text(ids: Sequence[str]) -> str:
    policies = [name for name in ids if "/" not in name]
    rules = [name for name in ids if "/" in name]
    return ", ".join((*rules, named(policies, "policy", "policies")) if policies else rules)


def _lines_about_not_audited(totals: Totals) -> Iterator[str]:
    """Kinds without a policy are listed only with -v."""
    for skipped in totals.skipped:
        if skipped.is_half or totals.is_verbose:
            yield f"{skipped.place}: not audited: {skipped.why}"
    if totals.is_verbose:
        yield from (f"no policy is about {kind}: {counted(count, 'object')}" for kind, count in totals.unasked.items())
        for kind, count in totals.pods_not_read.items():
            yield f"the pods of {kind} are not read: {counted(count, 'object')}"


def summary_of_totals(totals: Totals) -> str:
    """Return the sums of a report on one line."""
    is_cluster = bool(totals.entries and not totals.files)
    in_files = "" if is_cluster else f" in {counted(totals.files, 'file')}"
    text = f"{counted(totals.entries, 'object')}{in_files}: {totals.objects_in_words}"
    if totals.unread_objects and not totals.is_verbose:
        text += " (-v names the kinds)"
    if totals.counts.incomplete:
        text += f"; {counted(totals.counts.incomplete, 'object')} not evaluated in full"
    if not_read := totals.files_not_read_in_words:
        text += f"; {'also not read' if totals.unread_objects else 'not read'}: {not_read}"
    if totals.configured:
        text += f"; {totals.configured}"
    if totals.unreadable:
        files = counted(len({problem.file for problem in totals.unreadable}), "file")
        text += f"; {'the cluster' if is_cluster else files} with errors"
    return text


def _lines_as_text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
