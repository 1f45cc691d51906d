"""The nodes of a cluster as Kueue sees them: labels, taints, and the resources for pods.

Read once for each state of a node: a view gives the same object until it changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.facts.pods.pod_requests import Amounts, amounts_in_thousandths
from webhook.facts.view import ClusterView
from webhook.same import IdentityKey
from webhook.typed.collections import Items
from webhook.typed.nodes import Node

_KEPT_OBJECTS: Final = 8192
_KEPT_STATES: Final = 4
"""How many states of the cluster are cached: an audit has one, a server also the one before while it changes."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodeCapacity:
    """A node with its labels, its taints and its resources for pods.

    Args:
        labels: its labels.
        taints: its taints.
        is_open: whether it is ready, and pods may be scheduled on it.
        allocatable: what pods may use of it, in thousandths.
    """

    labels: Mapping[str, str]
    taints: tuple[JSON, ...]
    is_open: bool
    allocatable: Amounts


def read_kueue_nodes(view: ClusterView) -> Items[NodeCapacity]:
    """Return the nodes of a view's cluster; objects that cannot be looked up are noted as missing."""
    return Items(read_node_capacities(IdentityKey(view.list_json(Node.gvk))), view.deadline)


@lru_cache(maxsize=_KEPT_STATES)
def read_node_capacities(listed: IdentityKey) -> Sequence[NodeCapacity]:
    """Return the nodes of a list of Node objects."""
    return tuple(_read_node_capacity(IdentityKey(node)) for node in listed.held)


@lru_cache(maxsize=_KEPT_OBJECTS)
def _read_node_capacity(key: IdentityKey) -> NodeCapacity:
    node = Node.of(key.held)
    return NodeCapacity(
        labels=dict(node.labels),
        taints=tuple(taint.json for taint in node.spec.taints),
        is_open=not node.spec.unschedulable and _is_node_ready(node),
        allocatable=amounts_in_thousandths(node.status.allocatable),
    )


def _is_node_ready(node: Node) -> bool:
    return all(condition.status == "True" for condition in node.status.conditions if condition.type == "Ready")
