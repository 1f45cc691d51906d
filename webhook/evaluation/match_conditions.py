"""Whether a matched policy applies to an object: its annotation `claimgate.dev/concerns`, then its matchConditions.

The annotation names resources of Pods. The webhooks of a policy are registered with the same words
(export/concerns.py), so that an API server does not send Pods without these resources. A policy with matchConditions
is not evaluated on such Pods here either. This module may find more than the expressions of the webhooks do, never
less.

The conditions see no namespaceObject. A false condition wins over an error in another condition, even in an earlier
condition. Source: k8s.io/apiserver v0.36 pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import Operation
from webhook.cel.cost import MATCH_CONDITIONS_BUDGET
from webhook.errors import BudgetExceeded, EvaluationError, NoDecision, UnreadPartError
from webhook.evaluation.activation import Activation
from webhook.evaluation.cost_budget import OutOfBudget
from webhook.evaluation.invocations import Invocation
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.evaluation.stored_bookkeeping import is_bookkeeping
from webhook.manifests.annotations import RESOURCE_CONCERNS
from webhook.manifests.field_errors import join_errors
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import AUTHORIZER, Condition
from webhook.policy.matching import Match
from webhook.typed.pod_parts import CLAIMS, PORTABLE
from webhook.typed.pods import Pod
from webhook.typed.view import ReadingContext

_OBJECTS: Final = frozenset(("object", "oldObject"))
_AMOUNTS: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""Resources that are not devices."""


def policies_that_may_concern(candidates: Iterable[Candidate], context: RequestContext) -> list[Candidate]:
    """Return the policies that may concern a request; a policy is left out if the Pod has nothing that it concerns."""
    present: frozenset[str] | None = None
    kept = []
    is_update = context.attributes.operation is Operation.UPDATE
    for candidate in candidates:
        if is_update and candidate.policy.ignores_bookkeeping and is_bookkeeping(context, candidate.policy):
            continue
        if candidate.concerns:
            if present is None:
                present = _concerns_of_request_or_all(context)
            if candidate.concerns.isdisjoint(present):
                if context.options.trace is not None:
                    context.options.trace.record_unconcerned_pod(candidate)
                continue
        kept.append(candidate)
    return kept


def _concerns_of_request_or_all(context: RequestContext) -> frozenset[str]:
    """Return the words that apply to the Pod; all words if there is no time, or a part of the Pod has another type or
    was not read, so that each failurePolicy decides.
    """
    try:
        return _concerns_of_request(context)
    except (BudgetExceeded, TypeError, UnreadPartError):
        return RESOURCE_CONCERNS


def _concerns_of_request(context: RequestContext) -> frozenset[str]:
    """Return the words of `concerns` that apply to the Pod or to what it was before an update; all words if its types
    are wrong.
    """
    target = context.objects.own_object_target(context.objects.sent)
    if target.mismatches:
        return RESOURCE_CONCERNS
    reading = ReadingContext(context.deadline, frozenset(target.omitted), bool(context.objects.typed_own))
    pod = target.typed_objects.get(Pod)
    if pod is None:
        pod = target.typed_objects[Pod] = Pod.of(target.object, (), reading)
    words = _concerns_of_pod(pod)
    return words if target.old_object is None else words | _concerns_of_pod(Pod.of(target.old_object, (), reading))


def _concerns_of_pod(pod: Pod) -> frozenset[str]:
    """Return the words of `concerns` that apply to a Pod."""
    parts, spec = pod.parts, pod.json.get("spec") or {}
    words = {
        "devices": not parts.resource_names <= _AMOUNTS,
        "portable-gpu": PORTABLE in parts.resource_names,
        "claims": CLAIMS in parts.present,
        "pod-level": "resources" in spec or "overhead" in spec,
    }
    return frozenset(word for word, is_there in words.items() if is_there)


def do_conditions_hold(invocation: Invocation) -> bool:
    """Return whether the conditions of a policy hold for an object, if it has some. Under failurePolicy Ignore a failed
    condition is false.

    Raises:
        EvaluationError: they could not be evaluated and the policy's failurePolicy is Fail, or they need an unknown
        answer of the authorizer. LookupFailed: something that they read is not known.
    """
    gate, context = invocation.gate, invocation.context
    if gate is None:
        return True
    reads_objects = gate.spec_changes is not None or not gate.needs.isdisjoint(_OBJECTS)
    names = Activation(invocation, _match_as_requested(invocation.target, context), reads_objects=reads_objects)
    if not gate.needs.isdisjoint(AUTHORIZER):
        names.update(context.variables.authorizer())
    try:
        unmet: Condition | EvaluationError | None = None
        if gate.spec_changes is not None and not _has_new_spec(gate.spec_changes, invocation.target, names, context):
            unmet = gate.spec_changes
        elif gate.conditions:
            unmet = first_false_condition(gate.conditions, names, context)
    except EvaluationError as error:
        if invocation.policy.is_fail or isinstance(error, NoDecision):
            raise
        unmet = error
    if unmet is not None and context.options.trace is not None:
        context.options.trace.record_unmet_condition(unmet)
    return unmet is None


def may_conditions_hold(invocation: Invocation) -> bool:
    """Return whether the conditions of a policy may hold for an object of which nothing is known; false if one of them
    is false for every object.

    Raises:
        EvaluationError: one of them fails for every object, and the policy's failurePolicy is Fail.
    """
    try:
        return do_conditions_hold(invocation)
    except NoDecision:
        return True


def _match_as_requested(target: EvaluationTarget, context: RequestContext) -> Match:
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
        OutOfBudget: the conditions cost too much.
        EvaluationError: no condition is false, and some failed; it has all their texts.
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
