"""Writes the code quality report of GitLab, from which a merge request shows new and fixed findings.

Follows the part of the Code Climate specification that GitLab reads (docs.gitlab.com, "Code Quality report format"):
description, check_name, fingerprint, severity, location. Passes and findings with missing objects are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from webhook.report.baseline import Fingerprints
from webhook.report.finding import Finding, Result
from webhook.report.rule import Rules
from webhook.report.writer import Totals
from webhook.text.terminal import escape_json_text
from webhook.yamltext.source_line import Place

_SEVERITIES: Final = {"critical": "blocker", "high": "critical", "medium": "major", "low": "minor", "info": "info"}
_BY_RESULT: Final = {Result.FAIL: "major", Result.WARN: "minor", Result.ERROR: "major"}


class GitlabFindingsWriter:
    """Writes one JSON array, finding by finding."""

    def __init__(self) -> None:
        self._fingerprints = Fingerprints()
        self._is_first = True

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield "["

    def entry(self, entry: Finding) -> Iterator[str]:
        if entry.result in _BY_RESULT:
            described = {"description": f"{entry.subject}: {entry.message}", "check_name": entry.rule.id}
            yield self._issue(
                described, self._fingerprints.next_fingerprint(entry), _severity_of_finding(entry), entry.place
            )

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield an issue for each unreadable file, and the end of the array."""
        for each in totals.unreadable:
            described = {"description": each.message, "check_name": "cannot-be-read"}
            yield self._issue(described, str(each), "blocker", Place(file=each.file, line=each.line))
        yield "\n]\n"

    def _issue(self, described: dict[str, Any], fingerprint: str, severity: str, place: Place) -> str:
        location = {"path": place.file.removeprefix("./"), "lines": {"begin": max(place.line, 1)}}
        issue = {**described, "fingerprint": fingerprint, "severity": severity, "location": location}
        before = "\n" if self._is_first else ",\n"
        self._is_first = False
        return before + escape_json_text(json.dumps(issue, ensure_ascii=False))


def _severity_of_finding(finding: Finding) -> str:
    if finding.is_advice:
        return "info"
    return _SEVERITIES.get(finding.rule.severity, _BY_RESULT[finding.result])
