"""Results in a report besides findings: the answers of a replay, and the case results of a suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.admission.enforce import warnings_of_decisions
from webhook.apimachinery.attributes import JSON, Phase
from webhook.report.finding import Finding, Result, Subject, findings_of_object
from webhook.report.rule import Rules
from webhook.rules.decisions import NO_REASON, Decision, DenialReason, Explanation, ValidationAction, Verdict
from webhook.rules.text import problem_as_sentence, with_short_expression
from webhook.yamltext.source_line import Locate, Place

SERVER = "claimgate"
"""The policy of findings about the answer of a server, because the answer names no policies."""

_OPEN: Final = "not evaluated: "


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to one review.

    Attributes:
        response: the whole AdmissionReview.
        phase: the requested phase.
        explanations: why each policy has its result, if requested.
        further: decisions that a denial in the mutating phase also reports.
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
    def unevaluated_messages(self) -> tuple[str, ...]:
        """Return the distinct messages about rules that could not be evaluated and let the object pass."""
        shown = (
            (decision, with_short_expression(decision.message))
            for decision in self._unevaluated_admitted_decisions()
            if not decision.warns_user  # the warnings already have the other decisions
        )
        texts = (text if decision.evaluation == "unknown" else f"{_OPEN}{text}" for decision, text in shown)
        messages = dict.fromkeys(texts)
        texts_with_place = {text.partition(f": {_OPEN}")[2] for text in messages if not text.startswith(_OPEN)}
        return tuple(
            text for text in messages if not text.startswith(_OPEN) or text.removeprefix(_OPEN) not in texts_with_place
        )

    @property
    def applied_exceptions(self) -> tuple[str, ...]:
        """Return the distinct exceptions that applied, each with its rule."""
        decisions = [each for _, each in self.decisions if each.exception]
        return tuple(dict.fromkeys(f"{each.rule or each.policy}: {each.exception}" for each in decisions))

    @property
    def advice_texts(self) -> tuple[str, ...]:
        """Return the distinct texts of advice, each with its rule."""
        decisions = [each for _, each in self.decisions if each.is_advice and each.evaluation == "deny"]
        return tuple(
            dict.fromkeys(
                f"{problem_as_sentence(each)} ({each.code})" for decision in decisions for each in decision.problems
            )
        )

    @property
    def is_open(self) -> bool:
        """Return whether a rule, advice aside, could not be evaluated."""
        return any(not each.is_advice for each in self._unevaluated_admitted_decisions())

    @property
    def is_undecided(self) -> bool:
        """Return whether a rule that may deny could not be evaluated."""
        return any(each.is_enforced for each in self._unevaluated_admitted_decisions())

    def findings(self, rules: Rules) -> tuple[Finding, ...]:
        decided = (*self.decisions, *self.further) or self._decisions_of_server()
        return findings_of_object(decided, self.subject, self.locate, rules)

    @property
    def hidden_validating_warnings(self) -> tuple[str, ...]:
        """Return the warnings of the validating phase that users do not get, because the mutating phase denied."""
        texts = warnings_of_decisions([each for _, each in self.further])
        # warnings of the verdict may have links or the wording of API servers, so the plain texts are made again
        shown = warnings_of_decisions([each for _, each in self.decisions])
        return tuple(text for text in texts if text not in shown)

    def _unevaluated_admitted_decisions(self) -> Iterator[Decision]:
        for _, decision in self.decisions:
            if decision.evaluation in ("unknown", "error") and decision.action == "admit" and not decision.exception:
                yield decision

    def _decisions_of_server(self) -> Iterator[tuple[Phase, Decision]]:
        """Yield a decision for the denial and each warning, because the answer of a server has no decisions."""
        status, phase = self.verdict.status, Phase.VALIDATE if self.phase == "auto" else Phase(self.phase)
        if status is not None and not self.verdict.allowed:
            denial = DenialReason(status.reason, status.code)
            for cause in status.details.causes if status.details else ():
                message = f"{cause.field}: {cause.message}"
                yield phase, _decision_of_server(ValidationAction.DENY, message, denial)
            if not status.details:
                yield phase, _decision_of_server(ValidationAction.DENY, status.message, denial)
        for warning in self.verdict.warnings:
            yield phase, _decision_of_server(ValidationAction.WARN, warning)


def _decision_of_server(action: ValidationAction, message: str, denial: DenialReason = NO_REASON) -> Decision:
    return Decision(
        policy=SERVER,
        binding="",
        evaluation="deny",
        actions=(action,),
        message=message,
        denial=denial,
    )


_Evaluation: TypeAlias = Literal["admit", "deny", "error", "unknown"]

_EVALUATIONS: Final[Mapping[Result, _Evaluation]] = {
    Result.PASS: "admit",
    Result.FAIL: "deny",
    Result.ERROR: "error",
    Result.SKIP: "unknown",
}


class CaseResult(Struct, frozen=True, kw_only=True):
    """The result of a case.

    Attributes:
        result: `fail` if something differs, `skip` if the case was not run, `error` if the case has mistakes.
        why: the reason; "" for a pass.
        line: the line in the suite, from 1; 0 if unknown.
        elapsed_s: the duration.
        is_listed: whether to list the case even if it passes.
    """

    id: str
    suite: str
    result: Result = Result.PASS
    why: str = ""
    notes: tuple[str, ...] = ()
    line: int = 0
    elapsed_s: float = 0.0
    is_listed: bool = False

    @property
    def place(self) -> Place:
        return Place(file=self.suite, line=self.line)

    def findings(self, rules: Rules) -> tuple[Finding, ...]:
        """Return the case as a finding, with the suite as its policy."""
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
