"""Writes one JSON document, for programs. Findings and answers are written one by one, and the sums follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.report.counts import FINDINGS
from webhook.report.finding import Finding, Result
from webhook.report.records import (
    SCHEMA_VERSION,
    indented_json,
    record_of_answer,
    record_of_copy,
    record_of_finding,
    record_of_not_evaluated,
    record_of_place,
)
from webhook.report.results import Answer, CaseResult
from webhook.report.rule import Rules
from webhook.report.writer import Totals

_INDENT = "  "
_LISTS = {"failed": Result.FAIL, "skipped": Result.SKIP, "errors": Result.ERROR}


class JsonFindingsWriter:
    """Writes an audit: `findings`, `notEvaluated`, files that were not audited, and sums (docs/report.schema.json)."""

    def __init__(self) -> None:
        self._comma = ""

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield f'{{\n  "schemaVersion": {SCHEMA_VERSION},\n  "findings": ['

    def entry(self, entry: Finding) -> Iterator[str]:
        record = {**record_of_finding(entry), "alsoIn": [record_of_copy(each) for each in entry.also_in]}
        yield f"{self._comma}\n{_indented_json(record, 2)}"
        self._comma = ","

    def end(self, totals: Totals) -> Iterator[str]:
        rest = {
            "notEvaluated": [record_of_not_evaluated(each) for each in totals.counts.not_evaluated.values()],
            "notKubernetes": [{**record_of_place(each.place), "reason": each.why} for each in totals.skipped],
            "unreadable": [
                {"file": problem.file, "line": problem.line, "column": problem.column, "reason": problem.message}
                for problem in totals.unreadable
            ],
            "unasked": dict(totals.unasked),
            "podsNotRead": dict(totals.pods_not_read),
            "templates": totals.templates,
            "notRead": totals.not_read,
            "leftOut": totals.configured.as_json(),
            "files": totals.files,
            # known last, so written last
            "summary": {
                **totals.objects_as_json(),
                "findings": {str(each): totals.counts.results[each] for each in Result if each in FINDINGS},
            },
        }
        closing = "\n  ]" if self._comma else "]"
        yield f"{closing},\n{indented_json(rest)[2:]}\n"


class JsonAnswersWriter:
    """Writes a replay as a list of answers."""

    def __init__(self) -> None:
        self._comma = ""

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield "["

    def entry(self, entry: Answer) -> Iterator[str]:
        yield f"{self._comma}\n{_indented_json(record_of_answer(entry), 1)}"
        self._comma = ","

    def end(self, _totals: Totals) -> Iterator[str]:
        yield "\n]\n" if self._comma else "]\n"


class JsonCasesWriter:
    """Writes a test: `{"total", "passed", "failed": [{"id", "why"}], "skipped", "errors"}`.

    The sums come first, so results other than passes are kept until the end.
    """

    def __init__(self) -> None:
        self._held: dict[Result, list[dict[str, str]]] = {Result.FAIL: [], Result.SKIP: [], Result.ERROR: []}

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: CaseResult) -> Iterator[str]:
        if entry.result is not Result.PASS:
            self._held[entry.result].append({"id": entry.id, "why": entry.why})
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        sums: dict[str, Any] = {"total": totals.entries, "passed": totals.results[Result.PASS]}
        lists = {name: self._held[result] for name, result in _LISTS.items()}
        yield indented_json({**sums, **lists}) + "\n"


def _indented_json(value: dict[str, Any], depth: int) -> str:
    return "\n".join(_INDENT * depth + line for line in indented_json(value).split("\n"))
