"""matchConditions: does a policy want to speak about this request.

A false condition beats an error in another one, also in one before it. Source: k8s.io/apiserver v0.36
pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.attributes import Operation
from webhook.cel.cost import MATCH_CONDITIONS_BUDGET
from webhook.errors import EvaluationError
from webhook.evaluation.activation import for_conditions
from webhook.evaluation.cost_budget import CostBudget, OutOfBudget
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.manifests.field_errors import aggregate
from webhook.policy.compiled import Condition, Policy
from webhook.policy.static_params import Param


def is_asked(policy: Policy, target: Target, param: Param, context: RequestContext) -> bool:
    """Whether the conditions of a policy hold for an object. Under failurePolicy Ignore an error is one that does not.

    Raises:
        EvaluationError: they could not be evaluated, and the policy's failurePolicy is Fail.
        LookupFailed: nobody can say something that they ask about.

    """
    gate = policy.gate()
    try:
        names = for_conditions(policy, gate.needs, target, param, context)
        changes = gate.spec_changes
        if changes and not (target.has_new_spec or _has_new_spec(changes, target, names, context)):
            return _no(changes, context)
        unmet = first_false(gate.conditions, names, context)
        return unmet is None or _no(unmet, context)
    except EvaluationError as error:
        if policy.is_fail:
            raise
        return _no(error, context)


def _no(reason: Condition | EvaluationError, context: RequestContext) -> bool:
    """That a policy is not asked, which whoever wants an explanation is told."""
    if context.options.trace is not None:
        context.options.trace.unmet(reason)
    return False


def _has_new_spec(condition: Condition, target: Target, names: Mapping[str, Any], context: RequestContext) -> bool:
    """Whether the condition of `updates: spec` holds: the same in all policies, and evaluated once for each object."""
    if target.has_new_spec is None:
        is_created = context.attributes.operation is Operation.CREATE
        target.has_new_spec = is_created or first_false((condition,), names, context) is None
    return target.has_new_spec


def first_false(conditions: Sequence[Condition], seen: Mapping[str, Any], context: RequestContext) -> Condition | None:
    """The first condition that is false; None where all hold.

    Raises:
        OutOfBudget: they cost too much.
        EvaluationError: none is false, and some failed; all their texts.

    """
    budget, left = CostBudget(MATCH_CONDITIONS_BUDGET, context.deadline), len(conditions)
    if context.options.trace is not None:
        context.options.trace.meter(budget)
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
        raise EvaluationError(aggregate(errors))
    return unmet
