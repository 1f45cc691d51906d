"""Finds flavors whose labels no node has: Kueue assigns them to a job, whose pods then wait for nodes.

Asked where a view has Nodes, none of them of a pool that grows: GKE, AKS, EKS and Karpenter label the nodes of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from webhook.facts.kueue.admission_checks import is_placed_later
from webhook.facts.kueue.flavors import ReadFlavor
from webhook.facts.kueue.nodes import read_node_capacities
from webhook.facts.kueue.quota_types import QueueFields
from webhook.facts.kueue.types import ResourceFlavor
from webhook.facts.pods.node_selection import NODE_POOLS
from webhook.facts.view import ClusterView
from webhook.same import Same
from webhook.typed.nodes import Node
from webhook.wording import either

_KEPT: Final = 512
"""How many flavors with their nodes are cached."""


def labels_without_nodes(flavors: Sequence[ReadFlavor], queue: QueueFields, view: ClusterView) -> str:
    """Return the labels that no node has, if that is so for every flavor: `accelerator=a100 of flavor a100`; otherwise
    "".
    """
    nodes = view.unnoted().all(Node.gvk)
    if not nodes or not view.is_whole(Node.gvk) or any(is_placed_later(queue, flavor.name, view) for flavor in flavors):
        return ""
    view.deadline.spend(len(nodes))
    if any(not flavor.labels or _may_have_nodes(Same(flavor), Same(nodes)) for flavor in flavors):
        return ""
    return either(
        [f"{_labels_as_text(flavor)} of flavor `{flavor.name}`{_origin_of_flavor(flavor, view)}" for flavor in flavors]
    )


def _origin_of_flavor(flavor: ReadFlavor, view: ClusterView) -> str:
    return view.origin(view.peek(ResourceFlavor.gvk, "", flavor.name))


def _labels_as_text(flavor: ReadFlavor) -> str:
    return ",".join(f"{key}={value}" for key, value in flavor.labels.items())


@lru_cache(maxsize=_KEPT)
def _may_have_nodes(flavor: Same, nodes: Same) -> bool:
    """Return whether a node has the labels of a flavor, or a new node may have them."""
    wanted = flavor.held.labels.items()
    return _has_node_pool_labels(nodes) or any(wanted <= node.labels.items() for node in read_node_capacities(nodes))


@lru_cache(maxsize=4)
def _has_node_pool_labels(nodes: Same) -> bool:
    return any(not NODE_POOLS.isdisjoint(node.labels) for node in read_node_capacities(nodes))
