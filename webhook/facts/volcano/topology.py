"""Network topologies: whether there are HyperNodes within which a gang may be placed.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/hyper_node_info.go, volcano-sh/apis@536f121 topology/v1alpha1.
A gang with mode hard is placed within one HyperNode of at most the highest tier that it allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from webhook.facts.pods.containers import text, whole
from webhook.facts.subject import Subject
from webhook.facts.volcano import kinds
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem


def advise_tier(
    holder: Mapping[str, Any], at: FieldPath, subject: Subject, problem: Callable[..., Problem]
) -> Iterator[Problem]:
    """The highest tier that a gang allows, where HyperNodes are known and none is of such a tier."""
    topology = holder.get("networkTopology")
    if not topology or topology.get("mode") == "soft":
        return
    nodes = subject.view().objects(kinds.HYPER_NODES)
    path = (*at, "networkTopology")
    if (name := topology.get("highestTierName")) and not is_placeholder(name):
        names = {text(get(each, ("spec", "tierName"))) for each in subject.deadline.paced(nodes)} - {""}
        if nodes and name not in names:
            message = "is the tier of no HyperNode, so the gang is never placed"
            yield problem("tier", (*path, "highestTierName"), message, "correct the name", name)
        return
    most = topology.get("highestTierAllowed")
    tiers = [tier for each in subject.deadline.paced(nodes) if (tier := whole(get(each, ("spec", "tier")))) is not None]
    if most is not None and tiers and min(tiers) > most:
        message = f"is below the lowest tier of a HyperNode, {min(tiers)}, so the gang is never placed"
        yield problem("tier", (*path, "highestTierAllowed"), message, f"set {min(tiers)} or more", most)
