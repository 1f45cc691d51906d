"""The matchConditions of a policy: CEL expressions that decide whether a matched policy applies to an object.

Conditions have no variable `namespaceObject`. If a condition is false, errors of other conditions are ignored, even
errors of earlier conditions. Source: k8s.io/apiserver v0.36 pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.cel.cost import MATCH_CONDITIONS_BUDGET
from webhook.errors import EvaluationError, NoDecision
from webhook.evaluation.activation import Activation
from webhook.evaluation.cost_budget import OutOfBudget
from webhook.evaluation.invocations import Invocation
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.manifests.field_errors import join_errors
from webhook.policy.compiled import AUTHORIZER, Condition
from webhook.policy.matching import Match


def do_conditions_hold(invocation: Invocation) -> bool:
    """Return whether all conditions of a policy hold for an object. With failurePolicy Ignore, a failed condition is
    false.

    Raises:
        EvaluationError: a condition failed and the failurePolicy is Fail, or a condition needs an unknown answer of the
            authorizer.
        LookupFailed: a value that a condition reads is unknown.
    """
    compiled, context = invocation.match_conditions, invocation.context
    if compiled is None:
        return True
    names = Activation(invocation, _match_as_requested(invocation.target, context))
    if not compiled.needs.isdisjoint(AUTHORIZER):
        names.update(context.variables.authorizer())
    try:
        unmet: Condition | EvaluationError | None = None
        spec_changes = compiled.spec_changes
        if spec_changes is not None and not _has_new_spec(spec_changes, invocation.target, names, context):
            unmet = spec_changes
        elif compiled.conditions:
            unmet = first_false_condition(compiled.conditions, names, context)
    except EvaluationError as error:
        if invocation.policy.is_fail or isinstance(error, NoDecision):
            raise
        unmet = error
    if unmet is not None and context.options.trace is not None:
        context.options.trace.record_unmet_condition(unmet)
    return unmet is None


def may_conditions_hold(invocation: Invocation) -> bool:
    """Return whether the conditions of a policy may hold for an unknown object. The result is False if a condition is
    false for every object.

    Raises:
        EvaluationError: a condition fails for every object, and the policy's failurePolicy is Fail.
    """
    try:
        return do_conditions_hold(invocation)
    except NoDecision:
        return True


def _match_as_requested(target: EvaluationTarget, context: RequestContext) -> Match:
    """Return the match for the variable `request`: in matchConditions, `request` has the requested resource
    (matchconditions/matcher.go).
    """
    resource, match = context.attributes.request_resource, target.match
    return match if resource == match.resource else Match(resource, match.kind)


def _has_new_spec(
    condition: Condition, target: EvaluationTarget, names: Mapping[str, Any], context: RequestContext
) -> bool:
    """Return whether the condition of `updates: spec` holds. All policies share the result for an object."""
    if target.has_new_spec is None:
        target.has_new_spec = first_false_condition((condition,), names, context) is None
    return target.has_new_spec


def first_false_condition(
    conditions: Sequence[Condition], seen: Mapping[str, Any], context: RequestContext
) -> Condition | None:
    """Return the first condition that is false; None if all hold.

    Raises:
        OutOfBudget: the conditions cost too much.
        EvaluationError: no condition is false, and some failed. The message has all their errors.
    """
    budget, left = context.cost_budget(MATCH_CONDITIONS_BUDGET), len(conditions)
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
        is_unknown = any(isinstance(each, NoDecision) for each in errors)
        raise (NoDecision if is_unknown else EvaluationError)(join_errors(errors))
    return unmet
