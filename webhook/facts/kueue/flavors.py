"""Whether a flavor is one for the pods of a pod set, and Kueue's reason where it is not.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/flavorassigner.go checkFlavorForPodSets and
flavorSelector. Of node selectors and required node affinity only the keys of the flavor's labels count: a flavor
without labels fits every selector.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.kueue.objects import RESOURCE_FLAVOR
from webhook.facts.kueue.queues import name_of
from webhook.facts.pods.node_selection import REQUIRED_TERMS, holds, untolerated
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.same import Same
from webhook.schema import decode_object

_REQUIRED: Final = ("spec", *REQUIRED_TERMS)
TAINTED: Final = "its nodes have the taint"
UNMATCHED: Final = "its node labels do not match the"
"""How the reasons begin why pods cannot have a flavor."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Flavor:
    """A ResourceFlavor: labels and taints of its nodes, what it makes pods tolerate, and its Topology, "" for none."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[JSON, ...]
    tolerations: tuple[JSON, ...]
    topology: str


@lru_cache(maxsize=1024)
def _flavor(key: Same) -> Flavor:
    spec = mapping(mapping(decode_object(key.held, RESOURCE_FLAVOR).value).get("spec"))
    return Flavor(
        name=name_of(key.held),
        labels=spec.get("nodeLabels", {}),
        taints=tuple(spec.get("nodeTaints", ())),
        tolerations=tuple(spec.get("tolerations", ())),
        topology=spec.get("topologyName", ""),
    )


def flavor(name: str, view: View) -> Flavor | None:
    """The flavor of a name, or None, which the view's `missing` then explains."""
    obj = view.get(RESOURCE_FLAVOR, name, namespaced=False)
    return None if obj is None else _flavor(Same(obj))


def mismatch(flavor: Flavor, template: JSON, keys: Collection[str], deadline: Deadline) -> str:
    """Why pods of a template cannot have a flavor, "" where they can.

    Args:
        flavor: the flavor.
        template: the pod template.
        keys: the labels that selectors are asked about.
        deadline: is charged for what is walked.
    """
    tolerations = (*items(get(template, ("spec", "tolerations"))), *flavor.tolerations)
    taint = untolerated(flavor.taints, tolerations, deadline)
    if taint is not None:
        shown = "=".join(filter(None, (text(taint.get("key")), text(taint.get("value")))))
        return f"{TAINTED} {shown}:{taint.get('effect')}, which the pods do not tolerate"
    unmatched = _unmatched(flavor, template, keys, deadline)
    return f"{UNMATCHED} {unmatched} of the pods" if unmatched else ""


def _unmatched(flavor: Flavor, template: JSON, keys: Collection[str], deadline: Deadline) -> str:
    """What of the pods the labels of a flavor do not match; "" where they match all."""
    selector = mapping(get(template, ("spec", "nodeSelector")))
    wanted = [(key, value) for key, value in deadline.paced(selector.items()) if key in keys]
    if any(flavor.labels.get(key) != value for key, value in wanted):
        return "node selector"
    terms = items(get(template, _REQUIRED))
    asked = [[*_asked(term, keys, deadline)] for term in deadline.paced(terms)]
    if not asked or not all(asked):  # a term of which no key counts fits every flavor
        return ""
    return "" if any(all(holds(each, flavor.labels) for each in term) for term in asked) else "node affinity"


def _asked(term: JSON, keys: Collection[str], deadline: Deadline) -> Iterator[Mapping[str, JSON]]:
    for each in deadline.paced(items(mapping(term).get("matchExpressions"))):
        if text(mapping(each).get("key")) in keys:
            yield each


def overlooked(flavor: Flavor, template: JSON, others: Collection[str], deadline: Deadline) -> str:
    """A label that the pods select and other flavors of the group have, which this flavor says nothing of."""
    for key in deadline.paced(mapping(get(template, ("spec", "nodeSelector")))):
        if key in others and key not in flavor.labels:
            return key
    return ""
