"""Converts findings, answers and case results to plain JSON values, for all JSON formats.

Only explanations have durations. All other output is equal in each run.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from webhook.admission.respond import json_of_unread_part
from webhook.apimachinery.attributes import JSON, Phase
from webhook.report.counts import NotEvaluated
from webhook.report.finding import Copy, Finding, Result, Subject
from webhook.report.results import Answer, CaseResult
from webhook.rules.decisions import Decision, Explanation
from webhook.rules.problem import MissingObject, Problem
from webhook.text import terminal
from webhook.yamltext.source_line import Place

SCHEMA_VERSION: Final = 1
"""The version of the JSON of audits. A field that changes its meaning or is removed raises the version."""
_JSON: Final = msgspec.json.Encoder(enc_hook=json_of_unread_part)


def json_on_one_line(value: JSON) -> str:
    """Return the JSON of a value on one line. Control characters are escaped for terminals and CI systems."""
    return terminal.escape_json_text(json.dumps(value, ensure_ascii=False, default=str))


def compact_json(value: JSON) -> str:
    """Return the JSON of a value on one line without spaces. Control characters are escaped."""
    try:
        text = _JSON.encode(value).decode()
    except UnicodeEncodeError:  # half of a surrogate pair is written as an escape
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return terminal.escape_json_text(text)


def indented_json(value: JSON) -> str:
    """Return the JSON of a value with an indentation of two. Control characters are escaped."""
    return msgspec.json.format(compact_json(value), indent=2)


def record_of_finding(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON: its result, its rule, its decision, the object and the place."""
    subject = finding.subject
    return {
        "schemaVersion": SCHEMA_VERSION,
        "result": str(finding.result),
        "rule": finding.rule.id,
        **record_of_decision(finding.decision),
        "path": finding.path,
        "message": finding.message,
        "fix": finding.message_and_fix()[1],
        "ruleUrl": finding.rule.docs,
        "problem": record_of_problem(finding.problem) if finding.problem else None,
        "missing": [record_of_missing(each) for each in finding.missing],
        "exception": finding.exception_reason,
        "phase": str(finding.phase),
        "object": _record_of_subject(subject),
        **record_of_place(finding.place),
    }


def record_of_copy(copy: Copy) -> dict[str, Any]:
    """Return a copied object with the same finding as JSON: the object, and the place of the finding in its file."""
    return {"object": _record_of_subject(copy.subject), **record_of_place(copy.place)}


def record_of_not_evaluated(each: NotEvaluated) -> dict[str, Any]:
    """Return as JSON why rules were not evaluated, the number of objects concerned, and the first object."""
    return {
        "why": each.why,
        "missing": record_of_missing(each.missing) if each.missing else None,
        "objects": each.objects,
        "rules": list(each.rules),
        "first": {"object": _record_of_subject(each.subject), **record_of_place(each.place)},
    }


def record_of_problem(problem: Problem) -> dict[str, Any]:
    """Return a problem as JSON. Its place is in the finding or decision."""
    return {
        "rule": problem.code,
        "path": problem.path,
        "found": problem.found,
        "message": problem.message,
        "fix": problem.fix,
        "also": list(problem.also),
        "missing": [record_of_missing(each) for each in problem.missing],
    }


def record_of_missing(missing: MissingObject) -> dict[str, Any]:
    """Return a missing object as JSON."""
    return {"kind": missing.kind, "namespace": missing.namespace, "name": missing.name, "why": missing.why}


def record_of_decision(decision: Decision) -> dict[str, Any]:
    """Return a decision as JSON, without its problems."""
    return {
        "policy": decision.policy,
        "binding": decision.binding,
        "param": decision.param,
        "kind": decision.kind,
        "index": decision.index,
        "evaluation": decision.evaluation,
        "action": decision.action,
        "actions": [str(action) for action in decision.actions],
        "path": decision.path,
        "message": decision.message,
        "reason": decision.reason,
        "code": decision.code,
        "severity": decision.severity,
        "category": decision.category,
    }


def record_of_answer(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON, with explanations if any. An allowed answer has code 200, and no reason or message."""
    explained = [_record_of_explanation(phase, each) for phase, each in answer.explanations]
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
        "decisions": [_full_record_of_decision(phase, decision) for phase, decision in answer.decisions],
        "furtherDecisions": [_full_record_of_decision(phase, decision) for phase, decision in answer.further],
        "response": answer.response,
        **({"explanations": explained} if explained else {}),
    }


def _record_of_explanation(phase: Phase, explained: Explanation) -> dict[str, Any]:
    return {
        "phase": str(phase),
        "policy": explained.policy,
        "kind": explained.kind,
        "binding": explained.binding,
        "param": explained.param,
        "path": explained.place,
        "outcome": explained.outcome,
        "reason": explained.reason,
        "elapsedMs": round(explained.elapsed_s * 1000, 3),
        "cost": explained.cost,
    }


def _full_record_of_decision(phase: Phase, decision: Decision) -> dict[str, Any]:
    return {
        "phase": str(phase),
        "rule": decision.rule,
        **record_of_decision(decision),
        "problems": [record_of_problem(problem) for problem in decision.problems],
        "missing": [record_of_missing(each) for each in decision.missing],
    }


def record_of_case(case: CaseResult) -> dict[str, Any]:
    """Return the suite, whether the case passed, the result, and the reason, as JSON."""
    return {
        "suite": case.suite,
        "line": case.line,
        "id": case.id,
        "passed": case.result is Result.PASS,
        "result": str(case.result),
        "why": case.why,
    }


def _record_of_subject(subject: Subject) -> dict[str, str]:
    return {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
    }


def record_of_place(place: Place) -> dict[str, Any]:
    """Return a place in the input as JSON."""
    return {"file": place.file, "line": place.line, "column": place.column}
