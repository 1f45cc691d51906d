"""Network topologies: whether there are HyperNodes within which a gang, or a part of it, may be placed.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/network-topology-aware isEligibleHyperNode: with mode hard
a gang is placed within one HyperNode of at most the highest tier that it allows. A tier by name is looked up first
(pkg/scheduler/framework/session.go adjustNetworkTopologySpec), and one that no HyperNode has limits nothing. Jobs and
PodGroups have rules of their own about this, in job_topology.py and pod_group_topology.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.explanation import Explanation
from webhook.facts.volcano.queues import read_queues
from webhook.facts.volcano.types import HyperNode, NetworkTopology
from webhook.paths import render
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject
from webhook.wording import did_you_mean

_ABSENT = (MissingObject(kind="HyperNode", name=""),)
_SECOND: Final = 2


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers of the HyperNodes of a cluster.

    Args:
        lowest: the lowest number; None without HyperNodes.
        names: the names of tiers.
        is_unknown: whether there may be HyperNodes that nobody can look up.
    """

    lowest: int | None
    names: frozenset[str]
    is_unknown: bool


def read_tiers(subject: Subject) -> Tiers:
    """Those of the cluster, to be asked for with `Subject.once`."""
    view = subject.view()
    nodes = view.every(HyperNode)
    numbers = [node.spec.tier for node in nodes if node.spec.tier is not None]
    names = frozenset(node.spec.tier_name for node in nodes if node.spec.tier_name)
    is_unknown = not nodes and not (subject.once(read_queues).is_whole or view.is_whole())
    return Tiers(min(numbers, default=None), names, is_unknown)


def two_highest_tiers(topology: NetworkTopology) -> Explanation | None:
    """A highest tier that is given by its number and by its name."""
    if topology.highest_tier_allowed is None or not topology.highest_tier_name:
        return None
    path, message = topology.path("highestTierName"), "must not be set together with highestTierAllowed"
    return Explanation(path, message, "remove one of the two", topology.highest_tier_name)


def tier_below_all(topology: NetworkTopology, subject: Subject) -> Explanation | None:
    """A highest tier that is lower than the tiers of all HyperNodes."""
    most, name = topology.highest_tier_allowed, topology.highest_tier_name
    if topology.mode == "soft" or (most is None and not name):
        return None
    tiers = subject.once(read_tiers)
    if tiers.is_unknown:
        return Explanation(topology.at, missing=_ABSENT)
    if most is None or tiers.lowest is None or tiers.lowest <= most:
        return None
    message = f"is below {tiers.lowest}, the lowest tier of all HyperNodes, so the pods are never placed"
    return Explanation(topology.path("highestTierAllowed"), message, f"set {tiers.lowest} or more", most)


def unknown_tier_name(topology: NetworkTopology, subject: Subject) -> Explanation | None:
    """A name of a tier that no HyperNode has, where there are HyperNodes."""
    name = topology.highest_tier_name
    if topology.mode == "soft" or topology.highest_tier_allowed is not None or not name or is_placeholder(name):
        return None
    tiers = subject.once(read_tiers)
    if tiers.lowest is None or name in tiers.names:
        return None
    message = "is not the tier name of any HyperNode, so Volcano places the pods without regard to the topology"
    fix = did_you_mean(subject.view().nearest(name, tiers.names), "write the tier name of a HyperNode")
    return Explanation(topology.path("highestTierName"), message, fix, name)


def tier_above_gang(part: NetworkTopology, gang: NetworkTopology) -> Explanation | None:
    """A highest tier of a part of a gang that is higher than that of the gang."""
    most, bound = part.bound, gang.bound
    if bound is None or most is None or most <= bound:
        return None
    above = render(gang.path("highestTierAllowed"))
    message = f"has no effect because {above} keeps all pods within tier {bound}"
    lower = f"set {'at most ' if bound > _SECOND else ''}{bound - 1}" if bound > 1 else "remove the field here"
    return Explanation(part.path("highestTierAllowed"), message, f"{lower}, or raise {above}", most)
