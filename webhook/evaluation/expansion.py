"""The objects that a policy is evaluated on: the request's own, and for `expand: pods` every pod template inside it.

With `expand: objects` it speaks about the objects inside the request's too: what an AppWrapper wraps, the TrainJob of
an OptimizationJob. They have the request's namespace and operation, and what is said about them is re-rooted likewise.
A template becomes a virtual Pod with the request's namespace; the operations and selectors of the Pod rule carry over.
With `patches`, too, so does what a TrainJob lays over the templates of its runtime; with `resources`, it is asked about
the object itself where that has resources outside its templates. What is not of the types of its kind is shown to
policies about types alone. What is said about the virtual Pod is re-rooted to the object: messages get the template's
path (target.py), mutations go back into the template (rewriting.py). Knows the workload table, no expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import EvaluationTarget
from webhook.policy.candidates import PODS, Candidate, PrecomputedCriteriaMatch
from webhook.policy.compiled import Binding, Policy
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
