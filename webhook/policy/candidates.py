"""The policies that may speak about a request, with what is certain of their criteria before its object is looked at.

Most constraints name resources and operations alone. Whether they match is the same for every request for the same
resource and operation, so policy_set.py asks once and keeps the answer in its index. What depends on a selector or on
the name of an object is asked of each request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.attributes import POD, Attributes, GroupVersionResource
from webhook.manifests.label_selectors import EVERYTHING
from webhook.policy.compiled import Binding, Policy
from webhook.policy.equivalent_resources import Equivalents
from webhook.policy.matching import Criteria, matches, native

PODS: Final = GroupVersionResource("", "v1", "pods")


@dataclass(frozen=True, slots=True, eq=False)
class CriteriaIndex:
    """Criteria, and whether they match requests for one resource and operation, their namespaceSelector left out.

    `own` is about the object of the request, `pods` about a pod template in it; None where that depends on the object.
    """

    criteria: Criteria
    own: bool | None
    pods: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class CandidateBinding:
    """A binding that may apply; `index` is None where it applies to all that its policy matches."""

    binding: Binding
    index: CriteriaIndex | None


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A policy that may speak about a request, and its bindings."""

    policy: Policy
    index: CriteriaIndex
    bindings: tuple[CandidateBinding, ...]


def candidates(policies: Iterable[Policy], attributes: Attributes, equal: Equivalents) -> tuple[Candidate, ...]:
    """Those of some policies that may speak about requests for the same resource and operation as this one."""
    pod = as_pod(attributes)
    found = (_candidate(policy, attributes, pod, equal) for policy in policies)
    if attributes.kind != POD:  # of other kinds, policies may also be asked about what is inside
        return tuple(found)
    return tuple(each for each in found if each.index.own is not False)


def _candidate(policy: Policy, attributes: Attributes, pod: Attributes, equal: Equivalents) -> Candidate:
    bindings = (CandidateBinding(each, _index(each.criteria, attributes, pod, equal)) for each in policy.bindings)
    if attributes.kind == POD:
        bindings = (each for each in bindings if each.index is None or each.index.own is not False)
    index = _index(policy.criteria, attributes, pod, equal)
    assert index is not None
    return Candidate(policy, index, tuple(bindings))


def _index(criteria: Criteria | None, own: Attributes, pod: Attributes, equal: Equivalents) -> CriteriaIndex | None:
    if criteria is None:
        return None
    return CriteriaIndex(criteria, _certainly(criteria, own, equal), _certainly(criteria, pod, equal))


def as_pod(attributes: Attributes, **others: Any) -> Attributes:
    """A request as criteria about Pods see it, with other values of some fields."""
    return replace(attributes, kind=POD, resource=PODS, request_kind=POD, request_resource=PODS, **others)


def _certainly(criteria: Criteria, attributes: Attributes, equal: Equivalents) -> bool | None:
    """Whether criteria match every such request as it was sent, or none; None where that depends on the object."""
    if criteria.objects.requirements:
        return None
    if any(each.names for each in (*criteria.rules, *criteria.excluded)):
        return None
    sent = native(attributes)
    match = matches(replace(criteria, namespaces=EVERYTHING), attributes, dict, equal, sent)
    return None if match is not None and match is not sent else match is not None
