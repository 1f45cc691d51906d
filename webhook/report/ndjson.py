"""Writes one compact JSON object on each line, for programs. Nothing is kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.report.finding import Finding
from webhook.report.records import (
    SCHEMA_VERSION,
    compact_json,
    record_of_answer,
    record_of_case,
    record_of_finding,
    record_of_not_evaluated,
    record_of_place,
)
from webhook.report.results import Answer, CaseResult
from webhook.report.rule import Rules
from webhook.report.writer import Totals


class NdjsonWriter:
    """Writes a line for each answer or case."""

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding | Answer | CaseResult) -> Sequence[str]:
        if isinstance(entry, Finding):
            return (f"{compact_json(record_of_finding(entry))}\n",)
        if isinstance(entry, Answer):
            return (f"{compact_json(record_of_answer(entry))}\n",)
        return (f"{compact_json(record_of_case(entry))}\n",)

    def end(self, _totals: Totals) -> Iterator[str]:
        yield from ()


class NdjsonFindingsWriter(NdjsonWriter):
    """Writes a line for each finding, then rules that were not evaluated, other documents, and sums."""

    def end(self, totals: Totals) -> Iterator[str]:
        for each in totals.counts.not_evaluated.values():
            yield _line_of_result("notEvaluated", record_of_not_evaluated(each))
        for skipped in totals.skipped:
            yield _line_of_result("notKubernetes", {**record_of_place(skipped.place), "reason": skipped.why})
        yield _line_of_result("summary", totals.objects_as_json())


def _line_of_result(result: str, record: dict[str, Any]) -> str:
    return f"{compact_json({'schemaVersion': SCHEMA_VERSION, 'result': result, **record})}\n"
