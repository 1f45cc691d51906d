"""Who may speak about a request, and of whom that is certain before anybody looks at its object.

Most constraints name resources and operations alone. Whether they match is the same for every request for the same
resource and operation, so it is asked once for all of them; selectors and names of objects are asked each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from webhook.attributes import POD, Attributes, GroupVersionResource
from webhook.manifests.label_selectors import EVERYTHING
from webhook.policy.compiled import Binding, Policy
from webhook.policy.equivalent_resources import Equivalents
from webhook.policy.matching import Criteria, matches, native

PODS: Final = GroupVersionResource("", "v1", "pods")


class Certain(NamedTuple):
    """Whether criteria match every request as it was sent, and every pod template in it; None where it has to be asked.

    It keeps the criteria, so that their `id` stays theirs.
    """

    criteria: Criteria
    request: bool | None
    templates: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A policy that may speak about a request.

    `is_certain`: its constraints match the request as it was sent. `bindings` are those that may apply, each with
    whether that is certain but for its namespaceSelector.
    """

    policy: Policy
    is_certain: bool
    bindings: tuple[tuple[Binding, bool], ...]


def candidates(policies: Iterable[Policy], attributes: Attributes, equal: Equivalents) -> tuple[Candidate, ...]:
    """Those of some policies that may speak about requests for the same resource and operation as this one."""
    if attributes.kind != POD:  # of other kinds, policies may also be asked about what is inside
        return tuple(Candidate(each, False, tuple((binding, False) for binding in each.bindings)) for each in policies)
    made = []
    for policy in policies:
        is_certain = None if _selects(policy.criteria) else _matches(policy.criteria, attributes, equal)
        asked = [(each, _matches(each.criteria, attributes, equal)) for each in policy.bindings]
        bindings = tuple((each, bool(certain)) for each, certain in asked if certain is not False)
        if is_certain is None or (is_certain and bindings):
            made.append(Candidate(policy, bool(is_certain), bindings))
    return tuple(made)


def as_pod(attributes: Attributes, **others: Any) -> Attributes:
    """A request as criteria about Pods see it, with other values of some fields."""
    return replace(attributes, kind=POD, resource=PODS, request_kind=POD, request_resource=PODS, **others)


def certain_matches(listed: Iterable[Candidate], attributes: Attributes, equal: Equivalents) -> Mapping[int, Certain]:
    """What is certain of the criteria of candidates and their bindings, by the `id` of the criteria."""
    policies = [candidate.policy for candidate in listed]
    of_bindings = (binding.criteria for policy in policies for binding in policy.bindings)
    asked = {id(each): each for each in (*(policy.criteria for policy in policies), *of_bindings) if each is not None}
    pod = as_pod(attributes)
    return {
        number: Certain(criteria, _certainly(criteria, attributes, equal), _certainly(criteria, pod, equal))
        for number, criteria in asked.items()
    }


def _certainly(criteria: Criteria, attributes: Attributes, equal: Equivalents) -> bool | None:
    """As `_matches`, without leaving the namespaceSelector out: it decides where everything else matches."""
    matched = _matches(criteria, attributes, equal)
    return None if matched and _selects(criteria) else matched


def _selects(criteria: Criteria | None) -> bool:
    """Whether criteria have a namespaceSelector."""
    return criteria is not None and bool(criteria.namespaces.requirements)


def _matches(criteria: Criteria | None, attributes: Attributes, equal: Equivalents) -> bool | None:
    """Whether criteria match every such request as it was sent, or none; None where that has to be asked.

    Their namespaceSelector is left out.
    """
    if criteria is None:
        return True
    if criteria.objects.requirements:
        return None
    if any(each.names for each in (*criteria.rules, *criteria.excluded)):
        return None
    sent = native(attributes)
    match = matches(replace(criteria, namespaces=EVERYTHING), attributes, dict, equal, sent)
    return None if match is not None and match is not sent else match is not None
