"""Rules for network topologies: HyperNodes must exist within which a gang, or a part of it, can be placed.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/network-topology-aware isEligibleHyperNode: with mode hard
a gang is placed within one HyperNode of at most the highest tier that it allows. A tier by name is looked up first
(pkg/scheduler/framework/session.go adjustNetworkTopologySpec), and one that no HyperNode has limits nothing. The same
is wrong in Jobs, in partitions of their tasks, in PodGroups and in their subgroups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from webhook.facts.subject import Subject
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano_objects.types import HyperNode, NetworkTopology
from webhook.paths import path_as_text
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem
from webhook.problems.rule import Rule
from webhook.wording import did_you_mean

_ABSENT = (MissingObject(kind="HyperNode", name=""),)
_SECOND: Final = 2


class TopologyRules(NamedTuple):
    """The rules of the topologies of one kind."""

    highest_tier: Rule
    tier: Rule
    tier_name: Rule
    tier_order: Rule


@dataclass(frozen=True, slots=True)
class HyperNodeTiers:
    """The tiers of the HyperNodes of a cluster.

    Args:
        lowest: the lowest number; None without HyperNodes.
        names: the names of tiers.
        is_unknown: whether there may be HyperNodes that nobody can look up.
    """

    lowest: int | None
    names: frozenset[str]
    is_unknown: bool


def read_hyper_node_tiers(subject: Subject) -> HyperNodeTiers:
    """Return the tiers of the cluster; call it through `Subject.once`."""
    view = subject.cluster_view()
    nodes = view.list_visible(HyperNode)
    numbers = [node.spec.tier for node in nodes if node.spec.tier is not None]
    names = frozenset(node.spec.tier_name for node in nodes if node.spec.tier_name)
    is_unknown = not (view.is_whole(HyperNode.gvk) or (nodes and subject.once(read_queues).is_whole))
    return HyperNodeTiers(min(numbers, default=None), names, is_unknown)


def validate_network_topology(topology: NetworkTopology, rules: TopologyRules) -> Iterator[Problem]:
    """Yield a topology that gives its highest tier both by number and by name."""
    if topology.highest_tier_allowed is not None and topology.highest_tier_name:
        path, message = topology.path("highestTierName"), "must not be set together with highestTierAllowed"
        yield rules.highest_tier.problem(path, message, "remove one of the two", topology.highest_tier_name)


def warn_of_missing_tiers(topology: NetworkTopology, subject: Subject, rules: TopologyRules) -> Iterator[Problem]:
    """Yield tiers that no HyperNode of the cluster has."""
    yield from _check_highest_tier_number(topology, subject, rules)
    yield from _check_tier_name_exists(topology, subject, rules)


def warn_of_tiers_of_gang_part(
    part: NetworkTopology, gang: NetworkTopology, subject: Subject, rules: TopologyRules
) -> Iterator[Problem]:
    """Yield tiers of a partition or a subgroup that do not exist or are higher than those of the gang."""
    yield from warn_of_missing_tiers(part, subject, rules)
    yield from _check_part_tier_below_gang_tier(part, gang, rules)


def _check_highest_tier_number(topology: NetworkTopology, subject: Subject, rules: TopologyRules) -> Iterator[Problem]:
    """Yield a highest tier that is lower than the tiers of all HyperNodes."""
    most, name = topology.highest_tier_allowed, topology.highest_tier_name
    if topology.mode == "soft" or (most is None and not name):
        return
    tiers = subject.once(read_hyper_node_tiers)
    if tiers.is_unknown:
        yield rules.tier.problem(topology.at, missing=_ABSENT)
    elif most is not None and tiers.lowest is not None and tiers.lowest > most:
        message = f"is below {tiers.lowest}, the lowest tier of all HyperNodes, so the pods are never placed"
        yield rules.tier.problem(topology.path("highestTierAllowed"), message, f"set {tiers.lowest} or more", most)


def _check_tier_name_exists(topology: NetworkTopology, subject: Subject, rules: TopologyRules) -> Iterator[Problem]:
    """Yield a name of a tier that no HyperNode has, if there are HyperNodes."""
    name = topology.highest_tier_name
    if topology.mode == "soft" or topology.highest_tier_allowed is not None or not name or is_placeholder(name):
        return
    tiers = subject.once(read_hyper_node_tiers)
    if tiers.lowest is not None and name not in tiers.names:
        message = "is not the tier name of any HyperNode, so Volcano places the pods without regard to the topology"
        fix = did_you_mean(subject.cluster_view().nearest(name, tiers.names), "write the tier name of a HyperNode")
        yield rules.tier_name.problem(topology.path("highestTierName"), message, fix, name)


def _check_part_tier_below_gang_tier(
    part: NetworkTopology, gang: NetworkTopology, rules: TopologyRules
) -> Iterator[Problem]:
    """Yield a highest tier of a part of a gang that is higher than that of the gang."""
    most, bound = part.hard_highest_tier, gang.hard_highest_tier
    if bound is not None and most is not None and most > bound:
        above = path_as_text(gang.path("highestTierAllowed"))
        message = f"has no effect because {above} keeps all pods within tier {bound}"
        lower = f"set {'at most ' if bound > _SECOND else ''}{bound - 1}" if bound > 1 else "remove the field here"
        yield rules.tier_order.problem(part.path("highestTierAllowed"), message, f"{lower}, or raise {above}", most)
