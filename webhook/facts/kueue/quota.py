"""How much quota a ClusterQueue in a tree of cohorts can ever have, and how much quota is free now.

A ClusterQueue lends quota to its cohort up to its lending limit, keeps the rest, and borrows up to its borrowing limit.
A cohort does the same with its parent. Amounts are whole numbers: thousandths of cpu, units of every other resource.
Trees may be deep, so no function calls itself. The usage is the sum of the Workloads with reserved quota. Kueue writes
the same sum into the status of each ClusterQueue. The status is read if a view lacks some or all Workloads. A live view
has no Workloads, because Workloads are many and change with every job.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go potentialAvailable, available and
updateCohortResourceNode; pkg/workload/workload.go totalRequestsFromAdmission, HasQuotaReservation and IsActive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.text.caches import IdentityKey
from webhook.typed.kueue import LocalQueue, PodSetAssignment, Workload
from webhook.typed.objects import Object

FlavorResource: TypeAlias = tuple[str, str]
"""The names of a flavor and of a resource."""
WorkloadOwner: TypeAlias = tuple[str, str, str, str]
"""Namespace, group, kind and name of the object that owns a Workload."""
_KEPT_STATES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorQuota:
    """The quota of one ClusterQueue or Cohort for a flavor's resource; None means that a limit is not set."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


NO_QUOTA: Final = FlavorQuota()


@dataclass(slots=True, eq=False, kw_only=True)
class QuotaNode:
    """A ClusterQueue or a Cohort with its quotas; `usage` is the quota that its Workloads have reserved."""

    name: str
    is_cohort: bool = False
    quotas: Mapping[FlavorResource, FlavorQuota] = field(default_factory=dict)
    usage: Mapping[FlavorResource, int] = field(default_factory=dict)
    parent: QuotaNode | None = None
    children: list[QuotaNode] = field(default_factory=list)

    def quota(self, pair: FlavorResource) -> FlavorQuota:
        """Return the node's quota for a flavor's resource."""
        return self.quotas.get(pair, NO_QUOTA)

    def path_to_root(self) -> tuple[QuotaNode, ...]:
        """Return the node and its cohorts, up to the root."""
        listed, node = [], self
        while True:
            listed.append(node)
            if node.parent is None:
                return tuple(listed)
            node = node.parent


def set_parent(parent: QuotaNode, child: QuotaNode) -> None:
    """Make a node of the quota tree the child of another node."""
    child.parent = parent
    parent.children.append(child)


@dataclass(slots=True)
class _QuotaSums:
    """The quota and the usage of each node of the tree, for one resource of a flavor.

    The sums include the lower nodes, except the quota that a lower node never lends and the usage of this quota.
    """

    subtree: dict[QuotaNode, int] = field(default_factory=dict)
    usage: dict[QuotaNode, int] = field(default_factory=dict)

    def never_lent_quota(self, node: QuotaNode, pair: FlavorResource) -> int:
        """Return the quota that a node never lends to others (Kueue's localQuota)."""
        limit = node.quota(pair).lending_limit
        return 0 if limit is None else max(0, self.subtree[node] - limit)


class QuotaTree:
    """The nodes below one root. Sums of a flavor's resource are computed when they are first needed."""

    def __init__(self, root: QuotaNode) -> None:
        self.root = root
        self._order = tuple(nodes_parents_first(root))
        self._sums: dict[FlavorResource, _QuotaSums] = {}
        self._bounds: dict[tuple[QuotaNode, FlavorResource], tuple[int, int]] = {}

    def nodes(self) -> tuple[QuotaNode, ...]:
        """Return every node, parents before children."""
        return self._order

    def subtree_quota(self, node: QuotaNode, pair: FlavorResource) -> int:
        """Return the quota of a node plus the quota that the nodes below it lend (Kueue's SubtreeQuota)."""
        return self._cached_sums(pair).subtree[node]

    def usage(self, node: QuotaNode, pair: FlavorResource) -> int:
        """Return the usage of a node itself, plus a part of the usage of each lower node: the part that exceeds the
        quota that the lower node never lends.
        """
        return self._cached_sums(pair).usage[node]

    def potential_available_quota(self, node: QuotaNode, pair: FlavorResource) -> int:
        """Return the quota that a node could have if no quota were in use (Kueue's potentialAvailable)."""
        return self._cached_potential_and_available(node, pair)[0]

    def available_quota(self, node: QuotaNode, pair: FlavorResource, *, less_usage: int = 0) -> int:
        """Return the quota that is free for a node now (Kueue's available); negative if more is in use than exists.

        `less_usage` is subtracted from the node's own usage, as after a preemption of its Workloads.
        """
        return (
            self._compute_free_quota(node, pair, less_usage)
            if less_usage
            else self._cached_potential_and_available(node, pair)[1]
        )

    def _cached_potential_and_available(self, node: QuotaNode, pair: FlavorResource) -> tuple[int, int]:
        """Return potential and available quota, cached because many jobs need the same pairs."""
        bounds = self._bounds.get((node, pair))
        if bounds is None:
            bounds = self._bounds[node, pair] = (
                self._compute_potential_available(node, pair),
                self._compute_free_quota(node, pair, 0),
            )
        return bounds

    def _compute_potential_available(self, node: QuotaNode, pair: FlavorResource) -> int:
        sums, amount = self._cached_sums(pair), 0
        for ancestor in reversed(node.path_to_root()):
            if ancestor.parent is None:
                amount = sums.subtree[ancestor]
                continue
            amount += sums.never_lent_quota(ancestor, pair)
            limit = ancestor.quota(pair).borrowing_limit
            if limit is not None:
                amount = min(amount, sums.subtree[ancestor] + limit)
        return amount

    def _compute_free_quota(self, node: QuotaNode, pair: FlavorResource, less_usage: int) -> int:
        sums, amount, less = self._cached_sums(pair), 0, {}
        for ancestor in node.path_to_root():
            used, local = sums.usage[ancestor], sums.never_lent_quota(ancestor, pair)
            less[ancestor] = used - less_usage
            less_usage = max(0, used - local) - max(0, less[ancestor] - local)
        for ancestor in reversed(node.path_to_root()):
            if ancestor.parent is None:
                amount = sums.subtree[ancestor] - less[ancestor]
                continue
            local, limit = sums.never_lent_quota(ancestor, pair), ancestor.quota(pair).borrowing_limit
            if limit is not None:
                lent = sums.subtree[ancestor] - local - max(0, less[ancestor] - local)
                amount = min(amount, lent + limit)
            amount += max(0, local - less[ancestor])
        return amount

    def _cached_sums(self, pair: FlavorResource) -> _QuotaSums:
        sums = self._sums.get(pair)
        if sums is None:
            sums = self._sums[pair] = self._sums_of_nodes(pair)
        return sums

    def _sums_of_nodes(self, pair: FlavorResource) -> _QuotaSums:
        sums = _QuotaSums()
        for node in reversed(self._order):
            subtree, usage = node.quota(pair).nominal, node.usage.get(pair, 0)
            for child in node.children:
                local = sums.never_lent_quota(child, pair)
                subtree += sums.subtree[child] - local
                usage += max(0, sums.usage[child] - local)
            sums.subtree[node], sums.usage[node] = subtree, usage
        return sums


def nodes_parents_first(root: QuotaNode) -> Iterator[QuotaNode]:
    """Yield a node and all nodes below it, parents before their children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


@dataclass(slots=True, eq=False)
class WorkloadReservations:
    """The quota that Workloads use, and the Workloads that wait.

    Args:
        usage: the reserved quota, by ClusterQueue.
        holders: how many Workloads have quota, by ClusterQueue.
        admitted: the owners of Workloads that have quota.
        waiting: how many Workloads wait, by namespace and LocalQueue.
        queued: the owners of Workloads that wait.
    """

    usage: dict[str, Counter[FlavorResource]] = field(default_factory=dict)
    holders: Counter[str] = field(default_factory=Counter)
    admitted: set[WorkloadOwner] = field(default_factory=set)
    waiting: Counter[tuple[str, str]] = field(default_factory=Counter)
    queued: set[WorkloadOwner] = field(default_factory=set)

    @property
    def number_of_workloads_with_quota(self) -> int:
        """Return the number of Workloads that have quota reserved."""
        return self.holders.total()


def read_reservations(view: ClusterView) -> WorkloadReservations | None:
    """Return the reservations of the Workloads of a view, None if the view has no Workloads."""
    listed = view.copy_without_missing_objects().list_json(Workload.gvk)
    return _sum_reservations_of_workloads(IdentityKey(listed)) if listed else None


@lru_cache(maxsize=_KEPT_STATES)
def _sum_reservations_of_workloads(workloads: IdentityKey) -> WorkloadReservations:
    total = WorkloadReservations()
    for obj in workloads.value:
        _add_workload_to_reservations(Workload.of(obj), total)
    return total


def _add_workload_to_reservations(workload: Workload, total: WorkloadReservations) -> None:
    if workload.status.is_true("Finished"):
        return
    if has_quota(workload):
        queue = workload.status.admission.cluster_queue
        total.holders[queue] += 1
        total.admitted.update(_owners_of_workload(workload))
        total.usage.setdefault(queue, Counter()).update(_admitted_usage(workload))
    elif workload.spec.active:
        total.waiting[_namespace_or_default(workload), workload.spec.queue_name] += 1
        total.queued.update(_owners_of_workload(workload))


def has_quota(workload: Workload) -> bool:
    """Return whether the status of a Workload says that quota is reserved for it."""
    return workload.status.is_true("QuotaReserved")


def _namespace_or_default(obj: Object) -> str:
    return obj.namespace or "default"


def _owners_of_workload(workload: Workload) -> Iterator[WorkloadOwner]:
    for reference in workload.metadata.owner_references:
        yield _namespace_or_default(workload), *reference.group_kind, reference.name


def _admitted_usage(workload: Workload) -> Counter[FlavorResource]:
    """Return the amounts admitted for a Workload, without the amounts of pods that have ended."""
    counts = {pod_set.name: pod_set.count for pod_set in workload.spec.pod_sets}
    running = {**counts}
    for ended in workload.status.reclaimable_pods:
        running[ended.name] = max(0, running.get(ended.name, 0) - ended.count)
    used: Counter[FlavorResource] = Counter()
    for assigned in workload.status.admission.pod_set_assignments:
        count = counts.get(assigned.name, 0) if assigned.count is None else assigned.count
        for pair, total in _assigned_amounts(assigned):
            using = min(count, running.get(assigned.name, count))
            used[pair] += total if using == count else total // count * using
    return used


def _assigned_amounts(assigned: PodSetAssignment) -> Iterator[tuple[FlavorResource, int]]:
    for resource, value in assigned.resource_usage.items():
        yield (assigned.flavors.get(resource, ""), resource), parse_amount_in_kueue_units(resource, value) or 0


def key_as_workload_owner(subject: Subject) -> WorkloadOwner:
    """Return the namespace, group, kind and name by which a Workload names the object as its owner."""
    return subject.namespace or "default", *subject.group_kind, subject.typed(Object).name


def is_admitted(subject: Subject, view: ClusterView) -> bool:
    """Return whether the Workload of an object has quota already."""
    total = read_reservations(view)
    return total is not None and key_as_workload_owner(subject) in total.admitted


def count_other_waiting_workloads(subject: Subject, queue: str, view: ClusterView) -> int:
    """Return how many Workloads other than the object's own wait for a ClusterQueue."""
    count = _count_waiting_by_cluster_queue(
        IdentityKey(view.list_json(Workload.gvk)), IdentityKey(view.list_json(LocalQueue.gvk))
    )[queue]
    return count - is_queued(subject, view)


def is_queued(subject: Subject, view: ClusterView) -> bool:
    """Return whether the Workload of an object waits."""
    total = read_reservations(view)
    return total is not None and key_as_workload_owner(subject) in total.queued


@lru_cache(maxsize=_KEPT_STATES)
def _count_waiting_by_cluster_queue(workloads: IdentityKey, local_queues: IdentityKey) -> Counter[str]:
    """Return the number of waiting Workloads by ClusterQueue."""
    waiting, total = _sum_reservations_of_workloads(workloads).waiting, Counter[str]()
    for obj in local_queues.value:
        queue = LocalQueue.of(obj)
        total[queue.spec.cluster_queue] += waiting[_namespace_or_default(queue), queue.name]
    return total
