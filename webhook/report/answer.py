"""Answers of replay: one record per review, and its three formats. Knows nothing of how an answer came about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook import terminal
from webhook.attributes import JSON, Phase
from webhook.decisions import Decision, ValidationAction, Verdict
from webhook.report.finding import Place, Subject
from webhook.report.json import decision as decision_json

_VALUE_WIDTH = 160
"""Characters of a patch's value in text output; the whole value is in json and ndjson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered to one review. `response` is the whole AdmissionReview; `phase` is the one asked for."""

    place: Place
    index: int
    subject: Subject
    operation: str
    phase: str
    verdict: Verdict
    decisions: tuple[tuple[Phase, Decision], ...]
    patched_object: JSON
    response: JSON

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be evaluated but was let through, in the policies' words."""
        texts = (
            decision.message if decision.evaluation == "unknown" else f"not evaluated: {decision.message}"
            for decision in self._open()
        )
        return tuple(dict.fromkeys(texts))

    @property
    def is_undecided(self) -> bool:
        """Whether a rule that may deny could not be evaluated; one that only warns leaves the verdict as it is."""
        return any(each.kind == "mutating" or ValidationAction.DENY in each.actions for each in self._open())

    def _open(self) -> Iterator[Decision]:
        for _, decision in self.decisions:
            if decision.evaluation == "unknown" or (decision.evaluation == "error" and decision.action == "admit"):
                yield decision


def ndjson(answers: Iterable[Answer]) -> str:
    """One compact JSON object per line."""
    return "".join(f"{_json(record(answer), separators=(',', ':'))}\n" for answer in answers)


def document(answers: Iterable[Answer]) -> str:
    """The same records as one JSON list."""
    return _json([record(answer) for answer in answers], indent=2) + "\n"


def _json(value: JSON, **options: Any) -> str:
    return terminal.exact_json(json.dumps(value, ensure_ascii=False, **options))


def record(answer: Answer) -> dict[str, Any]:
    """One answer in plain JSON: code 200 and no reason or message when allowed."""
    verdict, status = answer.verdict, answer.verdict.status
    denied = None if verdict.allowed else status
    return {
        "source": answer.place.file,
        "index": answer.index,
        "phase": answer.phase,
        "allowed": verdict.allowed,
        "code": denied.code if denied else 200,
        "reason": denied.reason if denied else "",
        "message": denied.message if denied else "",
        "warnings": list(verdict.warnings),
        "patch": list(verdict.patch),
        "patchedObject": answer.patched_object,
        "decisions": [{"phase": str(phase), **decision_json(decision)} for phase, decision in answer.decisions],
        "response": answer.response,
    }


def text(answers: Sequence[Answer]) -> str:
    """For people: a line per review, below it what the caller would see and what changes, and the sums."""
    lines = [line for answer in answers for line in _lines(answer)]
    denied = sum(not answer.verdict.allowed for answer in answers)
    many = "review" if len(answers) == 1 else "reviews"
    lines.append(f"{len(answers)} {many}: {len(answers) - denied} allowed, {denied} denied")
    return terminal.lines(lines)


def _lines(answer: Answer) -> Iterator[str]:
    verdict, status = answer.verdict, answer.verdict.status
    said = "allowed" if verdict.allowed or status is None else f"denied {status.code} {status.reason}"
    yield f"{answer.place}: {said}: {answer.operation} {answer.subject}"
    if not verdict.allowed and status is not None:
        yield from (f"    {line}" for line in terminal.message_lines(status.message))
    yield from (f"    warning: {warning}" for warning in verdict.warnings)
    yield from (f"    {unknown}" for unknown in answer.unknown)
    yield from (f"    patch: {operation(change)}" for change in verdict.patch)


def operation(change: Mapping[str, JSON]) -> str:
    """One patch operation on one line: `add /metadata/labels = {"a":"b"}`."""
    shown = f"{change['op']} {change['path']}"
    if "from" in change:
        return f"{shown} from {change['from']}"
    if "value" not in change:
        return shown
    value = _json(change["value"], separators=(",", ":"))
    return f"{shown} = {value if len(value) <= _VALUE_WIDTH else value[: _VALUE_WIDTH - 1] + '…'}"
