"""Policies over checks that find nothing: told without looking at policy, conditions and parameters again.

Nearly every review asks ten of them about a Pod, and nearly none has something to say. What does not depend on the Pod
(who is asked, with which parameter, which checks are about Pods, which decisions stand for "nothing wrong") is put
together once and kept until the view of the parameters changes. Whoever finds something is asked in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webhook.attributes import Operation
from webhook.decisions import Decision
from webhook.errors import BindingError, EvaluationError, LookupFailed, PatchError
from webhook.evaluation import params
from webhook.evaluation.match_conditions import conditions
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.facts.assumptions import Assumptions
from webhook.facts.check import Check
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding
from webhook.policy.standing_params import MOST_READ, is_standing


@dataclass(frozen=True, slots=True)
class Prepared:
    """What stands for a candidate: the checks of each group that are asked, and the decisions when all say nothing."""

    groups: Sequence[tuple[str, Sequence[Check]]]
    assumed: Assumptions
    admits: Sequence[Decision]


def admitted(candidate: Candidate, own: Target, context: RequestContext) -> Sequence[Decision] | None:
    """The decisions of a candidate whose checks have nothing to say of a Pod; None where it is to be asked in full.

    Raises:
        InlineBudgetSpent: the review takes too long for the event loop.
    """
    prepared = _prepared(candidate, context)
    if prepared is None:
        return None
    try:
        subject = context.subject_assuming(prepared.assumed, own.object, own.attributes)
        return prepared.admits if subject.says_nothing(prepared.groups) else None
    except (EvaluationError, LookupFailed, PatchError):
        return None  # whoever asks in full says it


def _prepared(candidate: Candidate, context: RequestContext) -> Prepared | None:
    kept = context.standing.prepared
    known = kept.get(id(candidate))
    if known is None or known[0] is not candidate:
        if len(kept) >= MOST_READ:  # candidates that nobody keeps: a cluster has some dozens
            kept.clear()
        known = kept[id(candidate)] = candidate, _prepare(candidate, context)
    prepared: Prepared | None = known[1]
    return prepared


def _prepare(candidate: Candidate, context: RequestContext) -> Prepared | None:
    policy, attributes = candidate.policy, context.attributes
    if not (policy.checks and candidate.is_certain and len(candidate.bindings) == 1):
        return None
    (binding, is_certain), *_ = candidate.bindings
    if not is_certain or not _needs_no_request(binding) or conditions(policy, attributes).conditions:
        return None
    if not policy.body().admits_without_problems():
        return None
    try:
        collected = params.collect(policy, binding, context)
        if len(collected) != 1:
            return None
        assumed = context.assumed(collected[0])
    except (BindingError, LookupFailed):
        return None
    kind, is_deleted = (attributes.kind.group, attributes.kind.kind), attributes.operation is Operation.DELETE
    asked = ((group, context.registry.checks_about(group, kind, is_deleted=is_deleted)) for group in policy.checks)
    groups = tuple((group, checks) for group, checks in asked if checks)
    return Prepared(groups, assumed, params.admitted(binding, collected[0]))


def _needs_no_request(binding: Binding) -> bool:
    """Whether neither the namespace of a request nor its labels say anything of a binding."""
    selects = binding.criteria is not None and bool(binding.criteria.namespaces.requirements)
    return not selects and (binding.param_source is None or is_standing(binding.param_source))
