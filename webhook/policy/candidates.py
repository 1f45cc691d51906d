"""Who may speak about a request, and of whom that is certain before anybody looks at its object.

Most constraints name resources and operations alone. Whether they match is the same for every request for the same
resource and operation, so it is asked once for all of them; selectors and names of objects are asked each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from webhook.attributes import POD, Attributes
from webhook.manifests.label_selectors import EVERYTHING
from webhook.policy.compiled import Binding, Policy
from webhook.policy.equivalent_resources import Equivalents
from webhook.policy.matching import Criteria, matches, native


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
