"""Rules of Volcano for HyperNodes, and network topologies that no HyperNode can satisfy.

Regular expressions of selectors have the syntax of Go (RE2). With mode hard, a gang is placed within one HyperNode
with at most the highest allowed tier. A name of a tier means the number of this tier. A name has no effect if no
HyperNode has the name. Jobs, partitions of their tasks, PodGroups and their subgroups have a network topology.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/hypernodes/validate, the rules of the
CustomResourceDefinition about selectors, pkg/scheduler/plugins/network-topology-aware isEligibleHyperNode and
pkg/scheduler/framework/session.go adjustNetworkTopologySpec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from webhook.apimachinery.paths import path_as_text
from webhook.cel.library.patterns import compile_user_pattern
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_HYPER_NODE
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano_objects.types import HyperNode, HyperNodeMember, NetworkTopology
from webhook.rules.problem import MissingObject, Problem
from webhook.rules.rule import Rule
from webhook.text.wording import did_you_mean
from webhook.yamltext.placeholders import has_placeholder_variable, is_placeholder

MEMBER_REQUIRED: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/member-required",
    title="The HyperNode has no member",
    why="A HyperNode without members contains no node.",
    function="validateHyperNode",
)
ONE_SELECTOR: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/one-selector",
    title="The member does not have exactly one selector",
    why="A member is selected in exactly one way: by name, by a regular expression or by labels.",
    refused_by="the API server",
    source="volcano-sh/volcano@ed72c7c815a9 installer/helm/chart/volcano/crd/bases/topology.volcano.sh_hypernodes.yaml",
)
PATTERN: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/pattern",
    title="The member's pattern is not a regular expression",
    why="The pattern matches no node.",
    function="validateHyperNodeRegexPattern",
)
MEMBER_ITSELF: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/member-itself",
    title="The HyperNode is its own member",
    why="The topology would contain a cycle.",
    refused_by="nothing; the topology is not a tree",
    level="warn",
    fails="silent",
)
_SELECTORS: Final = ("exactMatch", "regexMatch", "labelMatch")
_ABSENT = (MissingObject(kind="HyperNode", name=""),)


def check_hyper_node(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a HyperNode's members."""
    node = subject.typed(HyperNode)
    if not node.spec.has("members"):  # the schema refuses an empty list
        message = "has no member, so the HyperNode contains no node"
        yield MEMBER_REQUIRED.problem(node.spec.path("members"), message, "add a member")
    for member in node.spec.members:
        yield from _check_one_selector(member)
        yield from _check_pattern(member)
        yield from _check_member_itself(member, node)


def _check_one_selector(member: HyperNodeMember) -> Iterator[Problem]:
    selector = member.selector
    given = [name for name in _SELECTORS if selector.has(name)]
    if selector and len(given) != 1:
        verb = "are" if len(given) > 1 else "is"
        message = f"{verb} given, but a member has exactly one of {', '.join(_SELECTORS)}"
        shown = " and ".join(given) or "no selector"
        yield ONE_SELECTOR.problem(selector.at, message, "keep one of them" if given else "add a selector", shown=shown)


def _check_pattern(member: HyperNodeMember) -> Iterator[Problem]:
    match = member.selector.regex_match
    if error := _error_of_pattern(match.pattern, match.reading.deadline):
        message = f"is not a valid regular expression ({error})"
        yield PATTERN.problem(match.path("pattern"), message, "correct the pattern", match.pattern)


def _check_member_itself(member: HyperNodeMember, node: HyperNode) -> Iterator[Problem]:
    exact = member.selector.exact_match
    if member.type == "HyperNode" and exact.name == node.name and node.name:
        message = "is this HyperNode itself, which cannot be its own member"
        yield MEMBER_ITSELF.problem(exact.path("name"), message, "name another HyperNode", exact.name)


def _error_of_pattern(pattern: str, deadline: Deadline) -> str:
    """Return why a text is not a regular expression; "" for a regular expression, and for a placeholder."""
    if has_placeholder_variable(pattern):
        return ""
    try:
        compile_user_pattern(pattern, deadline)
    except ValueError as error:
        return str(error)
    return ""


class TopologyRules(NamedTuple):
    """The rules about network topologies, for the objects of one kind."""

    highest_tier: Rule
    tier: Rule
    tier_name: Rule
    tier_order: Rule


@dataclass(frozen=True, slots=True)
class HyperNodeTiers:
    """The tiers of the HyperNodes of a cluster.

    Args:
        lowest: the lowest number of a tier; None without HyperNodes.
        names: the names of tiers.
        is_unknown: whether the view may lack HyperNodes of the cluster.
    """

    lowest: int | None
    names: frozenset[str]
    is_unknown: bool


def read_hyper_node_tiers(subject: Subject) -> HyperNodeTiers:
    """Return the tiers of the cluster. Call this function through `Subject.once`."""
    view = subject.cluster_view()
    nodes = view.list_visible(HyperNode)
    numbers = [node.spec.tier for node in nodes if node.spec.tier is not None]
    names = frozenset(node.spec.tier_name for node in nodes if node.spec.tier_name)
    is_unknown = not (view.is_whole(HyperNode.gvk) or (nodes and subject.once(read_queues).is_whole))
    return HyperNodeTiers(min(numbers, default=None), names, is_unknown)


def validate_network_topology(topology: NetworkTopology, rules: TopologyRules) -> Iterator[Problem]:
    """Report a topology that gives its highest tier both by number and by name."""
    if topology.highest_tier_allowed is not None and topology.highest_tier_name:
        path, message = topology.path("highestTierName"), "must not be set together with highestTierAllowed"
        yield rules.highest_tier.problem(path, message, "remove one of the two", topology.highest_tier_name)


def warn_of_missing_tiers(topology: NetworkTopology, subject: Subject, rules: TopologyRules) -> Iterator[Problem]:
    """Report tiers that no HyperNode of the cluster has."""
    yield from _check_highest_tier_number(topology, subject, rules)
    yield from _check_tier_name_exists(topology, subject, rules)


def warn_of_tiers_of_gang_part(
    part: NetworkTopology, gang: NetworkTopology, subject: Subject, rules: TopologyRules
) -> Iterator[Problem]:
    """Report tiers of a partition or a subgroup that do not exist or are higher than the tiers of the gang."""
    yield from warn_of_missing_tiers(part, subject, rules)
    yield from _check_part_tier_below_gang_tier(part, gang, rules)


def _check_highest_tier_number(topology: NetworkTopology, subject: Subject, rules: TopologyRules) -> Iterator[Problem]:
    """Report a highest allowed tier that is below the tier of every HyperNode."""
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
    """Report a name of a tier that no HyperNode has, if there are HyperNodes."""
    name = topology.highest_tier_name
    if topology.mode == "soft" or topology.highest_tier_allowed is not None or not name or is_placeholder(name):
        return
    tiers = subject.once(read_hyper_node_tiers)
    if tiers.lowest is not None and name not in tiers.names:
        message = "is not the tier name of any HyperNode, so Volcano ignores the topology"
        fix = did_you_mean(subject.cluster_view().nearest(name, tiers.names), "write the tier name of a HyperNode")
        yield rules.tier_name.problem(topology.path("highestTierName"), message, fix, name)


def _check_part_tier_below_gang_tier(
    part: NetworkTopology, gang: NetworkTopology, rules: TopologyRules
) -> Iterator[Problem]:
    """Report the highest tier of a partition or a subgroup if this tier is above the highest tier of the gang."""
    most, bound = part.hard_highest_tier, gang.hard_highest_tier
    if bound is not None and most is not None and most > bound:
        above = path_as_text(gang.path("highestTierAllowed"))
        message = f"has no effect because {above} keeps all pods within tier {bound}"
        fix = f"set {bound} or less, or raise {above} to {most}"
        yield rules.tier_order.problem(part.path("highestTierAllowed"), message, fix, most)
