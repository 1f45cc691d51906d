"""Decides which policies are evaluated on which objects of a request, with which bindings and parameters.

The annotation `claimgate.dev/concerns` of a policy names resources of Pods. The policy is not evaluated on Pods without
these resources. A validating policy is also not evaluated on pod templates without these resources. Webhooks are
registered with matchConditions for the same resources (export/registrations.py), so that API servers do not send such
Pods, or built-in kinds with such templates. This module must accept every Pod that the matchConditions accept, and may
accept more.

A policy is evaluated on the request's own object. Annotations of the policy add more targets:

- `expand: pods`: every pod template as a virtual Pod in the request's namespace, with the operations and selectors of
  the rule for Pods; for a TrainJob, the pods merged with its runtime; with `patches`, the patches of a TrainJob over
  the templates of its runtime; with `resources`, the object itself if it has resources outside its templates.
- `expand: objects`: the objects inside, such as those in an AppWrapper, with the request's namespace and operation.

For an object with values of wrong types, only policies about types are evaluated.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, POD, Attributes, Operation
from webhook.deadline import Deadline
from webhook.errors import (
    AmbiguousObject,
    BindingError,
    BudgetExceeded,
    LookupFailed,
    MissingParams,
    UnreadPartError,
)
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.facts.subject import Subject
from webhook.manifests.annotations import RESOURCE_CONCERNS
from webhook.policy.candidates import PODS, Candidate, PrecomputedCriteriaMatch
from webhook.policy.compiled import BOOKKEEPING, Binding, MatchConditions, Policy
from webhook.policy.matching import Criteria, Match, match_request
from webhook.policy.static_params import Param
from webhook.typed.pod_parts import CLAIMS, PORTABLE
from webhook.typed.pods import Pod
from webhook.typed.view import ReadingContext

_AMOUNTS: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""The names of resources that are not devices."""
_OF_SERVER: Final = frozenset(("resourceVersion", "generation"))
"""Fields of metadata that the API server sets."""


def policies_that_may_concern(candidates: Iterable[Candidate], context: RequestContext) -> list[Candidate]:
    """Return the candidates except policies about resources that the Pod of the request does not have."""
    present: frozenset[str] | None = None
    remaining = []
    is_pod, is_update = context.attributes.kind == POD, context.attributes.operation is Operation.UPDATE
    for candidate in candidates:
        if is_update and candidate.policy.ignores_bookkeeping and _is_bookkeeping(context, candidate.policy):
            continue
        if is_pod and candidate.concerns:
            if present is None:
                present = _concerns_of_request(context)
            if candidate.concerns.isdisjoint(present):
                if context.options.trace is not None:
                    context.options.trace.record_unconcerned_pod(candidate)
                continue
        remaining.append(candidate)
    return remaining


class Invocation(Struct):
    """One policy with one binding and parameter, to be evaluated on one object of a request. Treat it as immutable.

    `match_conditions` has the matchConditions to evaluate; None if all are known to hold.
    """

    context: RequestContext
    policy: Policy
    match_conditions: MatchConditions | None
    binding: Binding
    param: Param
    target: EvaluationTarget

    @property
    def key(self) -> tuple[str, str, str]:
        return self.policy.name, self.binding.name, self.param.name

    def subject(self) -> Subject:
        """Return the target in the form for facts and checks.

        Raises:
            LookupFailed: the param cannot be read.
        """
        return self.context.subject(self.target, self.param)


class UnusablePolicy(Struct, frozen=True):
    """A policy, or one of its bindings, that cannot be used on this request.

    `error` is the error of the matching, if there was one. `warns_user`: users get a warning if the failurePolicy lets
    the request pass.
    """

    policy: Policy
    binding: Binding | None
    message: str
    error: Exception | None = None
    warns_user: bool = False


def invocations_of_policy(candidate: Candidate, context: RequestContext) -> Iterator[Invocation | UnusablePolicy]:
    """Yield the invocations of a policy on a request, in the order of its bindings, parameters and targets."""
    policy, trace = candidate.policy, context.options.trace
    try:
        targets = (candidate.is_own_alone and context.objects.typed_own) or _targets_of_policy(candidate, context)
    except (BindingError, LookupFailed, BudgetExceeded) as error:
        yield _unusable_policy(policy, None, error, context)
        return
    if trace is not None:
        _record_targets_in_trace(candidate, targets, context)
    for each in candidate.bindings if targets else ():
        binding = each.binding
        try:
            bound = (
                targets if each.precomputed is None else _matching_targets(each.precomputed, targets, policy, context)
            )
            params = context.params.static.get(binding) if bound else ()
            if params is None:
                params = context.params.params_of_binding(policy, binding)
            if trace is not None:
                _record_unmatched_objects(policy, binding, _targets_not_among(targets, bound), context)
                if bound and not params:
                    trace.record_missing_param(policy, binding)
            for param in params:
                for target in bound if len(bound) == 1 else context.deadline.items_with_clock_checks(bound):
                    yield Invocation(context, policy, candidate.match_conditions, binding, param, target)
        except (BindingError, LookupFailed, BudgetExceeded) as error:
            yield _unusable_policy(policy, binding, error, context)


def _unusable_policy(
    policy: Policy, binding: Binding | None, error: Exception, context: RequestContext
) -> UnusablePolicy:
    text = str(error)
    if isinstance(error, MissingParams) and not context.options.api_server_text:
        text = f"{text}: {error.named}"
    if not isinstance(error, AmbiguousObject | BudgetExceeded):
        text = f"failed to configure {'binding' if binding else 'policy'}: {text}"
    return UnusablePolicy(policy, binding, text, error)


def _targets_of_policy(candidate: Candidate, context: RequestContext) -> Sequence[EvaluationTarget]:
    """Return the request's own object if the policy matches it, and the objects inside it if the policy has `expand`.

    Raises:
        BindingError: a selector reads the labels of the namespace, which does not exist.
        LookupFailed: the namespace is not known.
        BudgetExceeded: the time is up.
    """
    objects, precomputed, policy = context.objects, candidate.precomputed, candidate.policy
    match: Match | None = None
    if precomputed.own is None:
        labels, equal = context.namespace.labels_for(policy), context.policies.equivalents
        match = match_request(precomputed.criteria, context.attributes, labels, equal, objects.sent)
    elif precomputed.own and context.namespace.is_selected_by(precomputed.criteria.namespaces, policy):
        match = objects.sent
    targets = [] if match is None else [objects.own_object_target(match)]
    if candidate.inner is not None:
        targets += _matching_targets(precomputed, objects.inner_targets(candidate.inner, policy), policy, context)
    for target in targets:
        if target.mismatches:
            return _without_mistyped_objects(targets, policy, context)
    return targets


def _without_mistyped_objects(
    targets: Iterable[EvaluationTarget], policy: Policy, context: RequestContext
) -> Sequence[EvaluationTarget]:
    """Leave out targets with values of wrong types, unless the policy is about types."""
    return [each for each in targets if not each.mismatches or _evaluates_mistyped_object(policy, each, context)]


def _evaluates_mistyped_object(policy: Policy, target: EvaluationTarget, context: RequestContext) -> bool:
    """Return whether a policy is about types. If its checks may apply to the object, note both in the context."""
    kind = (target.kind.group, target.kind.kind)
    if context.policies.registry.may_checks_apply_to(policy.checks, kind, target.object):
        context.undecoded.append((target, policy))
    return policy.judges_types


def _matching_targets(
    precomputed: PrecomputedCriteriaMatch, targets: Sequence[EvaluationTarget], policy: Policy, context: RequestContext
) -> Sequence[EvaluationTarget]:
    """Return the targets that the criteria of a policy or a binding match.

    Raises:
        BindingError: a selector reads the labels of the namespace, which does not exist.
        LookupFailed: the namespace is not known.
        BudgetExceeded: the time is up.
    """
    own_targets = context.objects.typed_own
    if targets is own_targets and precomputed.own is not None:
        is_matched = precomputed.own and context.namespace.is_selected_by(precomputed.criteria.namespaces, policy)
        return own_targets if is_matched else ()
    criteria, namespace, equal = precomputed.criteria, context.namespace, context.policies.equivalents
    matching = []
    for target in targets if len(targets) == 1 else context.deadline.items_with_clock_checks(targets):
        attributes = target.criteria_attributes or target.attributes
        does_match = precomputed.own if target.podset is None else None
        if attributes.resource == attributes.request_resource == PODS:
            does_match = precomputed.pods
        if does_match is None:
            labels = namespace.labels_for(policy)
            does_match = match_request(criteria, attributes, labels, equal, target.match) is not None
        elif does_match and criteria.namespaces.requirements:
            does_match = namespace.is_selected_by(criteria.namespaces, policy)
        if does_match:
            matching.append(target)
    return matching


# ---- policies that do not concern the object


def is_template_of_no_concern(candidate: Candidate, target: EvaluationTarget, context: RequestContext) -> bool:
    """Return whether a target is a pod template without the resources that a policy concerns. Resources that another
    object or a controller may add count as present.
    """
    podset = target.podset
    if podset is None or target.attributes.kind != POD or target.object is None:
        return False
    if target.merged is not None or target.missing or podset.is_patch or podset.partial is not None:
        return False
    return candidate.concerns.isdisjoint(_concerns_of_target(target, context, is_decoded=False))


def _concerns_of_request(context: RequestContext) -> frozenset[str]:
    try:
        target = context.objects.own_object_target(context.objects.sent)
    except BudgetExceeded:
        return RESOURCE_CONCERNS
    return _concerns_of_target(target, context, is_decoded=bool(context.objects.typed_own))


def _concerns_of_target(target: EvaluationTarget, context: RequestContext, *, is_decoded: bool) -> frozenset[str]:
    """Return the words of `concerns` that apply to a Pod or, in an update, to the old Pod. Return all words if there is
    no time, or if a part of the Pod has a wrong type or was not read. The policies are then evaluated, and their
    failurePolicy decides.
    """
    if target.concerns is None:
        try:
            target.concerns = _read_concerns_of_target(target, context, is_decoded=is_decoded)
        except (BudgetExceeded, TypeError, UnreadPartError):
            return RESOURCE_CONCERNS
    return target.concerns


def _read_concerns_of_target(target: EvaluationTarget, context: RequestContext, *, is_decoded: bool) -> frozenset[str]:
    if target.mismatches:
        return RESOURCE_CONCERNS
    reading = ReadingContext(context.deadline, frozenset(target.omitted), is_decoded)
    pod = target.typed_objects.get(Pod)
    if pod is None:
        pod = target.typed_objects[Pod] = Pod.of(target.object, (), reading)
    words = _concerns_of_pod(pod)
    return words if target.old_object is None else words | _concerns_of_pod(Pod.of(target.old_object, (), reading))


def _concerns_of_pod(pod: Pod) -> frozenset[str]:
    parts, spec = pod.parts, pod.json.get("spec") or {}
    words = {
        "devices": not parts.resource_names <= _AMOUNTS,
        "portable-gpu": PORTABLE in parts.resource_names,
        "claims": CLAIMS in parts.present,
        "pod-level": "resources" in spec or "overhead" in spec,
    }
    return frozenset([word for word, is_there in words.items() if is_there])


def _is_bookkeeping(context: RequestContext, policy: Policy) -> bool:
    """Return whether an update changes an object that is being deleted, or changes only fields of BOOKKEEPING that
    the policy does not name.

    Without this exception, a new policy could refuse such updates of older objects. For example, a Pod could not be
    deleted, because its finalizer could not be removed, and a Job would never end.
    """
    attributes = context.attributes
    new, old = attributes.object, attributes.old_object
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return False
    changed = _changed_bookkeeping(new, old, context.deadline)
    return changed is not None and changed.isdisjoint(policy.named_bookkeeping)


def _changed_bookkeeping(new: JSON, old: JSON, deadline: Deadline) -> frozenset[str] | None:
    """Return the fields of BOOKKEEPING that differ; None if other fields differ too. For an object that is being
    deleted, the result is empty.
    """
    metadata, before = new.get("metadata"), old.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(before, Mapping):
        return None
    if metadata.get("deletionTimestamp") is not None and before.get("deletionTimestamp") is not None:
        return frozenset()
    try:
        changed = {*_different_keys(new, old, deadline)} - {"metadata"} | {*_different_keys(metadata, before, deadline)}
    except UnreadPartError:  # an unread field may have changed
        return None
    return frozenset(changed - _OF_SERVER) if changed <= BOOKKEEPING | _OF_SERVER else None


def _different_keys(new: Mapping[str, JSON], old: Mapping[str, JSON], deadline: Deadline) -> frozenset[str]:
    keys = deadline.charge_for_items([*new, *(key for key in old if key not in new)])
    return frozenset(key for key in keys if key not in new or key not in old or new[key] != old[key])


# ---- the trace


def _record_targets_in_trace(
    candidate: Candidate, targets: Sequence[EvaluationTarget], context: RequestContext
) -> None:
    """Record in the trace, if there is a trace, the objects that a policy or a binding does not match."""
    trace, policy = context.options.trace, candidate.policy
    if trace is None:
        return
    inside = () if candidate.inner is None else context.objects.inner_targets(candidate.inner, policy)
    if not targets and not inside:
        part = _unmatched_part_of_criteria(policy.criteria, context.attributes, context.objects.sent, context)
        trace.record_unmatched_request(policy, context.attributes, part)
    _record_unmatched_objects(policy, None, _targets_not_among(inside, targets), context)
    bindings = {id(each.binding) for each in candidate.bindings}
    for binding in policy.bindings:
        if id(binding) not in bindings:
            _record_unmatched_objects(policy, binding, targets, context)


def _record_unmatched_objects(
    policy: Policy, binding: Binding | None, targets: Iterable[EvaluationTarget], context: RequestContext
) -> None:
    """Record in the trace, if there is a trace, why the criteria of a policy or binding do not match some objects."""
    if (trace := context.options.trace) is not None:
        criteria = (binding.criteria or Criteria()) if binding else policy.criteria
        for target in targets:
            attributes = target.attributes_for_criteria
            part = _unmatched_part_of_criteria(criteria, attributes, target.match, context)
            trace.record_unmatched_object(policy, binding, attributes, part, target.place)


def _targets_not_among(
    targets: Sequence[EvaluationTarget], matched: Sequence[EvaluationTarget]
) -> Iterator[EvaluationTarget]:
    identities = set(map(id, matched))
    yield from (target for target in targets if id(target) not in identities)


def _unmatched_part_of_criteria(
    criteria: Criteria, attributes: Attributes, sent: Match, context: RequestContext
) -> str:
    """Return "" if all parts match."""
    parts: list[str] = []
    equal = context.policies.equivalents
    try:
        match_request(criteria, attributes, context.namespace.labels, equal, sent, tell=parts.append)
    except (BindingError, LookupFailed) as error:
        return str(error)
    return "".join(parts)
