"""Filters findings by rule, by severity, and by a baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from webhook.decisions import severity_rank
from webhook.report.baseline import KNOWN
from webhook.report.finding import Finding
from webhook.report.fingerprint import Fingerprints
from webhook.report.rule import RuleName, rule_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The options of filters. `rules`: only these, all if empty. `skip`: never these. `min_severity`: the least, "" for
    any.

    A rule is named by its id, or by its group or policy. baseline: fingerprints of known findings, each with a text.
    """

    rules: Collection[str] = ()
    skip: Collection[str] = ()
    min_severity: str = ""
    baseline: Mapping[str, str] = field(default_factory=dict)

    def allows_finding(self, finding: Finding) -> bool:
        """Return whether a finding passes the filters, the baseline aside."""
        return self.allows_rule(rule_name(finding.rule, finding.decision))

    def allows_rule(self, name: RuleName) -> bool:
        """Return whether findings of a rule pass the filters, the baseline aside."""
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

    `known` are the fingerprints of the baseline that were found again.
    """

    def __init__(self, filters: Filters) -> None:
        self._filters = filters
        self._fingerprints = Fingerprints()
        self.known: set[str] = set()

    def counts_passes_of_rule(self, name: RuleName) -> bool:
        """Return whether passes of a rule are counted; a baseline has none."""
        return self._filters.allows_rule(name)

    def is_reported(self, finding: Finding) -> bool:
        """Return whether this finding is reported."""
        if self._is_in_baseline(finding):
            return False
        return self._filters.allows_finding(finding)

    def _is_in_baseline(self, finding: Finding) -> bool:
        """Return whether the baseline contains it; checked first, so that hidden findings do not count as gone."""
        if not self._filters.baseline or finding.result not in KNOWN or finding.is_advice:
            return False
        fingerprint = self._fingerprints.next_fingerprint(finding)
        if fingerprint not in self._filters.baseline:
            return False
        self.known.add(fingerprint)
        return True
