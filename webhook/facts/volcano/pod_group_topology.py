"""The network topology of a PodGroup and of its subgroups: what Volcano refuses, and what no pods fit into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.volcano.topology import tier_above_gang, tier_below_all, two_highest_tiers, unknown_tier_name
from webhook.facts.volcano.types import NetworkTopology
from webhook.problem import Problem

problem: Final = Group("volcano-pod-group").problem


def validate_network_topology(topology: NetworkTopology) -> Iterator[Problem]:
    """The highest tier is given by its number or by its name."""
    if reason := two_highest_tiers(topology):
        yield problem("highest-tier", reason.path, reason.message, reason.fix, reason.found)


def advise_topology(topology: NetworkTopology, subject: Subject) -> Iterator[Problem]:
    """Tiers that there are."""
    yield from _tier(topology, subject)
    yield from _tier_name(topology, subject)


def advise_sub_group(part: NetworkTopology, gang: NetworkTopology, subject: Subject) -> Iterator[Problem]:
    """The same of subgroups, which are nearer together than the whole gang."""
    yield from advise_topology(part, subject)
    yield from _tier_order(part, gang)


def _tier(topology: NetworkTopology, subject: Subject) -> Iterator[Problem]:
    if reason := tier_below_all(topology, subject):
        yield problem("tier", reason.path, reason.message, reason.fix, reason.found, missing=reason.missing)


def _tier_name(topology: NetworkTopology, subject: Subject) -> Iterator[Problem]:
    if reason := unknown_tier_name(topology, subject):
        yield problem("tier-name", reason.path, reason.message, reason.fix, reason.found)


def _tier_order(part: NetworkTopology, gang: NetworkTopology) -> Iterator[Problem]:
    if reason := tier_above_gang(part, gang):
        yield problem("tier-order", reason.path, reason.message, reason.fix, reason.found)
