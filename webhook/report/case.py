"""The result of one case of a suite. Knows neither formats nor how cases run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import Phase
from webhook.report.finding import Finding, Result, Subject, findings_of_object
from webhook.report.rule import Rules
from webhook.rules.decisions import Decision, ValidationAction
from webhook.yamltext.source_line import Place

_Evaluation: TypeAlias = Literal["admit", "deny", "error", "unknown"]

_EVALUATIONS: Final[Mapping[Result, _Evaluation]] = {
    Result.PASS: "admit",
    Result.FAIL: "deny",
    Result.ERROR: "error",
    Result.SKIP: "unknown",
}


class CaseResult(Struct, frozen=True, kw_only=True):
    """The result of a case: `fail` if something differs, `skip` if it was not run, `error` if it has mistakes.

    `why` is "" for a pass. `line` is its line in the suite, from 1; 0 if it is not known. `elapsed_s` is how long it
    took. `is_told`: a person wants it named though nothing is wrong with it.
    """

    id: str
    suite: str
    result: Result = Result.PASS
    why: str = ""
    notes: tuple[str, ...] = ()
    line: int = 0
    elapsed_s: float = 0.0
    is_told: bool = False

    @property
    def place(self) -> Place:
        """Return the place of the case in its file."""
        return Place(file=self.suite, line=self.line)

    def findings(self, rules: Rules) -> tuple[Finding, ...]:
        """Return the case as a finding, for formats that know only findings: the suite replaces the policy."""
        subject = Subject(api_version="", kind="Case", namespace="", name=self.id)
        outcome = Decision(
            policy=self.suite,
            binding="",
            evaluation=_EVALUATIONS[self.result],
            lets_pass=self.result is Result.SKIP,
            actions=(ValidationAction.DENY,),
            message=self.why,
        )
        return findings_of_object([(Phase.VALIDATE, outcome)], subject, lambda _, __: self.place, rules)
