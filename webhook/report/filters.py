"""Filters findings by rule, by severity, and by a baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field

from webhook.report.baseline import KNOWN, Fingerprints
from webhook.report.finding import Finding, Result
from webhook.report.rule import rule_name
from webhook.rules.decisions import severity_rank


class Filters(Struct, frozen=True, kw_only=True):
    """The options of filters. A rule is named by its id, group or policy.

    Attributes:
        rules: the only rules to report; all if empty.
        skip: rules to leave out.
        min_severity: the lowest severity to report; "" for any.
        baseline: fingerprints of known findings, each with a text.
        without_configuration: the filters of the flags; None if the configuration adds no filter.
    """

    rules: Collection[str] = ()
    skip: Collection[str] = ()
    min_severity: str = ""
    baseline: Mapping[str, str] = field(default_factory=dict)
    without_configuration: Filters | None = None

    def is_hidden_by_configuration(self, finding: Finding) -> bool:
        """Return whether a hidden finding would be reported without the configuration."""
        other = self.without_configuration
        return other is not None and finding.result is not Result.PASS and other.allows_finding(finding)

    def allows_finding(self, finding: Finding) -> bool:
        """Return whether a finding passes the filters other than the baseline."""
        name = rule_name(finding.rule, finding.decision)
        names = {name.rule, name.rule.partition("/")[0], name.policy}
        if self.rules and names.isdisjoint(self.rules):
            return False
        if not names.isdisjoint(self.skip):
            return False
        return not self.min_severity or severity_rank(name.severity) <= severity_rank(self.min_severity)


ALL = Filters()
"""The filters that report everything."""


class FindingFilter:
    """Filters the findings of a whole run in order, because fingerprints number repeated findings.

    Attributes:
        known: the fingerprints of the baseline that occurred in this run.
        hidden: the number of findings that only the configuration hides.
    """

    def __init__(self, filters: Filters) -> None:
        self._filters = filters
        self._fingerprints = Fingerprints()
        self.known: set[str] = set()
        self.hidden = 0

    def is_reported(self, finding: Finding) -> bool:
        is_reported = not self._is_in_baseline(finding) and self._filters.allows_finding(finding)
        self.hidden += not is_reported and self._filters.is_hidden_by_configuration(finding)
        return is_reported

    def _is_in_baseline(self, finding: Finding) -> bool:
        """Return whether the baseline has the finding. Call this method before the other filters: a finding that the
        other filters hide also gets a number, and also occurs in this run.
        """
        if not self._filters.baseline or finding.result not in KNOWN or finding.is_advice:
            return False
        fingerprint = self._fingerprints.next_fingerprint(finding)
        if fingerprint not in self._filters.baseline:
            return False
        self.known.add(fingerprint)
        return True
