"""Whether a flavor is one for the pods of a pod set, and Kueue's reason where it is not.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/flavorassigner.go checkFlavorForPodSets and
flavorSelector. Of node selectors and required node affinity only the keys of the flavor's labels count: a flavor
without labels fits every selector.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.facts.kueue.types import ResourceFlavor
from webhook.facts.pods.node_selection import first_untolerated_taint, labels_meet_requirement
from webhook.facts.view import View
from webhook.same import Same
from webhook.typed.pods import NodeSelectorTerm, PodTemplate, SelectorRequirement, Taint

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
    flavor = ResourceFlavor.of(key.held)
    return Flavor(
        name=flavor.name,
        labels=dict(flavor.spec.node_labels),
        taints=tuple(taint.json for taint in flavor.spec.node_taints),
        tolerations=tuple(toleration.json for toleration in flavor.spec.tolerations),
        topology=flavor.spec.topology_name,
    )


def find_flavor(name: str, view: View) -> Flavor | None:
    """The flavor of a name, or None, which the view's `missing` then explains."""
    obj = view.get(ResourceFlavor.gvk, name, namespaced=False)
    return None if obj is None else _flavor(Same(obj))


def existing_flavors(names: Collection[str], view: View) -> list[Flavor]:
    """The flavors of these names that exist."""
    view.deadline.spend(len(names))
    return [existing for name in names if (existing := find_flavor(name, view)) is not None]


def why_flavor_does_not_fit(flavor: Flavor, template: PodTemplate, keys: Collection[str]) -> str:
    """Why pods of a template cannot have a flavor, "" where they can.

    Args:
        flavor: the flavor.
        template: the pod template.
        keys: the labels that selectors are asked about.
    """
    taint = untolerated_taint(flavor.taints, flavor, template) if flavor.taints else None
    if taint:
        shown = "=".join(filter(None, (taint.key, taint.value)))
        return f"{TAINTED} {shown}:{taint.effect}, which the pods do not tolerate"
    unmatched = _unmatched(flavor, template, keys) if keys else ""
    return f"{UNMATCHED} {unmatched} of the pods" if unmatched else ""


def untolerated_taint(taints: Sequence[JSON], flavor: Flavor, template: PodTemplate) -> Taint:
    """The first taint that keeps pods out which get the tolerations of a flavor; false where none does."""
    tolerations = (*(toleration.json for toleration in template.spec.tolerations), *flavor.tolerations)
    taint = first_untolerated_taint(taints, tolerations, template.reading.deadline)
    return Taint(taint or {}, (), template.reading, is_set=taint is not None)


def _unmatched(flavor: Flavor, template: PodTemplate, keys: Collection[str]) -> str:
    """What of the pods the labels of a flavor do not match; "" where they match all."""
    selector = template.spec.node_selector.items()
    if any(key in keys and flavor.labels.get(key) != value for key, value in selector):
        return "node selector"
    required = template.spec.affinity.node_affinity.required
    terms = [[*_counting(term, keys)] for term in required.node_selector_terms]
    if not terms or not all(terms):  # a term of which no key counts fits every flavor
        return ""
    return (
        ""
        if any(all(labels_meet_requirement(flavor.labels, one) for one in term) for term in terms)
        else "node affinity"
    )


def _counting(term: NodeSelectorTerm, keys: Collection[str]) -> Iterator[SelectorRequirement]:
    """The requirements of a term about labels that count."""
    return (requirement for requirement in term.match_expressions if requirement.key in keys)


def overlooked_label(flavor: Flavor, template: PodTemplate, others: Collection[str]) -> str:
    """A label that the pods select and other flavors of the group have, which this flavor says nothing of."""
    for key in template.spec.node_selector:
        if key in others and key not in flavor.labels:
            return key
    return ""
