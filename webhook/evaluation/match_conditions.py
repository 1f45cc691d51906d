"""matchConditions: does a policy want to speak about this request.

A false condition beats an error in another one, also in one before it. Source: k8s.io/apiserver v0.36
pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.attributes import JSON, Attributes, Operation
from webhook.cel.cost import MATCH_CONDITIONS_BUDGET
from webhook.deadline import Deadline
from webhook.errors import EvaluationError
from webhook.evaluation.activation import for_conditions
from webhook.evaluation.cost_budget import CostBudget, OutOfBudget
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.manifests.field_errors import aggregate
from webhook.policy.compiled import Condition, MatchConditions, Policy
from webhook.policy.standing_params import MOST_READ


def conditions(policy: Policy, attributes: Attributes) -> MatchConditions:
    """The conditions of a policy, without what holds for everything that is created when something is."""
    gate = policy.gate()
    return gate.of_created if gate.of_created is not None and attributes.operation is Operation.CREATE else gate


def is_asked(policy: Policy, target: Target, param: JSON, context: RequestContext) -> bool:
    """Whether the conditions of a policy hold for an object. Under failurePolicy Ignore an error is one that does not.

    Many policies have the same ones; those that see only the object and the request are asked once for all of them,
    those that see only a parameter once for all requests.

    Raises:
        EvaluationError: they could not be evaluated, and the policy's failurePolicy is Fail.

    """
    gate = conditions(policy, context.attributes)
    if not gate.conditions:
        return True
    asked, held = (param, context.standing.held) if gate.is_of_params else (target, context.held)
    key = (id(asked), gate.sources)
    if (known := held.get(key)) and known[0] is asked:
        return known[1]
    seen = for_conditions(policy, gate, target, param, context)
    try:
        holds = _hold(gate, seen, context.deadline)
    except EvaluationError:
        if policy.is_fail:
            raise
        return False
    if gate.is_shared or (gate.is_of_params and len(held) < MOST_READ):
        held[key] = asked, holds
    return holds


def _hold(gate: MatchConditions, seen: Mapping[str, Any], deadline: Deadline) -> bool:
    """As `hold`; without an evaluation where what they read is little and was read before."""
    key = gate.memo.key(seen) if gate.memo is not None else None
    if gate.memo is None or key is None:
        return hold(gate.conditions, seen, deadline)
    known = gate.memo.answer(key)
    if known is None:
        known = hold(gate.conditions, seen, deadline)
        gate.memo.keep(key, answer=known)
    return known


def hold(conditions: Sequence[Condition], seen: Mapping[str, Any], deadline: Deadline | None) -> bool:
    """Say whether all conditions hold.

    Raises:
        OutOfBudget: they cost too much.
        EvaluationError: none is false, and some failed; all their texts.

    """
    budget = CostBudget(MATCH_CONDITIONS_BUDGET, deadline)
    errors: list[EvaluationError] = []
    is_false = False
    for index, condition in enumerate(conditions):
        try:
            is_false |= budget.evaluate(condition.expression, seen) is False
        except OutOfBudget:
            raise
        except EvaluationError as error:
            errors.append(error)
        if is_false and budget.covers(len(conditions) - index - 1):
            return False
    if errors and not is_false:
        raise EvaluationError(aggregate(errors))
    return not is_false
