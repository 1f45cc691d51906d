"""A report for programs: one JSON document."""

from __future__ import annotations

import json
from typing import Any

from webhook import terminal
from webhook.attributes import JSON
from webhook.decisions import Decision
from webhook.report.finding import Finding, Place, Report


def write(report: Report) -> str:
    """Findings (passes included), documents that are no objects, unreadable files and the summary."""
    return terminal.exact_json(json.dumps(document(report), indent=2, ensure_ascii=False)) + "\n"


def document(report: Report) -> JSON:
    """The same as plain JSON values."""
    return {
        "objects": report.objects,
        "files": report.files,
        "summary": {str(result): count for result, count in report.summary.items()},
        "findings": [_finding(finding) for finding in report.findings],
        "notKubernetes": [{**_place(foreign.place), "reason": foreign.why} for foreign in report.foreign],
        "unreadable": [
            {"file": problem.file, "line": problem.line, "column": problem.column, "reason": problem.message}
            for problem in report.unreadable
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    about = finding.subject
    return {
        "result": str(finding.result),
        **decision(finding.decision),
        "phase": str(finding.phase),
        "object": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
        },
        **_place(finding.place),
    }


def decision(made: Decision) -> dict[str, Any]:
    """One decision in JSON; how long it took is left out, so that output is stable."""
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


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}
