"""All queues of a cluster at a glance: the trees of cohorts, and what each LocalQueue could ever admit.

A flat list in the order of the trees, parents before children: trees may be deeper than Python likes to nest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from webhook.attributes import JSON
from webhook.facts.kueue.blocked import causes
from webhook.facts.kueue.managed import takes_namespace
from webhook.facts.kueue.objects import LOCAL_QUEUE, RESOURCE_FLAVOR
from webhook.facts.kueue.queues import Declared, Queues, name_of, queues
from webhook.facts.kueue.quota import FlavorResource, Node, Quota, Tree, parents_first
from webhook.facts.resource_units import amount_text
from webhook.facts.values import text
from webhook.facts.view import View
from webhook.paths import get

Kind: TypeAlias = Literal["Cohort", "ClusterQueue", "LocalQueue"]
_STOPPED: Final = "is stopped by its stopPolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What a queue has of a flavor's resource, in Kueue's units.

    Args:
        flavor, resource: their names.
        quota: what it declares.
        most: the most that it could ever have; of a Cohort, what it and those below it share.
        used: what is reserved now.
    """

    flavor: str
    resource: str
    quota: Quota
    most: int
    used: int

    def shown(self, value: int | None) -> str | None:
        """One of its numbers as a quantity."""
        return None if value is None else amount_text(self.resource, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A Cohort, a ClusterQueue or a LocalQueue.

    Args:
        kind, name, namespace: which.
        parent: the name of the cohort, or of the ClusterQueue, that it belongs to; "" for none.
        depth: how many rows it is below.
        amounts: what it has; of a LocalQueue, what its ClusterQueue has, where it can be admitted.
        obstacles: why nothing is admitted.
    """

    kind: Kind
    name: str
    namespace: str = ""
    parent: str = ""
    depth: int = 0
    amounts: tuple[Amount, ...] = ()
    obstacles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything at a glance.

    Args:
        rows: the queues.
        unused_flavors: the flavors that nobody has quota for.
        workloads: how many Workloads with reserved quota say what is in use; None where the status of the
            ClusterQueues does.
    """

    rows: tuple[Row, ...]
    unused_flavors: tuple[str, ...]
    workloads: int | None = None


def overview(view: View) -> Overview:
    """Every queue of a cluster; what cannot be looked up is missing in the view."""
    known = queues(view)
    local: dict[str, list[JSON]] = {}
    for each in view.all(LOCAL_QUEUE):
        local.setdefault(text(get(each, ("spec", "clusterQueue"))), []).append(each)
    rows = (*_Trees(known, view, local).rows(), *_lost(known, local))
    everybody = (*known.cluster_queues.values(), *known.cohorts.values())
    used = {name for each in everybody for group in each.groups for name in group.flavors}
    flavors = (name_of(each) for each in view.all(RESOURCE_FLAVOR))
    unused = tuple(name for name in flavors if name not in used)
    return Overview(rows, unused, known.reserved.holding if known.reserved else None)


@dataclass(slots=True)
class _Trees:
    """The rows of all trees; `local` are the LocalQueues by their ClusterQueue."""

    known: Queues
    view: View
    local: dict[str, list[JSON]]

    def rows(self) -> Iterator[Row]:
        """Trees by the name of their roots, then ClusterQueues without a cohort, then cycles."""
        cohorts = {*self.known.cohorts, *(each.above for each in self.known.cluster_queues.values() if each.above)}
        roots = {name: self.known.root_of(name) for name in sorted(cohorts)}
        for root in sorted({each for each in roots.values() if each is not None}):
            tree = self.known.tree_of(root)
            if tree is not None:
                yield from self._tree(tree)
        for queue in self.known.members.get("", ()):
            placed = self.known.placed(queue.name)
            if placed is not None:
                yield from self._cluster_queue(queue, placed[0], placed[1], 0)
        for name, top in roots.items():
            if top is None:
                yield from self._cycle(name)

    def _tree(self, tree: Tree) -> Iterator[Row]:
        depths: dict[Node, int] = {}
        for node in tree.nodes():
            depth = depths[node] = 0 if node.parent is None else depths[node.parent] + 1
            if node.is_cohort:
                yield self._cohort(node, tree, depth)
            else:
                yield from self._cluster_queue(self.known.cluster_queues[node.name], tree, node, depth)

    def _cohort(self, node: Node, tree: Tree, depth: int) -> Row:
        pairs = dict.fromkeys(pair for each in parents_first(node) for pair in each.quotas)
        amounts = [
            Amount(
                flavor=pair[0],
                resource=pair[1],
                quota=node.quota(pair),
                most=tree.subtree(node, pair),
                used=tree.usage(node, pair),
            )
            for pair in self.view.deadline.paced(pairs)
        ]
        parent = node.parent.name if node.parent else ""
        return Row(kind="Cohort", name=node.name, parent=parent, depth=depth, amounts=tuple(amounts))

    def _cluster_queue(self, queue: Declared, tree: Tree, node: Node, depth: int) -> Iterator[Row]:
        amounts = tuple(_amount(pair, tree, node) for pair in self.view.deadline.paced(queue.quotas))
        obstacles = tuple(_obstacles(queue, self.view))
        yield Row(
            kind="ClusterQueue", name=queue.name, parent=queue.above, depth=depth, amounts=amounts, obstacles=obstacles
        )
        yield from self._local_queues(queue, amounts, obstacles, depth + 1)

    def _local_queues(
        self, queue: Declared, amounts: Sequence[Amount], obstacles: Sequence[str], depth: int
    ) -> Iterator[Row]:
        for each in self.view.deadline.paced(self.local.get(queue.name, ())):
            own = tuple(_of_local_queue(each, queue, self.view))
            yield Row(
                kind="LocalQueue",
                name=name_of(each),
                namespace=text(get(each, ("metadata", "namespace"))) or "default",
                parent=queue.name,
                depth=depth,
                amounts=() if own or obstacles else tuple(amounts),
                obstacles=own,
            )

    def _cycle(self, name: str) -> Iterator[Row]:
        known = self.known.cohorts.get(name)
        told = ("its parents lead back to a cohort below them, so that nothing is admitted",)
        yield Row(kind="Cohort", name=name, parent=known.above if known else "", obstacles=told)
        for queue in self.known.members.get(name, ()):
            yield Row(kind="ClusterQueue", name=queue.name, parent=name, depth=1, obstacles=told)
            yield from self._local_queues(queue, (), told, 2)


def _amount(pair: FlavorResource, tree: Tree, node: Node) -> Amount:
    most, used = tree.potential(node, pair), tree.usage(node, pair)
    return Amount(flavor=pair[0], resource=pair[1], quota=node.quota(pair), most=most, used=used)


def _obstacles(queue: Declared, view: View) -> Iterator[str]:
    policy = text(queue.spec.get("stopPolicy"))
    if policy not in ("", "None"):
        yield f"{_STOPPED} {policy}"
    yield from (f"is inactive because {each}" for each in causes(queue, view))
    if queue.spec.get("namespaceSelector") is None:
        yield "takes jobs of no namespace because it has no namespaceSelector"
    if not queue.groups:
        yield "has no resource group"


def _of_local_queue(obj: JSON, queue: Declared, view: View) -> Iterator[str]:
    policy = text(get(obj, ("spec", "stopPolicy")))
    if policy not in ("", "None"):
        yield f"{_STOPPED} {policy}"
    namespace = text(get(obj, ("metadata", "namespace"))) or "default"
    selector = queue.spec.get("namespaceSelector")
    if selector is not None and takes_namespace(selector, namespace, view) is False:
        yield f"its ClusterQueue does not take jobs of namespace {namespace}"


def _lost(known: Queues, local: dict[str, list[JSON]]) -> Iterator[Row]:
    """LocalQueues whose ClusterQueue is not there."""
    for name, listed in sorted(local.items()):
        for each in listed if name not in known.cluster_queues else ():
            namespace = text(get(each, ("metadata", "namespace"))) or "default"
            told = (f"its ClusterQueue {name} does not exist",)
            yield Row(kind="LocalQueue", name=name_of(each), namespace=namespace, parent=name, obstacles=told)
