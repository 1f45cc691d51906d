"""Flavors whose labels no node has: Kueue gives them to a job, whose pods then wait for nodes.

Asked where a view has Nodes, none of them of a pool that grows: GKE, AKS, EKS and Karpenter label the nodes of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.facts.kinds import NODE
from webhook.facts.kueue.admission_checks import is_placed_later
from webhook.facts.kueue.flavors import Flavor
from webhook.facts.kueue.queues import Declared
from webhook.facts.values import mapping
from webhook.facts.view import View
from webhook.paths import get
from webhook.same import Same
from webhook.wording import either

_POOLS: Final = frozenset(
    (
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
        "agentpool",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name",
        "karpenter.sh/nodepool",
        "karpenter.sh/provisioner-name",
    )
)
_KEPT: Final = 512
"""Flavors with their nodes that are remembered."""


def without_nodes(flavors: Sequence[Flavor], queue: Declared, view: View) -> str:
    """Which labels no node has, where that is so of every flavor: `accelerator=a100 of flavor a100`; otherwise ""."""
    nodes = view.unnoted().all(NODE)
    if not nodes or any(is_placed_later(queue, each.name, view) for each in view.deadline.paced(flavors)):
        return ""
    view.deadline.spend(len(nodes))
    if any(not each.labels or _has_nodes(Same(each), Same(nodes)) for each in view.deadline.paced(flavors)):
        return ""
    return either([f"{_shown(each)} of flavor `{each.name}`" for each in flavors])


def _shown(flavor: Flavor) -> str:
    return ",".join(f"{key}={value}" for key, value in flavor.labels.items())


@lru_cache(maxsize=_KEPT)
def _has_nodes(flavor: Same, nodes: Same) -> bool:
    """Whether a node has the labels of a flavor, or may get some that have."""
    wanted = flavor.held.labels.items()
    return _may_grow(nodes) or any(wanted <= labels.items() for labels in _labels(nodes.held))


@lru_cache(maxsize=4)
def _may_grow(nodes: Same) -> bool:
    return any(not _POOLS.isdisjoint(labels) for labels in _labels(nodes.held))


def _labels(nodes: Sequence[JSON]) -> Iterator[dict[str, JSON]]:
    for each in nodes:
        yield {**mapping(get(each, ("metadata", "labels")))}
