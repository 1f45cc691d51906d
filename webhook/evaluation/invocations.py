"""Which policies are evaluated on which objects of a request: the targets, bindings and parameters of a policy.

A policy is evaluated on the request's own object. Annotations of the policy add more targets:

- `expand: pods`: every pod template as a virtual Pod in the request's namespace, with the operations and selectors of
  the rule for Pods; with `patches`, what a TrainJob lays over the templates of its runtime; with `resources`, the
  object itself where it has resources outside its templates.
- `expand: objects`: the objects inside, such as those in an AppWrapper, with the request's namespace and operation.

An object with values of wrong types is a target of policies about types alone.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.errors import AmbiguousObject, BindingError, BudgetExceeded, LookupFailed
from webhook.evaluation.not_evaluated import sentence_about_other_version
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.policy.candidates import PODS, Candidate, CandidateBinding, PrecomputedCriteriaMatch
from webhook.policy.compiled import Binding, MatchConditions, Policy
from webhook.policy.matching import Match, match_request
from webhook.policy.static_params import Param


def targets_of(candidate: Candidate, context: RequestContext) -> Sequence[EvaluationTarget]:
    """Return the request's own object if the policy matches it, then the objects inside it if the policy expands.

    Raises:
        BindingError: the namespace that a selector asks about does not exist.
        LookupFailed: nobody can say.
        BudgetExceeded: the time is up.
    """
    objects = context.objects
    match = _match_of_request(candidate.index, context)
    targets = [] if match is None else [objects.own_object_target(match)]
    if candidate.looks_inside:
        targets += matching_targets(candidate.index, _targets_inside_object(candidate.policy, context), context)
    return [
        target
        for target in targets
        if not target.mismatches or _evaluates_mistyped_object(candidate.policy, target, context)
    ]


def _evaluates_mistyped_object(policy: Policy, target: EvaluationTarget, context: RequestContext) -> bool:
    """Return whether a policy is evaluated on an object with wrong types; note the object if the policy may
    concern it.
    """
    kind = (target.kind.group, target.kind.kind)
    if context.policies.registry.may_checks_apply_to(policy.checks, kind, target.object):
        context.undecoded.append((target, policy))
    return policy.judges_types


def _match_of_request(index: PrecomputedCriteriaMatch, context: RequestContext) -> Match | None:
    """Return how the criteria match the request; None if they do not."""
    sent, namespace = context.objects.sent, context.namespace
    if index.own is None:
        equal = context.policies.equivalents
        return match_request(index.criteria, context.attributes, namespace.labels, equal, sent)
    return sent if index.own and namespace.is_selected_by(index.criteria.namespaces) else None


def _targets_inside_object(policy: Policy, context: RequestContext) -> Iterator[EvaluationTarget]:
    """Yield the objects inside the request's own that a policy is evaluated on."""
    if policy.reads_resources:
        yield from context.objects.own_object_as_pod_target()
    if policy.expands:
        yield from context.objects.pod_template_targets()
    if policy.reads_patches:
        yield from context.objects.patch_targets()
    if policy.enters:
        yield from context.objects.embedded_targets()


def record_targets_in_trace(candidate: Candidate, targets: Sequence[EvaluationTarget], context: RequestContext) -> None:
    """Tell the trace, if there is one, which objects a policy and which bindings do not apply to."""
    if (trace := context.options.trace) is not None:
        inside = [*_targets_inside_object(candidate.policy, context)] if candidate.looks_inside else []
        trace.record_unmatched_targets(candidate, inside, targets, context)
        listed = {id(each.binding) for each in candidate.bindings}
        for binding in candidate.policy.bindings:
            if id(binding) not in listed:
                trace.record_unmatched_bindings(candidate.policy, binding, targets, (), context)


def record_binding_in_trace(
    policy: Policy,
    binding: Binding,
    targets: Sequence[EvaluationTarget],
    context: RequestContext,
    *,
    bound: Sequence[EvaluationTarget],
    params: Sequence[Param],
) -> None:
    """Tell the trace, if there is one, which objects a binding does not match, and whether it has no parameter."""
    if (trace := context.options.trace) is not None:
        trace.record_unmatched_bindings(policy, binding, targets, bound, context)
        if bound and not params:
            trace.record_missing_param(policy, binding)


def matching_targets(
    index: PrecomputedCriteriaMatch, targets: Iterable[EvaluationTarget], context: RequestContext
) -> Sequence[EvaluationTarget]:
    """Return the targets that the criteria of a policy or a binding match.

    Raises:
        BindingError: the namespace that a selector asks about does not exist.
        LookupFailed: nobody can say.
        BudgetExceeded: the time is up.
    """
    own = context.objects.typed_own
    if targets is own and index.own is not None:
        return own if index.own and context.namespace.is_selected_by(index.criteria.namespaces) else ()
    return [
        target
        for target in context.deadline.items_with_clock_checks(targets)
        if _does_target_match(index, target, context)
    ]


def _does_target_match(index: PrecomputedCriteriaMatch, target: EvaluationTarget, context: RequestContext) -> bool:
    attributes, namespace = target.attributes_for_criteria, context.namespace
    is_certain = None
    if attributes.resource == attributes.request_resource == PODS:
        is_certain = index.pods
    elif target.podset is None:
        is_certain = index.own
    if is_certain is None:
        equal = context.policies.equivalents
        return match_request(index.criteria, attributes, namespace.labels, equal, target.match) is not None
    return is_certain and namespace.is_selected_by(index.criteria.namespaces)


_REVERSIBLE: Final = ("none", "version")
"""Conversions that allow changes to be put back into the object as it was sent."""


@dataclass(slots=True)  # not frozen, which makes it twice as slow to make
class PolicyInvocation:
    """One policy with one binding and parameter, to be run on one object; `gate` has its matchConditions."""

    policy: Policy
    gate: MatchConditions | None
    binding: Binding
    param: Param
    target: EvaluationTarget

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the names of policy, binding and parameter."""
        return self.policy.name, self.binding.name, self.param.name


@dataclass(frozen=True, slots=True)
class UnusablePolicy:
    """A policy or binding that cannot be used on this request, and the reason; `is_unknown` if that is not an error."""

    policy: Policy
    binding: Binding | None
    text: str
    is_told: bool = False
    is_unknown: bool = False


def invocations_of_policy(candidate: Candidate, context: RequestContext) -> list[PolicyInvocation | UnusablePolicy]:
    """Return the invocations of one policy, in the order of its bindings, parameters and targets."""
    policy, runs = candidate.policy, list[PolicyInvocation | UnusablePolicy]()
    try:
        targets = (candidate.is_own_alone and context.objects.typed_own) or targets_of(candidate, context)
    except AmbiguousObject as error:
        return [UnusablePolicy(policy, None, str(error), is_unknown=True)]
    except (BindingError, LookupFailed) as error:
        return [UnusablePolicy(policy, None, f"failed to configure policy: {error}")]
    except BudgetExceeded as error:
        return [UnusablePolicy(policy, None, str(error))]
    if context.options.trace is not None:
        record_targets_in_trace(candidate, targets, context)
    for binding in candidate.bindings if targets else ():
        runs += _invocations_of_binding(candidate, binding, targets, context)
    return runs


def _invocations_of_binding(
    candidate: Candidate,
    candidate_binding: CandidateBinding,
    targets: Sequence[EvaluationTarget],
    context: RequestContext,
) -> Sequence[PolicyInvocation | UnusablePolicy]:
    policy, binding, index = candidate.policy, candidate_binding.binding, candidate_binding.index
    try:
        bound = targets if index is None else matching_targets(index, targets, context)
        params = context.params.params_of_binding(policy, binding) if bound else ()
    except AmbiguousObject as error:
        return [UnusablePolicy(policy, binding, str(error), is_unknown=True)]
    except (BindingError, LookupFailed) as error:
        return [UnusablePolicy(policy, binding, f"failed to configure binding: {error}")]
    except BudgetExceeded as error:
        return [UnusablePolicy(policy, binding, str(error))]
    if context.options.trace is not None:
        record_binding_in_trace(policy, binding, targets, context, bound=bound, params=params)
    if not params:
        return ()
    others = [target for target in bound if target.match.conversion not in _REVERSIBLE]
    can = [target for target in bound if target.match.conversion in _REVERSIBLE] if others else bound
    unusable = [
        UnusablePolicy(policy, binding, sentence_about_other_version(target), is_told=True)
        for target in others
        if not target.attributes.is_plain
    ]
    return [
        *unusable,
        *(PolicyInvocation(policy, candidate.gate, binding, param, target) for param in params for target in can),
    ]
