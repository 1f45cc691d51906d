"""Selects the policies that may concern a request, without reading its object.

Most constraints name only resources and operations. The result for such constraints is the same for all requests with
one resource and operation, so policy_set.py caches this result in an index. Selectors and names of objects are matched
for each request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs

from webhook.apimachinery.attributes import POD, Attributes, GroupVersionResource, Operation
from webhook.facts.subject import FactRegistry
from webhook.manifests.annotations import RESOURCE_CONCERNS
from webhook.manifests.label_selectors import EVERYTHING
from webhook.policy.compiled import Binding, MatchConditions, Policy
from webhook.policy.matching import Criteria, ResourceEquivalences, is_exempt, match_of_unconverted, match_request

PODS: Final = GroupVersionResource("", "v1", "pods")


class InnerObjects(NamedTuple):
    """The objects on which a policy is evaluated in addition to the object of a request. A field is true if the policy
    is evaluated on its objects.

    Args:
        has_resources: the object itself as a pod, if it has resources outside its pod templates.
        pods: the pod templates of the object.
        merged_pods: pods that are created from this object and other objects.
        patches: parts of this object that change pod templates of other objects.
        objects: the objects that this object embeds.
    """

    has_resources: bool
    pods: bool
    merged_pods: bool
    patches: bool
    objects: bool


class PrecomputedCriteriaMatch(Struct, frozen=True, eq=False):
    """Criteria, with their result for one resource and operation. The result ignores the namespaceSelector.

    `own` is the result for the object of the request, and `pods` for a pod template in it. None means that the result
    depends on the object.
    """

    criteria: Criteria
    own: bool | None
    pods: bool | None


class CandidateBinding(Struct, frozen=True, eq=False):
    """A binding that may apply. `precomputed` is None if the binding applies to everything that its policy matches."""

    binding: Binding
    precomputed: PrecomputedCriteriaMatch | None


class Candidate(Struct, frozen=True, eq=False):
    """A policy that may concern a request, and its bindings.

    `inner`: the additional objects on which the policy is evaluated; None without such objects.
    `is_own_alone`: the policy always applies to the request's object, in every namespace, and to no other object.
    `match_conditions`: the matchConditions to evaluate; None if none of the policy's matchConditions could be false.
    `concerns` has words of the annotation `concerns`: the policy applies only to Pods and pod templates with one of
    these parts. If `concerns` is empty, the policy applies to all Pods and pod templates.
    `pod_parts`: the checks can find problems only in a Pod with one of these parts (typed/pod_parts.py); empty if the
    parts are unknown.
    """

    policy: Policy
    precomputed: PrecomputedCriteriaMatch
    bindings: tuple[CandidateBinding, ...]
    inner: InnerObjects | None
    is_own_alone: bool
    match_conditions: MatchConditions | None
    concerns: frozenset[str]
    pod_parts: frozenset[str]


def candidates_for_request(
    policies: Iterable[Policy], attributes: Attributes, equal: ResourceEquivalences, registry: FactRegistry
) -> tuple[Candidate, ...]:
    """Return the policies that may concern requests with the resource and operation of this request.

    If the request is about a policy, a binding or a webhook configuration, registered policies are left out.
    """
    if is_exempt(attributes):
        policies = (each for each in policies if not each.is_registered)
    pod = request_about_pods(attributes)
    possible = (_candidate_for_request(policy, attributes, pod, equal, registry) for policy in policies)
    return tuple(each for each in possible if each.precomputed.own is not False or each.inner is not None)


def _candidate_for_request(
    policy: Policy, attributes: Attributes, pod: Attributes, equal: ResourceEquivalences, registry: FactRegistry
) -> Candidate:
    precomputed = _precompute_criteria_match(policy.criteria, attributes, pod, equal)
    inner = _inner_objects_of_policy(policy) if _may_have_inner_objects(attributes) else None
    bindings_with_matches = (
        CandidateBinding(
            each, None if each.criteria is None else _precompute_criteria_match(each.criteria, attributes, pod, equal)
        )
        for each in policy.bindings
    )
    bindings = tuple(
        each
        for each in bindings_with_matches
        if inner is not None or each.precomputed is None or each.precomputed.own is not False
    )
    is_own_alone = precomputed.own is True and not (inner is not None or policy.criteria.namespaces.requirements)
    match_conditions = _conditions_to_evaluate(policy, attributes)
    concerns = frozenset(policy.concerns)
    if match_conditions is None or attributes.sub_resource or not concerns <= RESOURCE_CONCERNS:
        concerns = frozenset()
    pod_parts = _required_pod_parts(policy, attributes, registry)
    return Candidate(policy, precomputed, bindings, inner, is_own_alone, match_conditions, concerns, pod_parts)


def _may_have_inner_objects(attributes: Attributes) -> bool:
    """Return whether policies may be evaluated on objects embedded in the object of the request."""
    return attributes.kind != POD and not attributes.sub_resource and attributes.operation != Operation.CONNECT


def _inner_objects_of_policy(policy: Policy) -> InnerObjects | None:
    inner = InnerObjects(
        has_resources=policy.reads_resources,
        pods=policy.expands,
        merged_pods=policy.reads_merged_pods,
        patches=policy.reads_patches,
        objects=policy.enters,
    )
    return inner if any(inner) else None


def _conditions_to_evaluate(policy: Policy, attributes: Attributes) -> MatchConditions | None:
    """Return the matchConditions to evaluate on an object. The condition of `updates: spec` is left out for a creation,
    because this condition is then always true. Return None if no condition is left.
    """
    compiled = policy.match_conditions()
    if compiled.spec_changes is not None and attributes.operation == Operation.CREATE:
        compiled = structs.replace(compiled, spec_changes=None)
    return compiled if compiled.conditions or compiled.spec_changes is not None else None


def _required_pod_parts(policy: Policy, attributes: Attributes, registry: FactRegistry) -> frozenset[str]:
    """Return the parts for which the policy's checks run: a created or updated Pod needs at least one part. Empty means
    every Pod.
    """
    if attributes.kind != POD or attributes.operation == Operation.DELETE:
        return frozenset()
    return registry.checks_of_kind(("", "Pod"), is_deleted=False).pod_parts_that_checks_need(policy.checks)


def _precompute_criteria_match(
    criteria: Criteria, own: Attributes, pod: Attributes, equal: ResourceEquivalences
) -> PrecomputedCriteriaMatch:
    return PrecomputedCriteriaMatch(
        criteria, _match_without_object(criteria, own, equal), _match_without_object(criteria, pod, equal)
    )


def request_about_pods(attributes: Attributes, **others: Any) -> Attributes:
    """Return a request for a Pod, with some other fields of the given request, for matching criteria about Pods."""
    return replace(attributes, kind=POD, resource=PODS, request_kind=POD, request_resource=PODS, **others)


def _match_without_object(criteria: Criteria, attributes: Attributes, equal: ResourceEquivalences) -> bool | None:
    """Return whether the criteria match; None if the result depends on the object."""
    if criteria.objects.requirements:
        return None
    if any(each.names for each in (*criteria.rules, *criteria.excluded)):
        return None
    sent = match_of_unconverted(attributes)
    match = match_request(structs.replace(criteria, namespaces=EVERYTHING), attributes, dict, equal, sent)
    return None if match is not None and match is not sent else match is not None
