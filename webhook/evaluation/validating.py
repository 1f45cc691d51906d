"""Evaluates ValidatingAdmissionPolicies on one request: every rule of every policy, binding and parameter.

Decides nothing beyond what policies say: what a decision is worth is admission/enforce.py's. Order and errors:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/dispatcher.go. Everything is evaluated, also after a
denial; validator.py asks one policy about one object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from webhook.apimachinery.attributes import Attributes, Operation, Phase
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.errors import AmbiguousObject, BindingError, BudgetExceeded, EvaluationError, LookupFailed
from webhook.evaluation import not_evaluated
from webhook.evaluation.decision_list import DecisionList, without_repeats
from webhook.evaluation.invocations import (
    matching_targets,
    record_binding_in_trace,
    record_targets_in_trace,
    targets_of,
)
from webhook.evaluation.match_conditions import do_conditions_hold, policies_that_may_concern
from webhook.evaluation.not_evaluated import (
    contain_fault,
    decision_of_interrupted_policy,
    decision_of_unconverted_object,
    decision_of_unusable_policy,
    is_contained,
    undecided_decision,
)
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.evaluation.rule_decisions import RuleDecisions
from webhook.evaluation.stored_problems import with_stored_as_warnings
from webhook.evaluation.validator import Validator
from webhook.facts.check import problems_of_groups
from webhook.policy.candidates import Candidate, CandidateBinding
from webhook.policy.compiled import Binding, Policy
from webhook.policy.policy_set import PolicySet
from webhook.policy.static_params import Param
from webhook.rules.decisions import Decision

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


def validating_decisions(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    phase: Phase,
    deadline: Deadline | None = None,
    *,
    authorizer: Authorizer | None = None,
    context: RequestContext | None = None,
) -> tuple[Decision, ...]:
    """Return the decisions of the validating policies of a phase, in the order of their names; () when none matches.

    Never raises for a policy's fault. `context` is that of the request, where the caller has one.
    """
    candidates = policies.validating_for(attributes, phase)
    trace = context.options.trace if context else None
    if trace is not None:
        of_phase = (policy for policy in policies.validating if policy.phase in (phase, "both"))
        trace.record_skipped_policies(of_phase, candidates, attributes)
    if not candidates:
        return ()
    context = context or request_context(policies, attributes, cluster, deadline, authorizer)
    decisions: Sequence[Decision] = _decisions_of_candidates(candidates, context)
    if attributes.operation == Operation.UPDATE:
        decisions = with_stored_as_warnings(decisions, candidates, context, partial(_decisions_of_phase, phase))
    return without_repeats(decisions, (each.policy for each in candidates), context.deadline)


def _decisions_of_phase(phase: Phase, context: RequestContext, names: Collection[str]) -> Sequence[Decision]:
    """Return the decisions of the policies with these names on a request."""
    candidates = context.policies.validating_for(context.attributes, phase)
    return _decisions_of_candidates([each for each in candidates if each.policy.name in names], context)


def _decisions_of_candidates(candidates: Iterable[Candidate], context: RequestContext) -> Sequence[Decision]:
    decisions = DecisionList()
    for candidate in policies_that_may_concern(candidates, context):
        try:
            _add_decisions_of_policy(candidate, context, decisions)
        except Exception as fault:
            if not is_contained(fault):
                raise
            text = contain_fault(context.faults, candidate.policy.name, fault)
            decisions.add(
                decision_of_interrupted_policy(candidate.policy, each.binding, text) for each in candidate.bindings
            )
    if context.undecoded:
        decisions.add(not_evaluated.decisions_of_undecoded_objects(context.undecoded))
    return decisions.decisions


def _add_decisions_of_policy(candidate: Candidate, context: RequestContext, decisions: DecisionList) -> None:
    """Add the decisions of a policy on a request."""
    policy, objects = candidate.policy, context.objects
    try:
        targets = (candidate.is_own_alone and objects.typed_own) or targets_of(candidate, context)
    except AmbiguousObject as error:
        decisions.add([undecided_decision(policy, None, str(error))])
        _record_error_in_trace(policy, None, context, error)
    except (BindingError, LookupFailed) as error:
        decisions.add([decision_of_unusable_policy(policy, None, f"failed to configure policy: {error}")])
        _record_error_in_trace(policy, None, context, error)
    except BudgetExceeded as error:
        decisions.add(decision_of_interrupted_policy(policy, binding, str(error)) for binding in policy.bindings)
    else:
        if context.options.trace is not None:
            record_targets_in_trace(candidate, targets, context)
        for candidate_binding in candidate.bindings if targets else ():
            _add_decisions_of_binding(candidate, candidate_binding, targets, context, decisions)


def _add_decisions_of_binding(
    candidate: Candidate,
    candidate_binding: CandidateBinding,
    targets: Sequence[EvaluationTarget],
    context: RequestContext,
    decisions: DecisionList,
) -> None:
    """Add the decisions of a policy with one binding; add an error when the time runs out."""
    binding, index, trace = candidate_binding.binding, candidate_binding.index, context.options.trace
    try:
        bound = targets if index is None else matching_targets(index, targets, context)
        params = (
            (context.params.static.get(binding) or context.params.params_of_binding(candidate.policy, binding))
            if bound
            else ()
        )
        if trace is not None:
            record_binding_in_trace(candidate.policy, binding, targets, context, bound=bound, params=params)
        for param in params:
            for target in bound if len(bound) == 1 else context.deadline.items_with_clock_checks(bound):
                if trace is None:
                    judged = _evaluate_on_target(candidate, binding, param, target, context)
                else:
                    evaluate = partial(_evaluate_on_target, candidate, binding, param, target, context)
                    judged = trace.evaluate_and_record(candidate.policy, binding, param, target, evaluate)
                if judged is param.admits:  # about the object itself, as mostly: there are as many as bindings
                    decisions.decisions += judged
                elif judged:  # its conditions hold
                    decisions.add(judged)
                    if judged[-1].evaluation == "error" and context.deadline.is_over:
                        return
    except AmbiguousObject as error:
        decisions.add([undecided_decision(candidate.policy, binding, str(error))])
        _record_error_in_trace(candidate.policy, binding, context, error)
    except (BindingError, LookupFailed) as error:
        decisions.add([decision_of_unusable_policy(candidate.policy, binding, f"failed to configure binding: {error}")])
        _record_error_in_trace(candidate.policy, binding, context, error)
    except BudgetExceeded as error:
        decisions.add([decision_of_interrupted_policy(candidate.policy, binding, str(error))])


def _record_error_in_trace(policy: Policy, binding: Binding | None, context: RequestContext, error: Exception) -> None:
    """Tell the trace, if there is one, that a policy or a binding cannot be used."""
    if context.options.trace is not None:
        context.options.trace.record_unusable_policy(policy, binding, str(error))


def _evaluate_on_target(
    candidate: Candidate, binding: Binding, param: Param, target: EvaluationTarget, context: RequestContext
) -> Sequence[Decision]:
    """Return the decisions of a policy on an object, by its checks or its expressions; () if its conditions do not
    hold.
    """
    policy, started = candidate.policy, perf_counter()
    if target.match.conversion == "impossible":
        return [decision_of_unconverted_object(policy, binding, target)]
    try:
        if candidate.gate is not None and not do_conditions_hold(candidate.gate, policy, target, param, context):
            return ()
        if not policy.reports_problems:
            return Validator(policy, binding, param, target, context, started=started).decisions()
        subject = target.subjects.get(id(param.assumed)) or context.subject(target, param)
        parts = subject.pod_parts  # of a Pod without those that the checks are about, none of them needs to be asked
        is_plain = parts is not None and bool(candidate.pod_parts) and candidate.pod_parts.isdisjoint(parts)
        reported = () if is_plain else problems_of_groups(subject, policy.checks)
        if not reported:
            return param.admits_at(target.place)
        return RuleDecisions(policy, binding, param, target, context, started=started).decisions_of_checks(reported)
    except AmbiguousObject as error:
        return [undecided_decision(policy, binding, str(error), param.name)]
    except (EvaluationError, BindingError, LookupFailed) as error:
        return [
            RuleDecisions(policy, binding, param, target, context, started=started).error_decision(None, str(error))
        ]
