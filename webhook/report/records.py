"""Findings, answers and case results in plain JSON values, for every format that is JSON.

How long a decision took is left out, so that output is stable.
"""

from __future__ import annotations

import json
from typing import Any

from webhook import terminal
from webhook.attributes import JSON
from webhook.decisions import Decision
from webhook.report.answer import Answer
from webhook.report.case import CaseResult
from webhook.report.finding import Finding, Place


def encoded(value: JSON, **options: Any) -> str:
    """The text of a value, which no terminal and no CI system obeys."""
    return terminal.exact_json(json.dumps(value, ensure_ascii=False, **options))


def compact(value: JSON) -> str:
    """The text of a value on one line without blanks."""
    return encoded(value, separators=(",", ":"))


def of_finding(finding: Finding) -> dict[str, Any]:
    """A finding: its result, its rule, its decision, the object and the place."""
    about = finding.subject
    return {
        "result": str(finding.result),
        "rule": finding.rule.id,
        **of_decision(finding.decision),
        "docs": finding.rule.docs,
        "phase": str(finding.phase),
        "object": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
        },
        **of_place(finding.place),
    }


def of_decision(made: Decision) -> dict[str, Any]:
    """A decision."""
    return {
        "policy": made.policy,
        "binding": made.binding,
        "param": made.param,
        "kind": made.kind,
        "index": made.index,
        "evaluation": made.evaluation,
        "action": made.action,
        "actions": [str(action) for action in made.actions],
        "path": made.path,
        "message": made.message,
        "reason": made.reason,
        "code": made.code,
        "severity": made.severity,
        "category": made.category,
    }


def of_answer(answer: Answer) -> dict[str, Any]:
    """An answer: code 200 and no reason or message when allowed."""
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
        "decisions": [{"phase": str(phase), **of_decision(decision)} for phase, decision in answer.decisions],
        "response": answer.response,
    }


def of_case(case: CaseResult) -> dict[str, Any]:
    """A case result: the suite, whether it passed, and why not."""
    return {"suite": case.suite, "id": case.id, "passed": not case.why, "why": case.why}


def of_place(place: Place) -> dict[str, Any]:
    """A place in the input."""
    return {"file": place.file, "line": place.line, "column": place.column}
