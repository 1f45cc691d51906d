"""Network topologies: whether there are HyperNodes within which a gang, or a part of it, may be placed.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/network-topology-aware isEligibleHyperNode: with mode hard
a gang is placed within one HyperNode of at most the highest tier that it allows. A tier by name is looked up first
(pkg/scheduler/framework/session.go adjustNetworkTopologySpec), and one that no HyperNode has limits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from webhook.facts.subject import Subject
from webhook.facts.values import text, whole
from webhook.facts.volcano.queues import read_queues
from webhook.facts.volcano_objects import kinds
from webhook.paths import FieldPath, get, render
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem
from webhook.wording import did_you_mean

_ABSENT = (MissingObject(kind="HyperNode", name=""),)
_HIGHEST: Final = ("networkTopology", "highestTierAllowed")
_SECOND: Final = 2
_Say: TypeAlias = Callable[..., Problem]


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers of the HyperNodes that are known.

    Args:
        lowest: the lowest number; None without HyperNodes.
        names: the names of tiers.
        is_unknown: whether there may be HyperNodes, but nobody knows of any.
    """

    lowest: int | None
    names: frozenset[str]
    is_unknown: bool


def read_tiers(subject: Subject) -> Tiers:
    """Those of the cluster, to be asked for with `Subject.once`."""
    view = subject.view()
    specs = [get(each, ("spec",), {}) for each in subject.deadline.paced(view.objects(kinds.HYPER_NODES))]
    numbers = [tier for each in specs if (tier := whole(each.get("tier"))) is not None]
    names = frozenset(name for each in specs if (name := text(each.get("tierName"))))
    is_unknown = not specs and not (subject.once(read_queues).is_whole or view.is_whole())
    return Tiers(min(numbers, default=None), names, is_unknown)


def advise_tier(holder: Mapping[str, Any], at: FieldPath, subject: Subject, problem: _Say) -> Iterator[Problem]:
    """The highest tier that a gang allows, where HyperNodes are known and none is of such a tier."""
    topology = holder.get("networkTopology")
    if not topology or topology.get("mode") == "soft":
        return
    tiers, path = subject.once(read_tiers), (*at, "networkTopology")
    most, name = topology.get("highestTierAllowed"), topology.get("highestTierName", "")
    if tiers.is_unknown and (most is not None or name):
        yield problem("tier", path, missing=_ABSENT)
    elif most is not None and tiers.lowest is not None and tiers.lowest > most:
        message = f"is below {tiers.lowest}, the lowest tier of all HyperNodes, so the pods are never placed"
        yield problem("tier", (*path, "highestTierAllowed"), message, f"set {tiers.lowest} or more", most)
    elif most is None and name and not is_placeholder(name) and tiers.lowest is not None and name not in tiers.names:
        near = subject.view().nearest(name, tiers.names)
        message = "is not the tier name of any HyperNode, so Volcano places the pods without regard to the topology"
        fix = did_you_mean(near, "write the tier name of a HyperNode")
        yield problem("tier-name", (*path, "highestTierName"), message, fix, name)


def advise_part(
    part: Mapping[str, Any], at: FieldPath, of: tuple[Mapping[str, Any], FieldPath], subject: Subject, problem: _Say
) -> Iterator[Problem]:
    """The same of partitions or subgroups of a gang, which stands at a path and has a topology of its own or none."""
    yield from advise_tier(part, at, subject, problem)
    (gang, of_at), most = of, _bound(part)
    bound = _bound(gang)
    if bound is not None and most is not None and most > bound:
        above = render((*of_at, *_HIGHEST))
        message = f"has no effect because {above} keeps all pods within tier {bound}"
        lower = f"set {'at most ' if bound > _SECOND else ''}{bound - 1}" if bound > 1 else "remove the field here"
        yield problem("tier-order", (*at, *_HIGHEST), message, f"{lower}, or raise {above}", most)


def _bound(holder: Mapping[str, Any]) -> int | None:
    """The highest tier that a hard topology allows by its number."""
    topology = holder.get("networkTopology") or {}
    return None if topology.get("mode") == "soft" else topology.get("highestTierAllowed")
