"""Finds flavors whose labels no node has: Kueue assigns them to a job, whose pods then wait for nodes.

Asked where a view has Nodes, none of them of a pool that grows: GKE, AKS, EKS and Karpenter label the nodes of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from webhook.facts.kueue.admission_checks import may_run_on_future_nodes
from webhook.facts.kueue.flavors import FlavorFields
from webhook.facts.kueue.nodes import read_node_capacities
from webhook.facts.kueue.quota_types import QueueFields
from webhook.facts.kueue.types import ResourceFlavor
from webhook.facts.pods.node_selection import NODE_POOLS
from webhook.facts.view import ClusterView
from webhook.same import IdentityKey
from webhook.typed.nodes import Node
from webhook.wording import either

_KEPT: Final = 512
"""How many flavors with their nodes are cached."""


def labels_without_nodes(flavors: Sequence[FlavorFields], queue: QueueFields, view: ClusterView) -> str:
    """Return the labels that no node has, if that is so for every flavor: `accelerator=a100 of flavor a100`; otherwise
    "".
    """
    nodes = view.copy_without_missing_objects().list_json(Node.gvk)
    if (
        not nodes
        or not view.is_whole(Node.gvk)
        or any(may_run_on_future_nodes(queue, flavor.name, view) for flavor in flavors)
    ):
        return ""
    view.deadline.spend(len(nodes))
    if any(not flavor.labels or _may_have_nodes(IdentityKey(flavor), IdentityKey(nodes)) for flavor in flavors):
        return ""
    return either(
        [f"{_labels_as_text(flavor)} of flavor `{flavor.name}`{_origin_of_flavor(flavor, view)}" for flavor in flavors]
    )


def _origin_of_flavor(flavor: FlavorFields, view: ClusterView) -> str:
    return view.file_of_object_as_text(view.get_without_noting(ResourceFlavor.gvk, "", flavor.name))


def _labels_as_text(flavor: FlavorFields) -> str:
    return ",".join(f"{key}={value}" for key, value in flavor.labels.items())


@lru_cache(maxsize=_KEPT)
def _may_have_nodes(flavor: IdentityKey, nodes: IdentityKey) -> bool:
    """Return whether a node has the labels of a flavor, or a new node may have them."""
    wanted = flavor.held.labels.items()
    return _has_node_pool_labels(nodes) or any(wanted <= node.labels.items() for node in read_node_capacities(nodes))


@lru_cache(maxsize=4)
def _has_node_pool_labels(nodes: IdentityKey) -> bool:
    return any(not NODE_POOLS.isdisjoint(node.labels) for node in read_node_capacities(nodes))
