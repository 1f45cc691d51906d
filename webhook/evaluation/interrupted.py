"""The decisions on a request that could not be evaluated in time: each policy's failurePolicy decides.

For a review that was stopped from outside, so that nothing is known but what stands outside the object. Policies and
bindings whose namespaceSelector excludes the request's namespace are left out; whether the others would have matched
the object is not known. Source: an evaluation that is interrupted is an error of its policy (k8s.io/apiserver v0.36
pkg/admission/plugin/policy/validating/validator.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.apimachinery.attributes import Attributes, Operation, Phase
from webhook.cluster import Cluster
from webhook.deadline import OVER_TIME
from webhook.errors import BindingError, LookupFailed
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding, Policy
from webhook.policy.matching import Criteria, matches_namespace
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, ValidationAction

_DENY = (ValidationAction.DENY,)
_CODES = {"validating": 422, "mutating": 403}
"""The HTTP codes of failed evaluations, as in validating.py and mutating.py."""


def errors_of_interrupted_policies(
    attributes: Attributes, policies: PolicySet, cluster: Cluster, phase: Phase
) -> tuple[Decision, ...]:
    """Return an error of every policy of a phase that may concern a request, under each of its bindings."""
    context = request_context(policies, attributes, cluster)
    candidates = policies.validating_for(attributes, phase)
    if phase is Phase.MUTATE and attributes.operation is not Operation.DELETE:
        candidates = (*candidates, *policies.mutating_for(attributes))
    return tuple(
        _interrupted_decision(each.policy, binding)
        for each in candidates
        for binding in _bindings_that_may_match(each, context)
    )


def _bindings_that_may_match(candidate: Candidate, context: RequestContext) -> Iterator[Binding]:
    if _may_criteria_match(candidate.policy.criteria, context):
        listed = (each.binding for each in candidate.bindings)
        yield from (each for each in listed if each.criteria is None or _may_criteria_match(each.criteria, context))


def _may_criteria_match(criteria: Criteria, context: RequestContext) -> bool:
    try:
        return matches_namespace(criteria.namespaces, context.attributes, context.namespace.labels)
    except (BindingError, LookupFailed):
        return True


def _interrupted_decision(policy: Policy, binding: Binding) -> Decision:
    return Decision(
        kind=policy.kind,
        policy=policy.name,
        rule=policy.name,
        binding=binding.name,
        action="deny" if policy.is_fail else "admit",
        evaluation="error",
        actions=binding.actions if policy.kind == "validating" else _DENY,
        message=OVER_TIME,
        reason="Invalid" if policy.is_fail else "",
        code=_CODES[policy.kind] if policy.is_fail else 0,
        severity=policy.severity,
        category=policy.category,
    )
