"""How one case of a suite went. Knows neither a format nor how cases run."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.attributes import Phase
from webhook.decisions import Decision, ValidationAction
from webhook.report.finding import Finding, Place, Subject, findings
from webhook.report.rule import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """How a case went. `why` is "" for a pass."""

    id: str
    suite: str
    why: str = ""

    def findings(self, rules: Rules) -> tuple[Finding, ...]:
        """The same as a finding, for formats that know nothing else: the suite stands for the policy."""
        subject = Subject(api_version="", kind="Case", namespace="", name=self.id)
        outcome = Decision(
            policy=self.suite,
            binding="",
            action="deny" if self.why else "admit",
            evaluation="deny" if self.why else "admit",
            actions=(ValidationAction.DENY,),
            message=self.why,
        )
        return findings([(Phase.VALIDATE, outcome)], subject, lambda _: Place(file=self.suite), rules)
