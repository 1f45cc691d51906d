"""Writes one compact JSON object a line, for programs. Nothing is kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.report.answer import Answer
from webhook.report.case import CaseResult
from webhook.report.finding import Finding
from webhook.report.records import compact_json, record_of_answer, record_of_case, record_of_finding, record_of_place
from webhook.report.rule import Rules
from webhook.report.writer import Totals


class NdjsonWriter:
    """Writes a line for each entry, then lines for documents of an audit that are not Kubernetes objects."""

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Yield nothing, because the format has no beginning."""
        yield from ()

    def entry(self, entry: Finding | Answer | CaseResult) -> Sequence[str]:
        """Return the line of one entry."""
        if isinstance(entry, Finding):
            return (f"{compact_json(record_of_finding(entry))}\n",)
        if isinstance(entry, Answer):
            return (f"{compact_json(record_of_answer(entry))}\n",)
        return (f"{compact_json(record_of_case(entry))}\n",)

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the lines for documents that were not audited."""
        for skipped in totals.skipped:
            record = {"result": "notKubernetes", **record_of_place(skipped.place), "reason": skipped.why}
            yield f"{compact_json(record)}\n"
