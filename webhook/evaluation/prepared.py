"""Policies over checks that find nothing: told without looking at policy, conditions and parameters again.

Nearly every review asks ten of them about a Pod, and nearly none has something to say. What does not depend on the Pod
(who is asked, with which parameter, which checks are about Pods, which decisions stand for "nothing wrong") is put
together once and kept until the view of the parameters changes. Whoever finds something is asked in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
from webhook.same import Same

Step: TypeAlias = Candidate | Sequence[Decision]
"""A candidate that is to be asked, or what stands for some that have nothing to say."""
_Groups: TypeAlias = Sequence[tuple[str, Sequence[Check]]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What stands for a candidate: the checks of each group that are asked, and the decisions when all say nothing."""

    groups: _Groups
    assumed: Assumptions
    admits: Sequence[Decision]


@dataclass(frozen=True, slots=True)
class Plan:
    """Some candidates, those that could be prepared, what is asked of all these, and the steps when nothing is said."""

    candidates: tuple[Candidate, ...]
    prepared: Sequence[Prepared | None]
    asked: Sequence[tuple[Assumptions, _Groups]]
    quiet: Sequence[Step]


def steps(candidates: tuple[Candidate, ...], own: Target, context: RequestContext) -> Sequence[Step]:
    """Candidates in their order, decisions in place of those whose checks have nothing to say of a Pod.

    Raises:
        InlineBudgetSpent: the review takes too long for the event loop.
    """
    plan = _plan(candidates, context)
    if all(_is_quiet(assumed, groups, own, context) for assumed, groups in plan.asked):
        return plan.quiet
    return [
        each.admits if each is not None and _is_quiet(each.assumed, each.groups, own, context) else candidate
        for candidate, each in zip(candidates, plan.prepared, strict=True)
    ]


def _is_quiet(assumed: Assumptions, groups: _Groups, own: Target, context: RequestContext) -> bool:
    try:
        return context.subject_assuming(assumed, own.object, own.attributes).says_nothing(groups)
    except (EvaluationError, LookupFailed, PatchError):
        return False  # whoever asks in full says it


def _plan(candidates: tuple[Candidate, ...], context: RequestContext) -> Plan:
    kept = context.standing.prepared
    known: Plan | None = kept.get(id(candidates))
    if known is None or known.candidates is not candidates:
        if len(kept) >= MOST_READ:  # candidates that nobody keeps: a cluster has some dozens
            kept.clear()
        known = kept[id(candidates)] = _made(candidates, context)
    return known


def _made(candidates: tuple[Candidate, ...], context: RequestContext) -> Plan:
    prepared = [_prepare(each, context) for each in candidates]
    asked: dict[Same, dict[str, Sequence[Check]]] = {}
    quiet: list[Step] = []
    admits: list[Decision] = []
    for candidate, each in zip(candidates, prepared, strict=True):
        if each is not None:
            asked.setdefault(Same(each.assumed), {}).update(each.groups)
            admits.extend(each.admits)
            continue
        quiet += [admits, candidate] if admits else [candidate]
        admits = []
    quiet += [admits] if admits else []
    return Plan(candidates, prepared, [(key.held, tuple(each.items())) for key, each in asked.items()], quiet)


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
