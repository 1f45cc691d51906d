"""The ClusterQueues and cohorts of a cluster as trees of quota, built once for each state of the cluster.

A view gives the same sequence of objects until one of them changes: what is made of it is kept under that sequence, and
what is made of one object under that object. A cohort that is named exists, whether there is a Cohort or not
(kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy). Stopped and inactive ClusterQueues still lend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.facts.kueue.amounts import amount
from webhook.facts.kueue.quota import FlavorResource, Node, Quota, Tree, adopt
from webhook.facts.kueue.reservations import Reservations, reservations
from webhook.facts.kueue.types import (
    ClusterQueue,
    ClusterQueueSpec,
    ClusterQueueStatus,
    Cohort,
    Preemption,
    ResourceGroup,
)
from webhook.facts.view import View
from webhook.same import Same
from webhook.typed.collections import Items
from webhook.typed.fields import Amount

_KEPT_STATES: Final = 4
"""States of the cluster: an audit has one, a server the one before while it changes."""
_KEPT_OBJECTS: Final = 8192
_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")


@dataclass(frozen=True, slots=True)
class QuotaGroup:
    """A resource group: the resources that it covers and the flavors in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Queue:
    """What a ClusterQueue or a Cohort says. All but the first four fields are of ClusterQueues.

    Args:
        name: its name.
        cohort: the cohort that it belongs to, "" for none.
        groups: its resource groups.
        quotas: what it says of each flavor's resource.
        usage: what its status says is reserved.
        stop_policy: why it is stopped; "" and `None` where it is not.
        is_strict: whether its Workloads are admitted in the order in which they were created.
        namespace_selector: the label selector of the namespaces that may use it; null where none may.
        admission_checks: its AdmissionChecks, with the flavors that they are for; none means all of them.
        preempts_own, reclaims, preempts_to_borrow: which Workloads may be preempted: its own, those that borrow from
            it, and those of others when it borrows.
        inactive: the reason why its status says that it is inactive, "" where it does not.
        pending, reserving: how many Workloads its status counts; None where it says nothing.
    """

    name: str
    cohort: str
    groups: tuple[QuotaGroup, ...]
    quotas: Mapping[FlavorResource, Quota]
    usage: Mapping[FlavorResource, int] = field(default_factory=dict)
    stop_policy: str = ""
    is_strict: bool = False
    namespace_selector: Mapping[str, JSON] | None = None
    admission_checks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    preempts_own: bool = False
    reclaims: bool = False
    preempts_to_borrow: bool = False
    inactive: str = ""
    pending: int | None = None
    reserving: int | None = None

    def group_of(self, resource: str) -> QuotaGroup | None:
        """The group that covers a resource."""
        return next((group for group in self.groups if resource in group.resources), None)

    def flavors(self) -> set[str]:
        """The flavors of all its groups."""
        return {name for group in self.groups for name in group.flavors}

    def is_stopped(self) -> bool:
        """Whether somebody has stopped it."""
        return self.stop_policy not in ("", "None")


@lru_cache(maxsize=_KEPT_OBJECTS)
def _cluster_queue(key: Same) -> Queue:
    return read_cluster_queue(ClusterQueue.of(key.held))


@lru_cache(maxsize=_KEPT_OBJECTS)
def _cohort(key: Same) -> Queue:
    cohort = Cohort.of(key.held)
    return Queue(
        name=cohort.name,
        cohort=cohort.spec.parent_name,
        groups=tuple(map(_group, cohort.spec.resource_groups)),
        quotas=dict(_quotas(cohort.spec.resource_groups)),
    )


def read_cluster_queue(queue: ClusterQueue) -> Queue:
    """What a ClusterQueue says."""
    spec, status = queue.spec, queue.status
    active, preemption = status.condition("Active"), spec.preemption
    return Queue(
        name=queue.name,
        cohort=spec.cohort_name or spec.cohort,
        groups=tuple(map(_group, spec.resource_groups)),
        quotas=dict(_quotas(spec.resource_groups)),
        usage=dict(_usage(status)),
        stop_policy=spec.stop_policy,
        is_strict=spec.queueing_strategy == "StrictFIFO",
        namespace_selector=spec.namespace_selector.json if spec.has("namespaceSelector") else None,
        admission_checks=_admission_checks(spec),
        preempts_own=preemption.within_cluster_queue != "Never",
        reclaims=preemption.reclaim_within_cohort != "Never",
        preempts_to_borrow=_preempts_to_borrow(preemption),
        inactive=f"{active.reason}: {active.message}" if active.status == "False" else "",
        pending=status.pending_workloads,
        reserving=status.reserving_workloads,
    )


def _preempts_to_borrow(preemption: Preemption) -> bool:
    return "Never" not in (preemption.reclaim_within_cohort, preemption.borrow_within_cohort.policy)


def _admission_checks(spec: ClusterQueueSpec) -> dict[str, frozenset[str]]:
    """The AdmissionChecks in either of their two forms."""
    every: dict[str, frozenset[str]] = dict.fromkeys(spec.admission_checks, frozenset())
    return every | {
        check.name: frozenset(check.on_flavors) for check in spec.admission_checks_strategy.admission_checks
    }


def _group(group: ResourceGroup) -> QuotaGroup:
    return QuotaGroup(tuple(group.covered_resources), tuple(flavor.name for flavor in group.flavors))


def _quotas(groups: Iterable[ResourceGroup]) -> Iterator[tuple[FlavorResource, Quota]]:
    for group in groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                amounts = map(_scalar, map(resource.json.get, _AMOUNTS))  # faster than fields, of thousands
                yield (flavor.name, resource.name), _quota(resource.name == "cpu", *amounts)


def _scalar(value: JSON) -> Amount | None:
    return value if isinstance(value, str | int | float) else None


@lru_cache(maxsize=4096, typed=True)
def _quota(is_cpu: bool, nominal: Amount | None, borrowing: Amount | None, lending: Amount | None) -> Quota:
    """Queues have few different quotas, and thousands of them are read at once."""
    resource = "cpu" if is_cpu else ""
    return Quota(
        nominal=amount(resource, nominal) or 0,
        borrowing_limit=amount(resource, borrowing),
        lending_limit=amount(resource, lending),
    )


def _usage(status: ClusterQueueStatus) -> Iterator[tuple[FlavorResource, int]]:
    for flavor in status.flavors_reservation:
        for resource in flavor.resources:
            yield (flavor.name, resource.name), amount(resource.name, resource.total) or 0


@dataclass(slots=True, eq=False)
class Queues:
    """All ClusterQueues and cohorts. Trees are made when they are first asked for.

    Args:
        cluster_queues: by name.
        cohorts: Cohorts by name; a cohort need not have one.
        members: ClusterQueues by the name of their cohort.
        below: Cohorts by the name of their parent.
        reserved: what Workloads use, in place of what the status of the ClusterQueues says; None without Workloads,
            or where a status counts more of them.
    """

    cluster_queues: Mapping[str, Queue]
    cohorts: Mapping[str, Queue]
    members: dict[str, list[Queue]] = field(default_factory=dict)
    below: dict[str, list[Queue]] = field(default_factory=dict)
    reserved: Reservations | None = None
    _trees: dict[str, Tree | None] = field(default_factory=dict)
    _nodes: dict[str, Node] = field(default_factory=dict)

    def placed(self, name: str) -> tuple[Tree, Node] | None:
        """The tree that a ClusterQueue is in, and its node; None where its cohorts have a cycle.

        Raises:
            KeyError: there is no such ClusterQueue.

        """
        queue = self.cluster_queues[name]
        tree = self.tree_of(queue.cohort) if queue.cohort else self._alone(queue)
        return None if tree is None else (tree, self._nodes[name])

    def _alone(self, queue: Queue) -> Tree:
        node = self._nodes.get(queue.name)
        if node is None:
            node = self._nodes[queue.name] = self._node(queue)
            self._trees[f"/{queue.name}"] = Tree(node)
        return self._trees[f"/{queue.name}"] or Tree(node)

    def tree_of(self, cohort: str) -> Tree | None:
        """The whole tree that a cohort is in; None where it has a cycle."""
        root = self.root_of(cohort)
        if root is None:
            return None
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = Tree(self._grown(root))
        return tree

    def root_of(self, cohort: str) -> str | None:
        """The name of the cohort at the root above one; None where the parents lead back."""
        passed = set()
        while cohort not in passed:
            passed.add(cohort)
            parent = self.parent_of(cohort)
            if not parent:
                return cohort
            cohort = parent
        return None

    def parent_of(self, cohort: str) -> str:
        """The name of the cohort above one, "" where there is none."""
        return self.cohorts[cohort].cohort if cohort in self.cohorts else ""

    def cycle_above(self, cohort: str) -> tuple[str, ...]:
        """The cohorts, each before its parent, whose parents lead back to the first; () where none do."""
        passed: dict[str, int] = {}
        while cohort and cohort not in passed:
            passed[cohort] = len(passed)
            cohort = self.parent_of(cohort)
        return tuple(passed)[passed[cohort] :] if cohort else ()

    def everyone(self) -> tuple[Queue, ...]:
        """The ClusterQueues and the Cohorts."""
        return (*self.cluster_queues.values(), *self.cohorts.values())

    def _grown(self, root: str) -> Node:
        top = self._cohort(root)
        waiting = [top]
        while waiting:
            node = waiting.pop()
            for queue in self.members.get(node.name, ()):
                child = self._nodes[queue.name] = self._node(queue)
                adopt(node, child)
            for cohort in self.below.get(node.name, ()):
                child = self._cohort(cohort.name)
                adopt(node, child)
                waiting.append(child)
        return top

    def _cohort(self, name: str) -> Node:
        cohort = self.cohorts.get(name)
        return Node(name=name, is_cohort=True, quotas=cohort.quotas if cohort else {})

    def _node(self, queue: Queue) -> Node:
        usage = queue.usage if self.reserved is None else self.reserved.usage.get(queue.name, {})
        return Node(name=queue.name, quotas=queue.quotas, usage=usage)


def queues(view: View) -> Queues:
    """The queues of a view's cluster; what cannot be looked up is missing in the view."""
    return _queues(Same(view.all(ClusterQueue.gvk)), Same(view.all(Cohort.gvk)), Same(reservations(view)))


def others_of(name: str, cohort: str, view: View) -> Items[Node]:
    """All but one of the ClusterQueues and Cohorts that are in one tree with a cohort; none where it has a cycle."""
    tree = queues(view).tree_of(cohort)
    nodes = tree.nodes() if tree else ()
    return Items([node for node in nodes if node.name != name], view.deadline)


@lru_cache(maxsize=_KEPT_STATES)
def _queues(cluster_queues: Same, cohorts: Same, reserved: Same) -> Queues:
    listed = [_cluster_queue(Same(queue)) for queue in cluster_queues.held]
    parents = [_cohort(Same(cohort)) for cohort in cohorts.held]
    usage = reserved.held if _are_all(reserved.held, listed) else None
    tables = Queues(
        {queue.name: queue for queue in listed}, {cohort.name: cohort for cohort in parents}, reserved=usage
    )
    for queue in listed:
        tables.members.setdefault(queue.cohort, []).append(queue)
    for cohort in parents:
        if cohort.cohort:
            tables.below.setdefault(cohort.cohort, []).append(cohort)
    return tables


def _are_all(reserved: Reservations | None, listed: Sequence[Queue]) -> bool:
    """Whether there are as many Workloads with quota as the status of every ClusterQueue counts."""
    return reserved is not None and all(reserved.holders[queue.name] >= (queue.reserving or 0) for queue in listed)
