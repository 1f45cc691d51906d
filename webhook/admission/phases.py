"""Runs one request through the admission phases, in this process or in a server.

`auto` works as an API server: the mutating phase on the submitted object, then the validating phase on the result.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Attributes, Operation, Phase
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.evaluation.review_options import DEFAULT, ReviewOptions
from webhook.evaluation.trace import ReviewTrace
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, Explanation, Verdict

PhaseName: TypeAlias = Literal["auto", "mutate", "validate"]


class ReviewAnswerer(Protocol):
    """Answers one review in one phase."""

    def answer(self, attributes: Attributes, phase: Phase) -> Verdict:
        """Return the verdict on this request."""
        ...


class LocalAnswerer(Struct, frozen=True, kw_only=True):
    """Answers with the core in this process.

    `timeout_s` bounds one phase, by default as an API server bounds the call of a webhook. The bound is for the
    processor time of this process: on a busy CI runner, the first review waits long for other processes while it
    imports modules. With `explains`, verdicts say for each policy why it denies, admits or does not apply.
    """

    policies: PolicySet
    cluster: Cluster
    options: ReviewOptions = DEFAULT
    explains: bool = False
    timeout_s: float = 10.0

    def answer(self, attributes: Attributes, phase: Phase) -> Verdict:
        """Return the verdict. A policy that is not evaluated in time fails, as in a cluster."""
        return answer_request(
            attributes,
            self.policies,
            self.cluster,
            phase=phase,
            deadline=Deadline(process_time() + self.timeout_s, clock=process_time),
            authorizer=self.options.authorizer,
            options=replace(self.options, trace=ReviewTrace()) if self.explains else self.options,
        )


class PhasesOutcome(Struct, frozen=True, kw_only=True):
    """The combined result of the phases.

    `further`: decisions that the message of a denial in the mutating phase also reports.
    """

    verdict: Verdict
    decisions: tuple[tuple[Phase, Decision], ...]
    patched_object: JSON
    explanations: tuple[tuple[Phase, Explanation], ...] = ()
    further: tuple[tuple[Phase, Decision], ...] = ()


def run_phases(attributes: Attributes, phase: PhaseName, answerer: ReviewAnswerer) -> PhasesOutcome:
    """Run one phase, or with `auto` both phases. A denial in the first phase ends the run."""
    if phase != "auto":
        return _combine_verdicts_of_phases(attributes, (Phase(phase), answerer.answer(attributes, Phase(phase))))
    first = answerer.answer(attributes, Phase.MUTATE)
    if not first.allowed:
        return _combine_verdicts_of_phases(attributes, (Phase.MUTATE, first))
    changed = replace(attributes, object=_object_after_patch(attributes, first)) if first.patch else attributes
    return _combine_verdicts_of_phases(
        attributes, (Phase.MUTATE, first), (Phase.VALIDATE, answerer.answer(changed, Phase.VALIDATE))
    )


def _object_after_patch(attributes: Attributes, verdict: Verdict) -> JSON:
    if verdict.patch and attributes.operation is not Operation.DELETE:
        return verdict.patched_object
    return attributes.object


def _combine_verdicts_of_phases(attributes: Attributes, *answered: tuple[Phase, Verdict]) -> PhasesOutcome:
    # equal warnings appear once
    first, last = answered[0][1], answered[-1][1]
    decisions = tuple([(phase, decision) for phase, verdict in answered for decision in verdict.decisions])
    joined = Verdict(
        allowed=last.allowed,
        decisions=tuple([decision for _, decision in decisions]),
        status=last.status,
        warnings=tuple(dict.fromkeys(text for _, verdict in answered for text in verdict.warnings)),
        audit_annotations={key: text for _, verdict in answered for key, text in verdict.audit_annotations.items()},
        patch=first.patch if last.allowed else (),
        patched_object=_object_after_patch(attributes, first) if last.allowed else None,
        further=last.further,
    )
    explanations = tuple((phase, each) for phase, verdict in answered for each in verdict.explanations)
    further = tuple((Phase.MUTATE if each.kind == "mutating" else Phase.VALIDATE, each) for each in joined.further)
    return PhasesOutcome(
        verdict=joined,
        decisions=decisions,
        patched_object=joined.patched_object,
        explanations=explanations,
        further=further,
    )
