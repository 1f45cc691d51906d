"""Policies that have nothing to say of a Pod: told without looking at policy, conditions and parameters again.

Nearly every review asks ten policies about a Pod, and nearly none has something to say. What does not depend on the Pod
(who is asked, with which parameter, which checks are about Pods, which decisions stand for "nothing wrong") is put
together once for all namespaces that the same bindings select, and kept until the view of the parameters changes.
Whoever finds something is asked in full.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from webhook.attributes import JSON, Operation
from webhook.decisions import Decision
from webhook.errors import BindingError, LookupFailed
from webhook.evaluation import params
from webhook.evaluation.kept_answers import KeptAnswers, certain_facts, read_of_pods
from webhook.evaluation.match_conditions import conditions
from webhook.evaluation.quiet import Groups, admits_without_problems, groups, speaking
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.selected_bindings import SelectedBindings
from webhook.evaluation.target import Target
from webhook.facts.assumptions import Assumptions
from webhook.facts.check import Check
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding
from webhook.policy.standing_params import MOST_READ, is_standing
from webhook.same import Same

Step: TypeAlias = Candidate | KeptAnswers | Sequence[Decision]
"""A candidate that is to be asked, one that may be kept, or what stands for some that have nothing to say."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What stands for a candidate: the checks of each group that are asked, and the decisions when all say nothing."""

    groups: Mapping[str, Sequence[Check]]
    assumed: Assumptions
    admits: Sequence[Decision]


_Row: TypeAlias = Prepared | KeptAnswers | None
"""What was prepared for a candidate; None where it is to be asked."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Some candidates, what was prepared of each, what is asked of all these, and the steps when nothing is said."""

    candidates: Sequence[Candidate]
    rows: Sequence[_Row]
    asked: Sequence[tuple[Assumptions, Groups]]
    quiet: Sequence[Step]

    def steps(self, own: Target, context: RequestContext) -> Sequence[Step]:
        """As `steps`."""
        spoke = {id(assumed): speaking(assumed, asked, own, context) for assumed, asked in self.asked}
        if not any(spoke.values()):
            return self.quiet
        return [_step(candidate, row, spoke) for candidate, row in zip(self.candidates, self.rows, strict=True)]


def steps(candidates: tuple[Candidate, ...], own: Target, context: RequestContext) -> Sequence[Step]:
    """Candidates in their order, decisions in place of those whose checks have nothing to say of a Pod.

    Raises:
        InlineBudgetSpent: the review takes too long for the event loop.
    """
    return _plan(candidates, context).steps(own, context)


def _step(candidate: Candidate, row: _Row, spoke: Mapping[int, set[str]]) -> Step:
    """What is done for a candidate, where some groups spoke: by the `id` of what they assume."""
    if isinstance(row, Prepared):
        return row.admits if spoke[id(row.assumed)].isdisjoint(row.groups) else candidate
    return row or candidate


def _plan(candidates: tuple[Candidate, ...], context: RequestContext) -> Plan:
    """The plan for the namespace of a request."""
    kept = context.standing.prepared
    known: SelectedBindings[Plan] | None = kept.get(id(candidates))
    if known is None or known.candidates is not candidates:
        if len(kept) >= MOST_READ:  # candidates that nobody keeps: a cluster has some dozens
            kept.clear()
        known = kept[id(candidates)] = SelectedBindings(candidates)
    return known.made_once(context, _made)


def _made(candidates: Sequence[Candidate], context: RequestContext) -> Plan:
    facts = certain_facts((each.policy for each in candidates), context.attributes)
    rows = [_prepare(each, facts, context) for each in candidates]
    asked: dict[Same, dict[str, Sequence[Check]]] = {}
    quiet: list[Step] = []
    admits: list[Decision] = []
    for candidate, row in zip(candidates, rows, strict=True):
        if isinstance(row, Prepared):
            asked.setdefault(Same(row.assumed), {}).update(row.groups)
            admits.extend(row.admits)
            continue
        quiet += [admits, row or candidate] if admits else [row or candidate]
        admits = []
    quiet += [admits] if admits else []
    return Plan(candidates, rows, [(key.held, tuple(each.items())) for key, each in asked.items()], quiet)


def _prepare(candidate: Candidate, facts: Collection[str], context: RequestContext) -> _Row:
    if not candidate.is_certain or len(candidate.bindings) != 1:
        return None
    (binding, is_certain), *_ = candidate.bindings
    if not is_certain or not (binding.param_source is None or is_standing(binding.param_source)):
        return None
    try:
        collected = params.collect(candidate.policy, binding, context)
        if len(collected) != 1:
            return None
        return _of_checks(candidate, binding, collected[0], context) or _in_cel(candidate, collected[0], facts, context)
    except (BindingError, LookupFailed):
        return None


def _of_checks(candidate: Candidate, binding: Binding, param: JSON, context: RequestContext) -> Prepared | None:
    policy, attributes = candidate.policy, context.attributes
    if not admits_without_problems(policy, attributes):
        return None
    kind = attributes.kind.group, attributes.kind.kind
    asked = groups(policy, kind, context, is_deleted=attributes.operation is Operation.DELETE)
    return Prepared(dict(asked), context.assumed(param), params.admitted(binding, param))


def _in_cel(candidate: Candidate, param: JSON, facts: Collection[str], context: RequestContext) -> KeptAnswers | None:
    read = read_of_pods(candidate.policy, context.attributes, facts)
    has_conditions = bool(conditions(candidate.policy, context.attributes).conditions)
    return None if read is None else KeptAnswers(candidate, param, read, context, has_conditions=has_conditions)
