"""Writes SARIF 2.1.0 for code scanning: rules with their help, and a result for each finding.

Follows the OASIS standard of 2020, and what GitHub reads: relative addresses of files, `partialFingerprints`, one
location for each result. A rule that could not be evaluated is a notification of the run. Rules come before results in
the file, so results are kept until the end, in a temporary file if there are many (spool).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final
from urllib.parse import quote

from webhook import __version__
from webhook.report.baseline import Fingerprints
from webhook.report.finding import Finding, Result
from webhook.report.records import indented_json
from webhook.report.rule import Rule, Rules
from webhook.report.spool import Spool
from webhook.report.writer import Totals
from webhook.text.wording import counted
from webhook.yamltext.source_line import Place, SourceLine

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Result.FAIL: "error", Result.WARN: "warning"}
_SECURITY_SEVERITIES: Final = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "3.0", "info": "1.0"}
"""Scores by which GitHub orders rules. Each score is in the middle of a range of GitHub; the ranges begin at 9.0, 7.0
and 4.0."""
_MOST_RELATED: Final = 100
"""A result has at most this number of places of copies."""
_FINGERPRINT: Final = "claimgate/v1"
_NOTICES_HERE, _RESULTS_HERE = "notices", "results"
"""Placeholders for the long arrays while the rest of the log is written. A placeholder is a line of its own, and texts
have no line breaks, so no text equals a placeholder.
"""


class SarifWriter:
    """Writes one log with one run."""

    def __init__(self) -> None:
        self._rules: dict[str, tuple[int, Rule]] = {}
        self._results: Spool[str] = Spool()
        self._notices: Spool[str] = Spool()
        self._unread: list[str] = []
        self._fingerprints = Fingerprints()

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        if entry.result in _LEVELS:
            self._rules.setdefault(entry.rule.id, (len(self._rules), entry.rule))
            self._results.append(indented_json(self._result(entry)))
        elif entry.result is Result.ERROR:
            text = f"{entry.subject}: {entry.rule.id}: {entry.message}"
            self._notices.append(indented_json(_tool_notification("error", text, entry.place)))
        yield from ()

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the whole log. Unreadable files and rules that were not evaluated are notifications."""
        for each in totals.unreadable:
            place = Place(file=each.file, line=each.line)
            self._unread.append(indented_json(_tool_notification("error", each.message, place)))
        for reason in totals.counts.not_evaluated.values():
            text = f"not evaluated: {reason.why} ({counted(reason.objects, 'object')}, first {reason.subject})"
            self._notices.append(indented_json(_tool_notification("note", text, reason.place)))
        driver = {
            "name": "claimgate",
            **({"informationUri": totals.run.docs_address} if totals.run.docs_address else {}),
            "semanticVersion": __version__,
            "rules": [_reporting_descriptor(rule) for _, rule in self._rules.values()],
        }
        invocation = {"executionSuccessful": not totals.unreadable, "toolExecutionNotifications": [_NOTICES_HERE]}
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": [_RESULTS_HERE],
            "properties": {
                "summary": totals.objects_as_json(),
                **({"leftOut": totals.configured.as_json()} if totals.configured else {}),
            },
        }
        text = indented_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
        head, between = text.split(f'[\n            "{_NOTICES_HERE}"\n          ]')
        between, tail = between.split(f'[\n        "{_RESULTS_HERE}"\n      ]')
        yield head
        yield from _json_array_text(chain(self._unread, self._notices), "          ")
        yield between
        yield from _json_array_text(self._results, "      ")
        yield f"{tail}\n"

    def _result(self, finding: Finding) -> dict[str, Any]:
        subject = finding.subject
        named = {"name": subject.name, "kind": "resource", "fullyQualifiedName": f"{subject.api_version} {subject}"}
        return {
            "ruleId": finding.rule.id,
            "ruleIndex": self._rules[finding.rule.id][0],
            "level": "note" if finding.is_advice else _LEVELS[finding.result],
            "message": {"text": f"{subject}: {finding.message}"},
            "locations": [
                {"physicalLocation": _physical_location(finding.place, finding.line), "logicalLocations": [named]}
            ],
            **({"relatedLocations": _related_locations(finding)} if finding.also_in else {}),
            "partialFingerprints": {_FINGERPRINT: self._fingerprints.next_fingerprint(finding)},
        }


def _json_array_text(items: Iterable[str], margin: str) -> Iterator[str]:
    """Yield a JSON array of texts. `margin` is the indentation of the array."""
    is_empty = True
    for item in items:
        lines = item.replace("\n", f"\n{margin}  ")
        yield f"{'[' if is_empty else ','}\n{margin}  {lines}"
        is_empty = False
    yield "[]" if is_empty else f"\n{margin}]"


def _reporting_descriptor(rule: Rule) -> dict[str, Any]:
    """Return a rule as a reportingDescriptor. The id describes a rule without a description."""
    described = rule.description or rule.id
    example = f"`claimgate explain {rule.id}` shows a bad and a good example." if rule.why else ""
    severity = _SECURITY_SEVERITIES.get(rule.severity)
    link = f"[{rule.id}]({rule.docs})" if rule.docs.startswith("https://") else ""
    descriptor: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": described},
        "fullDescription": {"text": rule.why or described},
        "help": {
            "text": "\n".join(filter(None, (described, rule.why, example))),
            "markdown": "\n\n".join(filter(None, (f"**{described}**", rule.why, example, link))),
        },
        "properties": {
            "tags": list(dict.fromkeys(filter(None, (rule.category, rule.policy)))),
            **({"security-severity": severity} if severity else {}),
        },
    }
    if link:
        descriptor["helpUri"] = rule.docs
    return descriptor


def _tool_notification(level: str, text: str, place: Place) -> dict[str, Any]:
    return {"level": level, "message": {"text": text}, "locations": [{"physicalLocation": _physical_location(place)}]}


def _related_locations(finding: Finding) -> list[dict[str, Any]]:
    return [
        {"physicalLocation": _physical_location(each.place), "message": {"text": f"{each.subject}: the same mistake"}}
        for each in finding.also_in[:_MOST_RELATED]
    ]


def _physical_location(place: Place, line: SourceLine | None = None) -> dict[str, Any]:
    """Return the region, and a contextRegion with the source line. Confidential values are hidden."""
    located: dict[str, Any] = {"artifactLocation": {"uri": quote(place.file.removeprefix("./"))}}
    if place.line:
        column = {"startColumn": place.column} if place.column else {}
        end = {"endColumn": place.column + line.length} if line and column else {}
        located["region"] = {"startLine": place.line, **column, **end}
        if line:
            located["contextRegion"] = {"startLine": place.line, "snippet": {"text": line.text}}
    return located
