"""Writes the number of findings of each rule, not the findings: `claimgate audit --statistics`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.report.counts import FINDINGS
from webhook.report.finding import Finding, Result, Subject
from webhook.report.records import SCHEMA_VERSION, indented_json
from webhook.report.rule import Rule, Rules
from webhook.report.screen import PLAIN, Screen, result_word
from webhook.report.text_findings import rule_or_policy, summary_of_totals
from webhook.report.writer import Totals
from webhook.rules.decisions import severity_rank
from webhook.text import terminal

_ORDER: Final = ("fail", "warn", "error", "advice")


class _RuleCount(Struct):
    """The number of findings of one rule with one result, and the number of `objects` with such a finding."""

    rule: Rule
    result: Result
    word: str
    severity: str
    findings: int = 0
    objects: int = 0
    last: Subject | None = None


class _RuleCounts:
    """The findings of one object must follow each other."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], _RuleCount] = {}

    def add(self, finding: Finding) -> None:
        """Count a finding. Passes, exceptions and rules that were not evaluated are not findings."""
        if finding.result not in FINDINGS:
            return
        word = result_word(finding.result, is_advice=finding.is_advice)
        severity = finding.rule.severity or finding.decision.severity
        each = self._counts.setdefault(
            (finding.rule.id, word), _RuleCount(finding.rule, finding.result, word, severity)
        )
        each.findings += 1
        each.objects += each.last is not finding.subject
        each.last = finding.subject

    def in_order(self) -> Sequence[_RuleCount]:
        """Return the counts by result, then by the number of findings, the largest first."""
        return sorted(
            self._counts.values(),
            key=lambda each: (_ORDER.index(each.word), -each.findings, severity_rank(each.severity), each.rule.id),
        )


class TextStatisticsWriter:
    """Prints a line for each rule, and the sums of the report."""

    def __init__(self) -> None:
        self._screen = PLAIN
        self._counts = _RuleCounts()

    def use_screen(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        self._counts.add(entry)
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        counts = self._counts.in_order()
        widest = max((len(rule_or_policy(each.rule)) for each in counts), default=0)
        for each in counts:
            result = f"{self._screen.result_with_symbol(each.word)}{' ' * (6 - len(each.word))}"
            rule = terminal.one_line(f"{rule_or_policy(each.rule):<{widest}}")
            title = terminal.one_line(each.rule.description)
            yield f"{each.findings:>6}  {result}  {rule}  {title}".rstrip() + "\n"
        yield "\n" if counts else ""
        lines = self._screen.wrapped(terminal.one_line(summary_of_totals(totals)), "")
        yield "".join(f"{line}\n" for line in lines)


class JsonStatisticsWriter:
    """Writes one document: `statistics`, a list with an entry for each rule, and the sums."""

    def __init__(self) -> None:
        self._counts = _RuleCounts()

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        self._counts.add(entry)
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        document = {
            "schemaVersion": SCHEMA_VERSION,
            "statistics": [_record_of_count(each) for each in self._counts.in_order()],
            "leftOut": totals.configured.as_json(),
            "files": totals.files,
            "summary": {
                **totals.objects_as_json(),
                "findings": {str(each): totals.counts.results[each] for each in Result if each in FINDINGS},
            },
        }
        yield f"{indented_json(document)}\n"


def _record_of_count(each: _RuleCount) -> dict[str, Any]:
    return {
        "rule": each.rule.id,
        "result": each.word,
        "severity": each.severity,
        "findings": each.findings,
        "objects": each.objects,
        "title": each.rule.description,
    }
