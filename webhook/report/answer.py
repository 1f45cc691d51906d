"""Answers of replay: one per review, with its findings. Knows neither a format nor how an answer came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.admission.enforce import warnings_of_decisions
from webhook.attributes import JSON, Phase
from webhook.decisions import Decision, ValidationAction, Verdict
from webhook.explanation import Explanation
from webhook.problems.text import problem_as_sentence
from webhook.report.finding import Finding, Locate, Place, Subject, findings
from webhook.report.rule import Rules

SERVER = "claimgate"
"""The policy of findings about a server's answer: it says what it answers, not which policies decided."""

_OPEN: Final = "not evaluated: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered to one review. `response` is the whole AdmissionReview; `phase` is the one asked for.

    `explanations` say why each policy spoke or did not, where that was asked for. `further` is what the validating
    phase says of a request that the mutating phase denied.
    """

    place: Place
    index: int
    subject: Subject
    operation: str
    phase: str
    verdict: Verdict
    decisions: tuple[tuple[Phase, Decision], ...]
    patched_object: JSON
    response: JSON
    locate: Locate
    explanations: tuple[tuple[Phase, Explanation], ...] = ()
    further: tuple[tuple[Phase, Decision], ...] = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be evaluated but was let through, in the policies' words; once where a place is told."""
        texts = (
            decision.message if decision.evaluation == "unknown" else f"{_OPEN}{decision.message}"
            for decision in self._open()
            if not decision.is_told  # that is a warning
        )
        told = dict.fromkeys(texts)
        placed = {text.partition(f": {_OPEN}")[2] for text in told if not text.startswith(_OPEN)}
        return tuple(text for text in told if not text.startswith(_OPEN) or text.removeprefix(_OPEN) not in placed)

    @property
    def exceptions(self) -> tuple[str, ...]:
        """What a site has excepted, each once with the rule and the reason."""
        told = [each for _, each in self.decisions if each.exception]
        return tuple(dict.fromkeys(f"{each.rule or each.policy}: {each.exception}" for each in told))

    @property
    def advice(self) -> tuple[str, ...]:
        """What rules of level advice say, each once with its rule."""
        told = [each for _, each in self.decisions if each.is_advice and each.evaluation == "deny"]
        return tuple(
            dict.fromkeys(f"{problem_as_sentence(each)} ({each.code})" for made in told for each in made.problems)
        )

    @property
    def is_undecided(self) -> bool:
        """Whether a rule that may deny could not be evaluated; one that only warns leaves the verdict as it is."""
        return any(each.is_enforced for each in self._open())

    def findings(self, rules: Rules) -> tuple[Finding, ...]:
        """The same as findings, for formats that know nothing else."""
        decided = (*self.decisions, *self.further) or self._messages_of_server()
        return findings(decided, self.subject, self.locate, rules)

    @property
    def further_warnings(self) -> tuple[str, ...]:
        """What the validating phase warns of, which a denial in the mutating phase does not tell."""
        texts = warnings_of_decisions([each for _, each in self.further])
        return tuple(text for text in texts if text not in self.verdict.warnings)

    def _open(self) -> Iterator[Decision]:
        for _, decision in self.decisions:
            if decision.evaluation in ("unknown", "error") and decision.action == "admit" and not decision.exception:
                yield decision

    def _messages_of_server(self) -> Iterator[tuple[Phase, Decision]]:
        """What an answer without decisions says: the denial and each warning."""
        status, phase = self.verdict.status, Phase.VALIDATE if self.phase == "auto" else Phase(self.phase)
        if status is not None and not self.verdict.allowed:
            for cause in status.details.causes if status.details else ():
                said = f"{cause.field}: {cause.message}"
                yield phase, _decision(ValidationAction.DENY, said, status.reason, status.code)
            if not status.details:
                yield phase, _decision(ValidationAction.DENY, status.message, status.reason, status.code)
        for warning in self.verdict.warnings:
            yield phase, _decision(ValidationAction.WARN, warning)


def _decision(action: ValidationAction, message: str, reason: str = "", code: int = 0) -> Decision:
    return Decision(
        policy=SERVER,
        binding="",
        action="deny",
        evaluation="deny",
        actions=(action,),
        message=message,
        reason=reason,
        code=code,
    )
