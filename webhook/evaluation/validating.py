"""Evaluates ValidatingAdmissionPolicies on one request: every rule of every policy, binding and parameter.

A policy that reports problems of checks is evaluated here; validator.py evaluates every other one, in CEL. All policies
are evaluated, even after a denial. admission/enforce.py turns the decisions into a verdict. Order and errors:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/dispatcher.go.
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
from webhook.evaluation.decision_list import DecisionList, without_repeats
from webhook.evaluation.invocations import Invocation, UnusablePolicy, invocations_of_policy
from webhook.evaluation.match_conditions import do_conditions_hold, may_conditions_hold, policies_that_may_concern
from webhook.evaluation.not_evaluated import (
    contain_fault,
    decision_of_unconverted_object,
    decision_of_unknown_pods,
    decisions_of_undecoded_objects,
    decisions_of_unusable_policy,
    error_of_policy,
    is_contained,
    undecided_decision,
)
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.rule_decisions import RuleDecisions
from webhook.evaluation.stored_problems import with_stored_as_warnings
from webhook.evaluation.validator import Validator
from webhook.facts.check import NOTHING, problems_of_group
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding
from webhook.policy.policy_set import PolicySet
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
    """Return the decisions of the validating policies of a phase, in the order of their names; () if no policy matches.

    Never raises for a policy's fault. `context` is that of the request, if the caller has one.
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
            decisions.add(error_of_policy(candidate.policy, each.binding, text) for each in candidate.bindings)
    if context.undecoded:
        decisions.add(decisions_of_undecoded_objects(context.undecoded))
    return decisions.decisions


def _add_decisions_of_policy(candidate: Candidate, context: RequestContext, decisions: DecisionList) -> None:
    """Add the decisions of a policy on a request. A binding that timed out is not evaluated on other objects."""
    trace = context.options.trace
    stopped: Binding | None = None
    for each in invocations_of_policy(candidate, context):
        if stopped is not None and each.binding is stopped:
            continue
        if isinstance(each, UnusablePolicy):
            decisions.add(decisions_of_unusable_policy(each))
            if trace is not None and not isinstance(each.error, BudgetExceeded):
                trace.record_unusable_policy(each.policy, each.binding, str(each.error))
            continue
        if trace is None:
            judged = _evaluate_invocation(each, candidate)
        else:
            evaluate = partial(_evaluate_invocation, each, candidate)
            judged = trace.evaluate_and_record(each.policy, each.binding, each.param, each.target.place, evaluate)
        if judged is each.param.admits:  # the usual case, the object itself: as many as bindings
            decisions.decisions += judged
        elif judged:  # its conditions hold
            decisions.add(judged)
            if judged[-1].evaluation == "error" and context.deadline.is_over:
                stopped = each.binding


def _evaluate_invocation(invocation: Invocation, candidate: Candidate) -> Sequence[Decision]:
    """Return the decisions of a policy on an object, by its checks or its expressions; () if its conditions do not
    hold.
    """
    policy, binding, param, target = invocation.policy, invocation.binding, invocation.param, invocation.target
    started = perf_counter()
    if target.match.conversion == "impossible":
        return [decision_of_unconverted_object(policy, binding, target)]
    try:
        if target.missing:
            if not may_conditions_hold(invocation):
                return ()
            return [decision_of_unknown_pods(policy, binding, param.name, target.missing)]
        if invocation.gate is not None and not do_conditions_hold(invocation):
            return ()
        if not policy.reports_problems:
            return Validator(invocation, started=started).decisions()
        subject = target.subjects.get(id(param.assumed)) or invocation.subject()
        parts = subject.pod_parts  # if a Pod has no field of the checks, no check runs
        if parts is None or not candidate.pod_parts or not candidate.pod_parts.isdisjoint(parts):
            for group in policy.checks:
                if problems_of_group(group, subject) is not NOTHING:
                    return RuleDecisions(invocation, started=started).decisions_of_checks()
        return param.admits_at(target.place) if target.place else param.admits
    except AmbiguousObject as error:
        return [undecided_decision(policy, binding, error, param.name)]
    except (EvaluationError, BindingError, LookupFailed) as error:
        return [RuleDecisions(invocation, started=started).error_decision(None, str(error), error)]
