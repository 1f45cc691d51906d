"""Makes the decisions about everything that was not evaluated.

- A policy as a whole: the time is over, its configuration cannot be used, or claimgate has a bug. Or the policy needs
  an object version to which only an API server can convert. Its failurePolicy decides, as for every failed evaluation
  (k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/validator.go).
- A request: its evaluation was stopped from outside. Every policy that may concern the request has an error.
- An object or a pod template with values of wrong types: it is reported once, unless a policy about types reported
  it.
- A rule that finds no problem, but needs an object that is missing: it counts as not evaluated.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import Attributes, Operation, Phase
from webhook.cel.check.reads import WHOLE
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cluster import Cluster
from webhook.deadline import OVER_TIME
from webhook.errors import (
    AmbiguousObject,
    BindingError,
    BudgetExceeded,
    ClaimgateError,
    EvaluationError,
    LookupFailed,
    ReviewPaused,
    UnknownLabels,
    fault_locations,
)
from webhook.evaluation.activation import build_activation, fact_as_cel_value, problems_with_actions, shows_advice
from webhook.evaluation.invocations import Invocation, UnusablePolicy
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.facts.check import problems_of_group
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding, Policy, Validation
from webhook.policy.matching import Criteria, matches_namespace
from webhook.policy.policy_set import PolicySet
from webhook.rules.actions import actions_without_denial
from webhook.rules.catalogue import UnlistedRuleError
from webhook.rules.decisions import INVALID, Decision, DenialReason, EvaluationFault, ValidationAction
from webhook.rules.declarations import PROBLEMS, Listed, problem_as_cel_value, problems_of_cel_value
from webhook.rules.problem import MissingObject

DENY: Final = (ValidationAction.DENY,)
_FAILED_MUTATION: Final = DenialReason("Invalid", 403)
"""The reason and code of a mutating policy's error: every failed mutation has code 403 (admission.NewForbidden)."""
_UNUSABLE_MUTATION: Final = DenialReason("Forbidden", 403)
_PASSED_ON: Final = (ClaimgateError, ReviewPaused, MemoryError, SystemError)
"""Errors that are not a bug in the evaluation of a policy: errors that are raised on purpose, and errors of the whole
process.
"""


def error_of_policy(policy: Policy, binding: Binding | None, text: str) -> Decision:
    """Return the error of a policy as a whole, such as a timeout. Its failurePolicy decides."""
    is_validating = policy.kind == "validating"
    return Decision(
        kind=policy.kind,
        policy=policy.name,
        rule=policy.name,
        binding=binding.name if binding else "",
        evaluation="error",
        lets_pass=not policy.is_fail,
        denial=INVALID if is_validating else _FAILED_MUTATION,
        actions=binding.actions if binding and is_validating else DENY,
        message=text,
        severity=policy.severity,
        category=policy.category,
    )


def decisions_of_unusable_policy(unusable: UnusablePolicy) -> Iterator[Decision]:
    """Yield the decision about a policy or a binding that cannot be used on this request.

    With failurePolicy Fail, a configuration error denies with any actions of the binding. A policy that timed out
    before its bindings were matched fails for each binding.
    """
    policy, binding, error = unusable.policy, unusable.binding, unusable.error
    if isinstance(error, AmbiguousObject):
        yield undecided_decision(policy, binding, error)
    elif policy.kind == "mutating":
        error_decision = error_of_policy(policy, binding, unusable.message)
        yield replace(error_decision, denial=_UNUSABLE_MUTATION, warns_user=unusable.warns_user)
    elif not isinstance(error, BudgetExceeded):
        yield replace(error_of_policy(policy, binding, unusable.message), actions=DENY)
    else:
        yield from (
            error_of_policy(policy, each, unusable.message) for each in ([binding] if binding else policy.bindings)
        )


def undecided_decision(policy: Policy, binding: Binding | None, error: Exception, param: str = "") -> Decision:
    """Return the decision of a policy that needs an unknown value, such as the labels of the namespace or a user's
    permissions.
    """
    decision = _undecided_decision(policy, binding, str(error), param)
    if not isinstance(error, UnknownLabels):
        return decision
    missing = MissingObject(kind="Namespace", name=error.namespace, why="is in no file, so its labels are not known")
    return replace(decision, missing=(missing,))


def _undecided_decision(policy: Policy, binding: Binding | None, text: str, param: str = "") -> Decision:
    is_mutating = policy.kind == "mutating"
    bindings = policy.bindings if binding is None else (binding,)
    actions = DENY if is_mutating else tuple(dict.fromkeys(action for each in bindings for action in each.actions))
    return Decision(
        kind=policy.kind,
        policy=policy.name,
        rule=policy.name,
        binding=binding.name if binding else "",
        param=param,
        evaluation="unknown",
        lets_pass=policy.missing != "deny" if is_mutating else policy.missing == "admit",
        denial=INVALID,
        actions=actions_without_denial(actions) if policy.missing == "warn" else actions,
        message=f"not evaluated: {text}",
        severity=policy.severity,
        category=policy.category,
    )


def decision_of_unknown_pods(
    policy: Policy, binding: Binding, param: str, missing: tuple[MissingObject, ...]
) -> Decision:
    """Return the decision of a policy about Pods if the pods of an object are unknown."""
    text = ", ".join(map(str, missing))
    return replace(_undecided_decision(policy, binding, text, param), missing=missing)


def decision_of_unconverted_object(policy: Policy, binding: Binding, target: EvaluationTarget) -> Decision:
    """Return the decision of a policy that needs an object version to which only an API server can convert.

    For an object of a file, the version that an API server would send is unknown, so the decision is "unknown".
    """
    error = replace(error_of_policy(policy, binding, sentence_about_other_version(target)), warns_user=True)
    if not target.attributes.is_plain:
        return error
    text = f"not evaluated: {error.message}"
    return replace(error, evaluation="unknown", lets_pass=True, message=text, warns_user=False)


def sentence_about_other_version(target: EvaluationTarget) -> str:
    """Return the sentence that a policy names another version than the object has, with the fix."""
    sent, named = target.attributes.resource, target.match.resource
    name = f"{sent.resource}.{sent.group}" if sent.group else sent.resource
    return (
        f"the policy names {named.version} of {name}, the object came as {sent.version}, and claimgate cannot convert "
        f"it: name {sent.version} in matchConstraints of the policy, too, or register the webhook for {named.version} "
        "alone, so that the API server converts"
    )


def is_contained(error: Exception) -> bool:
    """Return whether an error is about only one policy. Then other policies can be evaluated."""
    return not isinstance(error, _PASSED_ON)


def contain_fault(faults: list[EvaluationFault], policy: str, error: Exception) -> str:
    """Add an unexpected error of a policy to the faults of the review, and return the message of its decision.

    The place of the error is logged. Its text is never logged, because it may contain a part of an object.
    """
    frames = traceback.extract_tb(error.__traceback__)
    groups = [*getattr(error, "__notes__", ())]
    fault = EvaluationFault(
        policy=policy,
        checks=groups[0] if groups else "",
        error=type(error).__name__,
        traceback=tuple(fault_locations(frames)),
    )
    faults.append(fault)
    if isinstance(error, UnlistedRuleError):
        return f"the policy cannot be evaluated: {error.args[0]}"
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    failed = f"checks `{fault.checks}`" if fault.checks else "evaluation"
    text = f"the policy cannot be evaluated because its {failed} failed ({fault.error} in {place})"
    return f"{text}: report this as a bug of claimgate"


def errors_of_interrupted_policies(
    attributes: Attributes, policies: PolicySet, cluster: Cluster, phase: Phase
) -> tuple[Decision, ...]:
    """Return an error of every policy of a phase that may concern a request, one for each binding.

    The review was stopped from outside, so the object of the request is not known. Policies and bindings with a
    namespaceSelector that excludes the request's namespace are left out.
    """
    context = request_context(policies, attributes, cluster)
    candidates = policies.validating_for(attributes, phase)
    if phase is Phase.MUTATE and attributes.operation is not Operation.DELETE:
        candidates = (*candidates, *policies.mutating_for(attributes))
    return tuple(
        error_of_policy(each.policy, binding, OVER_TIME)
        for each in candidates
        for binding in _bindings_that_may_match(each, context)
    )


def _bindings_that_may_match(candidate: Candidate, context: RequestContext) -> Iterator[Binding]:
    if _may_criteria_match(candidate.policy.criteria, context):
        bindings = (each.binding for each in candidate.bindings)
        yield from (each for each in bindings if each.criteria is None or _may_criteria_match(each.criteria, context))


def _may_criteria_match(criteria: Criteria, context: RequestContext) -> bool:
    try:
        return matches_namespace(criteria.namespaces, context.attributes, context.namespace.labels)
    except (BindingError, LookupFailed):
        return True


def decisions_of_undecoded_objects(mistyped: Iterable[tuple[EvaluationTarget, Policy]]) -> Iterator[Decision]:
    """Yield an "unknown" decision for each object with values of wrong types that no policy about types reported.

    `mistyped` has pairs of an object with values of wrong types and a policy that may concern the object. The decision
    has the name of the first policy that skipped the object.
    """
    skipped: dict[int, tuple[EvaluationTarget, Policy]] = {}  # by `id` of the object
    judged: set[int] = set()
    for target, policy in mistyped:
        if policy.judges_types:
            judged.add(id(target.object))
        else:
            skipped.setdefault(id(target.object), (target, policy))
    for key, (target, policy) in skipped.items():
        if key not in judged:
            yield _undecoded_decision(target, policy)


def _undecoded_decision(target: EvaluationTarget, policy: Policy) -> Decision:
    first = target.mismatches[0]
    path, text = target.reroot(f"{first.path}: {first.message}" if first.path else first.message)
    return Decision(
        policy=policy.name,
        rule=policy.name,
        binding=policy.bindings[0].name if policy.bindings else "",
        path=path,
        evaluation="unknown",
        lets_pass=True,
        message=f"not evaluated: {text}",
        severity=policy.severity,
        category=policy.category,
    )


def missing_objects_of_fields(rule: Validation, invocation: Invocation) -> Sequence[MissingObject]:
    """Return the missing objects that a rule needs for the fields of facts that it reads."""
    missing: dict[MissingObject, None] = {}
    for name, fields in rule.facts.items():
        if name != PROBLEMS:
            result = fact_as_cel_value(name, invocation)
            if result.missing:
                missing.update(dict.fromkeys(result.missing_objects_of_fields(None if WHOLE in fields else fields)))
    return tuple(missing)


def unchecked_problems(rule: Validation, invocation: Invocation) -> Sequence[Listed]:
    """Return the problems that could not be checked, and that a validation would report if they existed.

    The validation is evaluated with only these problems.

    Raises:
        BudgetExceeded: the time is up.
        LookupFailed: the param cannot be read.
    """
    if PROBLEMS not in rule.facts:
        return ()
    subject, context = invocation.subject(), invocation.context
    problems = (
        problem for group in invocation.policy.checks for problem in problems_of_group(group, subject).unchecked
    )
    with_actions = problems_with_actions(problems, invocation, advice=shows_advice(invocation))
    if not with_actions:
        return ()
    budget = context.cost_budget(RUNTIME_BUDGET)
    names = build_activation(invocation, budget)
    names[PROBLEMS] = [problem_as_cel_value(*each) for each in with_actions]
    try:
        if budget.evaluate(rule.expression, names) is True:
            return ()
        if rule.lists_problems and rule.message_expression is not None:
            listed = budget.evaluate(rule.message_expression, names)
            return problems_of_cel_value(listed, [problem for problem, _ in with_actions])
    except EvaluationError as error:
        if isinstance(error, BudgetExceeded) or context.deadline.is_over:
            raise
    return with_actions
