"""Evaluates MutatingAdmissionPolicies on one request: returns the changed object, and a decision for each mutation.

Policies run in the order of their names. All are matched, with their parameters, before the first runs;
matchConditions and expressions see the object as it is by then. After any mutation has been applied, every policy with
reinvocationPolicy IfNeeded that ran is run once more. A failed mutation does not stop those after it. Source:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/mutating/{dispatcher,reinvocationcontext}.go and
generic/policy_dispatcher.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.apimachinery.attributes import JSON, Attributes, Operation
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.evaluation.custom_kinds import without_unknown_fields
from webhook.evaluation.mutation_decisions import decisions_of_unfinished_mutations
from webhook.evaluation.mutation_run import MutationRun
from webhook.evaluation.pod_concerns import policies_that_may_concern
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


def apply_mutating_policies(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    deadline: Deadline | None = None,
    *,
    authorizer: Authorizer | None = None,
    context: RequestContext | None = None,
) -> tuple[JSON, tuple[Decision, ...]]:
    """Return the object after all mutating policies, the same value if none changed it, and their decisions in order.

    Never raises for a policy's fault; what failed is in the decisions. There is nothing to change on DELETE. `context`
    is that of the request, where it is at hand.
    """
    if attributes.operation is Operation.DELETE or attributes.object is None:
        return attributes.object, ()
    candidates = policies.mutating_for(attributes)
    if context is not None and context.options.trace is not None:
        context.options.trace.record_skipped_policies(policies.mutating, candidates, attributes)
    if not candidates:
        return attributes.object, ()
    run = MutationRun(attributes.object)
    context = context or request_context(policies, attributes, cluster, deadline, authorizer)
    run.run_round(policies_that_may_concern(candidates, context), context)
    if run.is_dirty and run.reinvocable and not run.is_denied:
        again = replace(attributes, object=run.object)
        run.only = frozenset(run.reinvocable)
        untold, faults = replace(context.options, trace=None), context.faults  # the first round is explained
        second = request_context(policies, again, cluster, deadline, authorizer, faults=faults, options=untold)
        run.run_round(policies_that_may_concern(policies.mutating_for(again), second), second)
    decisions = tuple(run.decisions.decisions)
    if run.definition is None or not run.is_dirty:
        return run.object, decisions
    try:
        return without_unknown_fields(
            run.object, run.definition, attributes.kind.version, deadline or Deadline()
        ), decisions
    except BudgetExceeded as error:
        return run.object, (*decisions, *decisions_of_unfinished_mutations(policies, decisions, str(error)))
