"""Whether the nodes of a topology could ever hold the pods of a pod set, or of several, if nothing else ran on them.

Kueue adds up what the nodes of each lowest domain have, and places the pod sets of a Workload one after the other, each
on what those before leave; a group of them in one domain. What is told of several is certain whatever their order: they
need more of a resource than all nodes that any of them may use have, or there are more pods than these could hold if
each were as small as the smallest. Other pods on the nodes are not looked at. Source: kubernetes-sigs/kueue@ff69552e
pkg/cache/scheduler/tas_topology_tree.go addNode and tas_flavor_snapshot.go FindTopologyAssignmentsForFlavor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.kinds import NODE
from webhook.facts.kueue.flavors import Flavor
from webhook.facts.kueue.topology import HOSTNAME, Wish, levels_of
from webhook.facts.pods.node_selection import untolerated
from webhook.facts.pods.pod_requests import Amounts, amounts
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.problem import MissingObject

Domain: TypeAlias = tuple[str, ...]
"""The values of the levels of a topology, from the top; () is all of it."""
PODS: Final = "pods"
_ONE: Final = 1000
"""One pod, in thousandths."""


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
    if not view.all(NODE) and not view.is_whole():
        view.note(MissingObject(kind=NODE.kind, name=""))
        return None
    if not levels:
        return None
    domains: Mapping[Domain, int] = {
        domain: _held(leaf, placed.requests) for domain, leaf in _leaves(placed, levels, view).items()
    }
    wanted = placed.wish
    if wanted.slice_level in levels and wanted.slice_size > 0:
        domains = _sliced(domains, levels.index(wanted.slice_level) + 1, wanted.slice_size)
    if wanted.required not in levels:
        return sum(domains.values())
    return max(_joined(domains, levels.index(wanted.required) + 1).values(), default=0)


def _leaves(placed: Placement, levels: Sequence[str], view: View) -> dict[Domain, Counter[str]]:
    """What the nodes of each lowest domain have that may get any of the pods."""
    leaves: dict[Domain, Counter[str]] = {}
    for node in view.deadline.paced(view.all(NODE)):
        labels = mapping(get(node, ("metadata", "labels")))
        domain = tuple(text(labels.get(each)) for each in levels)
        if all(domain) and _is_open(node, labels, placed, levels[-1] == HOSTNAME, view.deadline):
            leaves.setdefault(domain, Counter()).update(amounts(get(node, ("status", "allocatable"))))
    return leaves


def _is_open(node: JSON, labels: Mapping[str, JSON], placed: Placement, is_by_host: bool, deadline: Deadline) -> bool:
    """Whether a node may get any of the pods; taints and selectors count only where hosts are the lowest level."""
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


def _held(allocatable: Mapping[str, int], requests: Amounts) -> int:
    """How many pods there is room for."""
    asked = {**requests, PODS: _ONE}
    return min((allocatable.get(name, 0) // value for name, value in asked.items() if value > 0), default=0)


def _joined(domains: Mapping[Domain, int], depth: int) -> dict[Domain, int]:
    joined: Counter[Domain] = Counter()
    for domain, most in domains.items():
        joined[domain[:depth]] += most
    return joined


def _sliced(domains: Mapping[Domain, int], depth: int, size: int) -> dict[Domain, int]:
    """Pods that can be placed in whole slices, by the domain that holds a slice."""
    return {domain: most // size * size for domain, most in _joined(domains, depth).items()}


@dataclass(frozen=True, slots=True)
class Shortage:
    """What pods ask for together and what there is of it: thousandths of a resource, or pods."""

    resource: str
    asked: int
    most: int


@dataclass(slots=True)
class _Total:
    """What a domain has: in thousandths, as pods of the smallest size, and as pods of each pod set alone."""

    amounts: Counter[str] = field(default_factory=Counter)
    pods: int = 0
    alone: Counter[int] = field(default_factory=Counter)


def shortage(placed: Sequence[Placement], level: str, view: View) -> Shortage | None:
    """What pod sets of one flavor are certain to lack, in all nodes, or in every domain of a level; None for nothing.

    Args:
        placed: the pod sets, of the same flavor, each of which fits it alone.
        level: the level in one domain of which all of them have to be; "" where each may be anywhere.
        view: the cluster, with its nodes.
    """
    asked: Counter[str] = Counter()
    for each in placed:
        asked.update({name: value * each.count for name, value in each.requests.items()})
    shortages: list[Shortage] = []
    for total in _totals(placed, level, view):
        short = _short(placed, asked, total)
        if short is None:
            return None
        shortages.append(short)
    return min(shortages, key=lambda each: (each.asked / max(1, each.most), each.resource), default=None)


def _totals(placed: Sequence[Placement], level: str, view: View) -> Iterator[_Total]:
    """The domains of a level in which any of the pods may be."""
    levels = levels_of(placed[0].flavor, view)
    depth = levels.index(level) + 1 if level in levels else 0
    names = {name for each in placed for name in each.requests}
    smallest = {name: min(each.requests.get(name, 0) for each in placed) for name in names}
    of_sets = [_leaves(each, levels, view) for each in placed]
    totals: dict[Domain, _Total] = {}
    for domain in dict.fromkeys(domain for leaves in of_sets for domain in leaves):
        view.deadline.spend(len(placed))
        leaf = reduce(or_, (leaves[domain] for leaves in of_sets if domain in leaves))
        total = totals.setdefault(domain[:depth], _Total())
        total.amounts.update(leaf)
        total.pods += _held(leaf, smallest)
        for at, each in enumerate(placed):
            total.alone[at] += _held(leaf, each.requests) if domain in of_sets[at] else 0
    yield from totals.values()


def _short(placed: Sequence[Placement], asked: Mapping[str, int], total: _Total) -> Shortage | None:
    """What one domain lacks for all of them together."""
    for name in sorted(asked):
        if asked[name] > total.amounts[name]:
            return Shortage(name, asked[name], total.amounts[name])
    count = sum(each.count for each in placed)
    most = min(total.pods, sum(min(each.count, total.alone[at]) for at, each in enumerate(placed)))
    return Shortage(PODS, count, most) if count > most else None
