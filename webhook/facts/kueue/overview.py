"""Lists all queues of a cluster: the trees of cohorts, and what each LocalQueue could ever admit.

The list is flat because trees may be deeper than Python can recurse. Parents are before their children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.facts.kueue.managed import selects_namespace
from webhook.facts.kueue.not_now import causes_of_inactivity
from webhook.facts.kueue.quota import FlavorResource, QuotaNode, QuotaTree, nodes_parents_first
from webhook.facts.kueue.quota_tree import QueueFields, QuotaTrees, read_quota_trees
from webhook.facts.queue_overview import QueueOverview, QueueResourceAmounts, QueueRow
from webhook.facts.view import ClusterView
from webhook.typed.collections import Items
from webhook.typed.kueue import ClusterQueue, LocalQueue, ResourceFlavor

_STOPPED: Final = "is stopped by its stopPolicy"


def read_queue_overview(view: ClusterView) -> QueueOverview:
    """Return all queues of a cluster; objects that cannot be looked up are noted as missing in the view."""
    trees = read_quota_trees(view)
    local: dict[str, list[LocalQueue]] = {}
    for queue in view.list_typed(LocalQueue):
        local.setdefault(queue.spec.cluster_queue, []).append(queue)
    rows = (*_OverviewRows(trees, view, local).all_rows(), *_rows_of_lost_local_queues(trees, local, view))
    used = {name for queue in trees.all_queues_and_cohorts() for name in queue.flavor_names()}
    unused = tuple(flavor.name for flavor in view.list_typed(ResourceFlavor) if flavor.name not in used)
    return QueueOverview(rows, unused, trees.reserved.number_of_workloads_with_quota if trees.reserved else None)


class _OverviewRows(Struct):
    """Creates the rows of all trees; `local` has the LocalQueues by ClusterQueue."""

    queues: QuotaTrees
    view: ClusterView
    local: dict[str, list[LocalQueue]]

    def all_rows(self) -> Iterator[QueueRow]:
        """Yield the rows of trees in the order of their roots' names, then of ClusterQueues without a cohort, then of
        cycles.
        """
        named = (queue.cohort for queue in self.queues.cluster_queues.values())
        cohorts = {*self.queues.cohorts, *filter(None, named)}
        roots = {name: self.queues.root_of(name) for name in sorted(cohorts)}
        for root in sorted({name for name in roots.values() if name is not None}):
            tree = self.queues.tree_of(root)
            if tree is not None:
                yield from self._rows_of_tree(tree)
        for queue in self.queues.members.get("", ()):
            placed = self.queues.tree_and_node_of_queue(queue.name)
            if placed is not None:
                yield from self._rows_of_cluster_queue(queue, placed[0], placed[1], 0)
        for name, top in roots.items():
            if top is None:
                yield from self._rows_of_cycle(name)

    def _rows_of_tree(self, tree: QuotaTree) -> Iterator[QueueRow]:
        depths: dict[QuotaNode, int] = {}
        for node in tree.nodes():
            depth = depths[node] = 0 if node.parent is None else depths[node.parent] + 1
            if node.is_cohort:
                yield self._row_of_cohort(node, tree, depth)
            else:
                yield from self._rows_of_cluster_queue(self.queues.cluster_queues[node.name], tree, node, depth)

    def _row_of_cohort(self, node: QuotaNode, tree: QuotaTree, depth: int) -> QueueRow:
        pairs = dict.fromkeys(pair for member in nodes_parents_first(node) for pair in member.quotas)
        amounts = [
            _build_amount(pair, node, most=tree.subtree_quota(node, pair), used=tree.usage(node, pair))
            for pair in Items([*pairs], self.view.deadline)
        ]
        parent = node.parent.name if node.parent else ""
        return QueueRow(kind="Cohort", name=node.name, parent=parent, depth=depth, amounts=tuple(amounts))

    def _rows_of_cluster_queue(
        self, queue: QueueFields, tree: QuotaTree, node: QuotaNode, depth: int
    ) -> Iterator[QueueRow]:
        amounts = tuple(_flavor_amount(pair, tree, node) for pair in Items([*queue.quotas], self.view.deadline))
        obstacles = tuple(_obstacles_of_queue(queue, self.view))
        yield QueueRow(
            kind="ClusterQueue", name=queue.name, parent=queue.cohort, depth=depth, amounts=amounts, obstacles=obstacles
        )
        yield from self._rows_of_local_queues(queue, amounts, obstacles, depth + 1)

    def _rows_of_local_queues(
        self, queue: QueueFields, amounts: Sequence[QueueResourceAmounts], obstacles: Sequence[str], depth: int
    ) -> Iterator[QueueRow]:
        for local in Items(self.local.get(queue.name, ()), self.view.deadline):
            own_obstacles = tuple(_obstacles_of_local_queue(local, queue, self.view))
            yield QueueRow(
                kind="LocalQueue",
                name=local.name,
                namespace=_namespace_or_default(local),
                parent=queue.name,
                depth=depth,
                amounts=() if own_obstacles or obstacles else tuple(amounts),
                obstacles=own_obstacles,
            )

    def _rows_of_cycle(self, name: str) -> Iterator[QueueRow]:
        obstacles = ("its parents form a cycle, so nothing is admitted",)
        yield QueueRow(kind="Cohort", name=name, parent=self.queues.parent_of(name), obstacles=obstacles)
        for queue in self.queues.members.get(name, ()):
            yield QueueRow(kind="ClusterQueue", name=queue.name, parent=name, depth=1, obstacles=obstacles)
            yield from self._rows_of_local_queues(queue, (), obstacles, 2)


def _flavor_amount(pair: FlavorResource, tree: QuotaTree, node: QuotaNode) -> QueueResourceAmounts:
    return _build_amount(pair, node, most=tree.potential_available_quota(node, pair), used=tree.usage(node, pair))


def _build_amount(pair: FlavorResource, node: QuotaNode, *, most: int, used: int) -> QueueResourceAmounts:
    quota = node.quota(pair)
    return QueueResourceAmounts(
        flavor=pair[0],
        resource=pair[1],
        nominal=quota.nominal,
        borrowing_limit=quota.borrowing_limit,
        lending_limit=quota.lending_limit,
        most=most,
        used=used,
    )


def _obstacles_of_queue(queue: QueueFields, view: ClusterView) -> Iterator[str]:
    if queue.is_stopped():
        yield f"{_STOPPED} {queue.stop_policy}"
    yield from (f"is inactive because {cause.text}" for cause in causes_of_inactivity(queue, view))
    if queue.namespace_selector is None:
        yield "accepts no job of any namespace because it has no namespaceSelector"
    if not queue.groups:
        yield "has no resource group"


def _obstacles_of_local_queue(local: LocalQueue, queue: QueueFields, view: ClusterView) -> Iterator[str]:
    policy, selector = local.spec.stop_policy, queue.namespace_selector
    if policy not in ("", "None"):
        yield f"{_STOPPED} {policy}"
    if selector is not None and selects_namespace(selector, _namespace_or_default(local), view) is False:
        yield f"its ClusterQueue does not accept jobs of namespace {_namespace_or_default(local)}"


def _namespace_or_default(local: LocalQueue) -> str:
    return local.namespace or "default"


def _rows_of_lost_local_queues(
    queues: QuotaTrees, local: Mapping[str, Sequence[LocalQueue]], view: ClusterView
) -> Iterator[QueueRow]:
    """Yield LocalQueues with a ClusterQueue that is not among `queues`. If the view is not complete, the ClusterQueue
    may exist.
    """
    for parent, lost in sorted(local.items()):
        for queue in lost if parent not in queues.cluster_queues else ():
            obstacles = (f"its ClusterQueue {parent} does not exist",) if view.is_whole(ClusterQueue.gvk) else ()
            yield QueueRow(
                kind="LocalQueue",
                name=queue.name,
                namespace=_namespace_or_default(queue),
                parent=parent,
                obstacles=obstacles,
            )
