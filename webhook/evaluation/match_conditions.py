"""Evaluates matchConditions, which decide whether a policy applies to a request.

They see no namespaceObject. A false condition beats an error in another one, also in one before it.
Source: k8s.io/apiserver v0.36 pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.cel.cost import MATCH_CONDITIONS_BUDGET
from webhook.errors import EvaluationError
from webhook.evaluation.activation import Activation
from webhook.evaluation.cost_budget import CostBudget, OutOfBudget
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import EvaluationTarget
from webhook.manifests.field_errors import join_errors
from webhook.policy.compiled import AUTHORIZER, Condition, MatchConditions, Policy
from webhook.policy.matching import Match
from webhook.policy.static_params import Param


def do_conditions_hold(
    gate: MatchConditions, policy: Policy, target: EvaluationTarget, param: Param, context: RequestContext
) -> bool:
    """Return whether the conditions of a policy hold for an object. Under failurePolicy Ignore a failed condition is
    false.

    Raises:
        EvaluationError: they could not be evaluated, and the policy's failurePolicy is Fail.
        LookupFailed: nobody can say something that they ask about.
    """
    names = Activation(policy, target, param, context, _match_of_request(target, context))
    if not gate.needs.isdisjoint(AUTHORIZER):
        names.update(context.variables.authorizer())
    try:
        unmet: Condition | EvaluationError | None = None
        if gate.spec_changes is not None and not _has_new_spec(gate.spec_changes, target, names, context):
            unmet = gate.spec_changes
        elif gate.conditions:
            unmet = first_false_condition(gate.conditions, names, context)
    except EvaluationError as error:
        if policy.is_fail:
            raise
        unmet = error
    if unmet is not None and context.options.trace is not None:
        context.options.trace.record_unmet_condition(unmet)
    return unmet is None


def _match_of_request(target: EvaluationTarget, context: RequestContext) -> Match:
    """Return the match for the variable `request`, which has the resource as requested (matchconditions/matcher.go)."""
    resource, match = context.attributes.request_resource, target.match
    return match if resource == match.resource else Match(resource, match.kind)


def _has_new_spec(
    condition: Condition, target: EvaluationTarget, names: Mapping[str, Any], context: RequestContext
) -> bool:
    """Return whether the condition of `updates: spec` holds; it is evaluated once for each object, for all policies."""
    if target.has_new_spec is None:
        target.has_new_spec = first_false_condition((condition,), names, context) is None
    return target.has_new_spec


def first_false_condition(
    conditions: Sequence[Condition], seen: Mapping[str, Any], context: RequestContext
) -> Condition | None:
    """Return the first condition that is false; None if all hold.

    Raises:
        OutOfBudget: they cost too much.
        EvaluationError: none is false, and some failed; all their texts.
    """
    budget, left = CostBudget(MATCH_CONDITIONS_BUDGET, context.deadline), len(conditions)
    if context.options.trace is not None:
        context.options.trace.count_cost_of_budget(budget)
    errors: list[EvaluationError] = []
    unmet: Condition | None = None
    for condition in conditions:
        left -= 1
        try:
            if budget.evaluate(condition.expression, seen) is False:
                unmet = unmet or condition
        except OutOfBudget:
            raise
        except EvaluationError as error:
            errors.append(error)
        if unmet is not None and (not left or budget.covers(left)):
            return unmet
    if errors and unmet is None:
        raise EvaluationError(join_errors(errors))
    return unmet
