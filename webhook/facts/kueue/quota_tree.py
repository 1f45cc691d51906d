"""Builds the trees of quota from the ClusterQueues and cohorts of a cluster, once for each state of the cluster.

A view gives the same sequence of objects until one of them changes: what is made of it is kept under that sequence. A
cohort that is named exists, whether there is a Cohort or not (kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy).
Stopped and inactive ClusterQueues still lend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook.deadline import Deadline
from webhook.facts.kueue.quota import QuotaNode, QuotaTree, set_parent
from webhook.facts.kueue.quota_types import QueueFields, read_stored_cluster_queue, read_stored_cohort
from webhook.facts.kueue.reservations import WorkloadReservations, read_reservations
from webhook.facts.kueue.types import ClusterQueue, Cohort
from webhook.facts.view import ClusterView
from webhook.same import IdentityKey
from webhook.typed.collections import Items

_KEPT_STATES: Final = 4
"""How many states of the cluster are cached: an audit has one, a server also the one before while it changes."""

_READ_WORK: Final = 50
"""What reading a ClusterQueue is charged: 0.2 ms for one with a dozen flavors."""


@dataclass(slots=True, eq=False)
class QuotaTrees:
    """All ClusterQueues and cohorts. Trees are built when they are first needed.

    Args:
        cluster_queues: by name.
        cohorts: Cohorts by name; a cohort need not have one.
        members: ClusterQueues by the name of their cohort.
        below: Cohorts by the name of their parent.
        reserved: what Workloads use, in place of what the status of the ClusterQueues says; None without Workloads,
            or where a status counts more of them.
    """

    cluster_queues: Mapping[str, QueueFields]
    cohorts: Mapping[str, QueueFields]
    members: dict[str, list[QueueFields]] = field(default_factory=dict)
    below: dict[str, list[QueueFields]] = field(default_factory=dict)
    reserved: WorkloadReservations | None = None
    _trees: dict[str, QuotaTree | None] = field(default_factory=dict)
    _nodes: dict[str, QuotaNode] = field(default_factory=dict)

    def tree_and_node_of_queue(self, name: str) -> tuple[QuotaTree, QuotaNode] | None:
        """Return the tree that a ClusterQueue is in, and its node; None if its cohorts have a cycle.

        Raises:
            KeyError: there is no such ClusterQueue.
        """
        queue = self.cluster_queues[name]
        tree = self.tree_of(queue.cohort) if queue.cohort else self._tree_of_queue_alone(queue)
        return None if tree is None else (tree, self._nodes[name])

    def _tree_of_queue_alone(self, queue: QueueFields) -> QuotaTree:
        node = self._nodes.get(queue.name)
        if node is None:
            node = self._nodes[queue.name] = self._cluster_queue_node(queue)
            self._trees[f"/{queue.name}"] = QuotaTree(node)
        return self._trees[f"/{queue.name}"] or QuotaTree(node)

    def tree_of(self, cohort: str) -> QuotaTree | None:
        """Return the whole tree that a cohort is in; None if it has a cycle."""
        root = self.root_of(cohort)
        if root is None:
            return None
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = QuotaTree(self._build_cohort_tree(root))
        return tree

    def root_of(self, cohort: str) -> str | None:
        """Return the name of the cohort at the root above one; None if the parents have a cycle."""
        passed = set()
        while cohort not in passed:
            passed.add(cohort)
            parent = self.parent_of(cohort)
            if not parent:
                return cohort
            cohort = parent
        return None

    def parent_of(self, cohort: str) -> str:
        """Return the name of the cohort above one, "" if there is none."""
        return self.cohorts[cohort].cohort if cohort in self.cohorts else ""

    def cycle_above(self, cohort: str) -> tuple[str, ...]:
        """Return the cohorts of a cycle above a cohort, each before its parent; () if there is none."""
        passed: dict[str, int] = {}
        while cohort and cohort not in passed:
            passed[cohort] = len(passed)
            cohort = self.parent_of(cohort)
        return tuple(passed)[passed[cohort] :] if cohort else ()

    def all_queues_and_cohorts(self) -> tuple[QueueFields, ...]:
        """Return all ClusterQueues and all Cohorts."""
        return (*self.cluster_queues.values(), *self.cohorts.values())

    def _build_cohort_tree(self, root: str) -> QuotaNode:
        top = self._cohort_node(root)
        waiting = [top]
        while waiting:
            node = waiting.pop()
            for queue in self.members.get(node.name, ()):
                child = self._nodes[queue.name] = self._cluster_queue_node(queue)
                set_parent(node, child)
            for cohort in self.below.get(node.name, ()):
                child = self._cohort_node(cohort.name)
                set_parent(node, child)
                waiting.append(child)
        return top

    def _cohort_node(self, name: str) -> QuotaNode:
        cohort = self.cohorts.get(name)
        return QuotaNode(name=name, is_cohort=True, quotas=cohort.quotas if cohort else {})

    def _cluster_queue_node(self, queue: QueueFields) -> QuotaNode:
        usage = queue.usage if self.reserved is None else self.reserved.usage.get(queue.name, {})
        return QuotaNode(name=queue.name, quotas=queue.quotas, usage=usage)


def read_quota_tree(view: ClusterView) -> QuotaTrees:
    """Return the queues of a view's cluster; objects that cannot be looked up are noted as missing."""
    stored = _StoredQueuesAndCohorts(
        IdentityKey(view.list_json(ClusterQueue.gvk)), IdentityKey(view.list_json(Cohort.gvk)), view.deadline
    )
    return _build_quota_trees(stored, IdentityKey(read_reservations(view)))


def others_in_tree_of_cohort(name: str, cohort: str, view: ClusterView) -> Items[QuotaNode]:
    """Return the other ClusterQueues and Cohorts in the tree of a cohort; none if it has a cycle."""
    tree = read_quota_tree(view).tree_of(cohort)
    nodes = tree.nodes() if tree else ()
    return Items([node for node in nodes if node.name != name], view.deadline)


@dataclass(frozen=True, slots=True)
class _StoredQueuesAndCohorts:
    """The stored ClusterQueues and Cohorts; the deadline is no part of the cache key, because it does not change the
    result. until when they may be read makes no difference to what they say.
    """

    cluster_queues: IdentityKey
    cohorts: IdentityKey
    deadline: Deadline = field(compare=False)

    def charge_for_each_object(self, objects: IdentityKey) -> Iterator[IdentityKey]:
        """Yield each object after charging the deadline for the work of reading it. what was read is kept, wherever the
        deadline ends it.
        """
        for stored in objects.held:
            self.deadline.spend(_READ_WORK)
            yield IdentityKey(stored)


@lru_cache(maxsize=_KEPT_STATES)
def _build_quota_trees(stored: _StoredQueuesAndCohorts, reserved: IdentityKey) -> QuotaTrees:
    listed = [read_stored_cluster_queue(queue) for queue in stored.charge_for_each_object(stored.cluster_queues)]
    parents = [read_stored_cohort(cohort) for cohort in stored.charge_for_each_object(stored.cohorts)]
    usage = reserved.held if _has_all_workloads(reserved.held, listed) else None
    tables = QuotaTrees(
        {queue.name: queue for queue in listed}, {cohort.name: cohort for cohort in parents}, reserved=usage
    )
    for queue in listed:
        tables.members.setdefault(queue.cohort, []).append(queue)
    for cohort in parents:
        if cohort.cohort:
            tables.below.setdefault(cohort.cohort, []).append(cohort)
    return tables


def _has_all_workloads(reserved: WorkloadReservations | None, listed: Sequence[QueueFields]) -> bool:
    """Return whether there are as many Workloads with quota as the status of every ClusterQueue counts."""
    return reserved is not None and all(reserved.holders[queue.name] >= (queue.reserving or 0) for queue in listed)
