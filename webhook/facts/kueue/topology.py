"""Whether the nodes of a topology could ever hold the pods of a pod set, if nothing else ran on them.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/tas_flavorassigner.go and
pkg/cache/scheduler/tas_flavor_snapshot.go. Only what no node could hold is told: other pods, pod sets that are placed
together and pods of a group are not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.kueue.flavors import Flavor
from webhook.facts.kueue.objects import BOOLEANS, GROUP, NODE, TOPOLOGY
from webhook.facts.kueue.pod_requests import Amounts, amounts
from webhook.facts.pods.containers import items, mapping, text
from webhook.facts.scheduling.node_selection import untolerated
from webhook.facts.view import View
from webhook.paths import get
from webhook.problem import MissingObject

HOSTNAME: Final = "kubernetes.io/hostname"
REQUIRED: Final = f"{GROUP}/podset-required-topology"
PREFERRED: Final = f"{GROUP}/podset-preferred-topology"
UNCONSTRAINED: Final = f"{GROUP}/podset-unconstrained-topology"
SLICE_REQUIRED: Final = f"{GROUP}/podset-slice-required-topology"
SLICE_SIZE: Final = f"{GROUP}/podset-slice-size"
POD_SET_GROUP: Final = f"{GROUP}/podset-group-name"
LAYERS: Final = f"{GROUP}/podset-slice-required-topology-constraints"
_ONE: Final = 1000
"""One pod, in thousandths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a pod set asks of the topology; "" and 0 where it asks for nothing."""

    required: str = ""
    preferred: str = ""
    is_unconstrained: bool = False
    slice_level: str = ""
    slice_size: int = 0

    @property
    def is_explicit(self) -> bool:
        """Whether a topology is asked for at all."""
        return bool(self.required or self.preferred or self.is_unconstrained or self.slice_level)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that it names."""
        return tuple(filter(None, (self.required, self.preferred, self.slice_level)))


def wish(template: JSON) -> Wish:
    """What the annotations of a pod template ask for."""
    notes = mapping(get(template, ("metadata", "annotations")))
    size = text(notes.get(SLICE_SIZE))
    return Wish(
        required=text(notes.get(REQUIRED)),
        preferred=text(notes.get(PREFERRED)),
        is_unconstrained=BOOLEANS.get(text(notes.get(UNCONSTRAINED)), False),
        slice_level=text(notes.get(SLICE_REQUIRED)),
        slice_size=int(size) if size.isascii() and size.isdecimal() and len(size) < 10 else 0,
    )


def mismatch(wanted: Wish, flavor: Flavor, view: View, *, is_implied: bool) -> str:
    """Why a flavor is none for what a pod set asks of the topology, "" where it is."""
    if not flavor.topology:
        return "it has no topology, and the pods ask for one" if wanted.is_explicit else ""
    if not wanted.is_explicit and not is_implied:
        return "it is for pods that ask for a topology, and these do not"
    levels = levels_of(flavor, view)
    missing = next((each for each in wanted.levels if levels and each not in levels), "")
    return f"its topology `{flavor.topology}` has no level `{missing}`" if missing else ""


def levels_of(flavor: Flavor, view: View) -> tuple[str, ...]:
    """The node labels of a flavor's topology, from the top."""
    obj = view.get(TOPOLOGY, flavor.topology, namespaced=False)
    return tuple(text(mapping(each).get("nodeLabel")) for each in items(get(obj, ("spec", "levels"))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Pods that are to be placed on the nodes of a flavor: so many, with these requests."""

    wish: Wish
    flavor: Flavor
    template: JSON
    count: int
    requests: Amounts


def fits(placed: Placement, view: View) -> int | None:
    """How many of the pods the topology could hold where they may be placed; None where nobody knows its nodes."""
    levels = levels_of(placed.flavor, view)
    nodes = view.all(NODE)
    if not nodes and not view.is_whole():
        view.note(MissingObject(kind=NODE.kind, name=""))
        return None
    if not levels:
        return None
    domains = _domains(placed, levels, nodes, view.deadline)
    wanted = placed.wish
    if wanted.slice_level in levels and wanted.slice_size > 0:
        domains = _sliced(domains, levels.index(wanted.slice_level) + 1, wanted.slice_size)
    if wanted.required not in levels:
        return sum(domains.values())
    depth = levels.index(wanted.required) + 1
    return max(_joined(domains, depth).values(), default=0)


def _domains(
    placed: Placement, levels: Sequence[str], nodes: Sequence[JSON], deadline: Deadline
) -> dict[tuple[str, ...], int]:
    """How many of the pods each lowest domain could hold."""
    domains: Counter[tuple[str, ...]] = Counter()
    for node in deadline.paced(nodes):
        labels = mapping(get(node, ("metadata", "labels")))
        place = tuple(text(labels.get(each)) for each in levels)
        if all(place) and _is_open(node, labels, placed, levels[-1] == HOSTNAME, deadline):
            domains[place] += _held(node, placed.requests)
    return domains


def _is_open(node: JSON, labels: Mapping[str, JSON], placed: Placement, is_by_host: bool, deadline: Deadline) -> bool:
    """Whether a node may get any of the pods; their own selector counts only where hosts are the lowest level."""
    if any(labels.get(key) != value for key, value in placed.flavor.labels.items()):
        return False
    if get(node, ("spec", "unschedulable")) is True or not _is_ready(node):
        return False
    tolerations = (*items(get(placed.template, ("spec", "tolerations"))), *placed.flavor.tolerations)
    if untolerated(items(get(node, ("spec", "taints"))), tolerations, deadline) is not None:
        return not is_by_host
    selector = mapping(get(placed.template, ("spec", "nodeSelector")))
    return not is_by_host or all(labels.get(key) == value for key, value in deadline.paced(selector.items()))


def _is_ready(node: JSON) -> bool:
    conditions = map(mapping, items(get(node, ("status", "conditions"))))
    return all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")


def _held(node: JSON, requests: Amounts) -> int:
    allocatable = amounts(get(node, ("status", "allocatable")))
    asked = {**requests, "pods": _ONE}
    return min((allocatable.get(name, 0) // value for name, value in asked.items() if value > 0), default=0)


def _joined(domains: Mapping[tuple[str, ...], int], depth: int) -> dict[tuple[str, ...], int]:
    joined: Counter[tuple[str, ...]] = Counter()
    for place, most in domains.items():
        joined[place[:depth]] += most
    return joined


def _sliced(domains: Mapping[tuple[str, ...], int], depth: int, size: int) -> dict[tuple[str, ...], int]:
    """Pods that can be placed in whole slices, by the domain that holds a slice."""
    return {place: most // size * size for place, most in _joined(domains, depth).items()}
