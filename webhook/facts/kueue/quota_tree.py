"""Reads ClusterQueues and Cohorts as plain values, and builds the trees of quota from them.

Until an object of a kind changes, a view returns the same sequence of the same Python objects. So values are cached by
object, and trees by sequence. If an object names a cohort, the cohort exists even without a Cohort object. Stopped and
inactive ClusterQueues still lend.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.kueue.quota import (
    FlavorQuota,
    FlavorResource,
    QuotaNode,
    QuotaTree,
    WorkloadReservations,
    read_reservations,
    set_parent,
)
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.view import ClusterView
from webhook.text.caches import IdentityKey
from webhook.typed.collections import Items
from webhook.typed.fields import Amount
from webhook.typed.kueue import (
    ClusterQueue,
    ClusterQueueSpec,
    ClusterQueueStatus,
    Cohort,
    Preemption,
    ResourceGroup,
)

_KEPT_OBJECTS: Final = 8192
_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")
_KEPT_STATES: Final = 4
"""How many states of the cluster are cached. An audit has one state; a server has two during a change."""
_READ_WORK: Final = 50
"""The charge for reading a ClusterQueue, in units of the deadline. Reading a dozen flavors takes 0.2 ms."""


@dataclass(frozen=True, slots=True)
class QuotaGroup:
    """A resource group: the resources that it covers, and its flavors in the order in which Kueue tries them."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class QueueFields:
    """The fields of a ClusterQueue or a Cohort. Only ClusterQueues have the fields after `quotas`.

    Args:
        name: the name of the object.
        cohort: the cohort of the ClusterQueue, or the parent of the Cohort; "" without a cohort.
        groups: the resource groups.
        quotas: the quota for each resource of a flavor.
        usage: the reserved amounts in the status.
        stop_policy: spec.stopPolicy; "" or "None" if the queue is not stopped.
        is_strict: whether Workloads are admitted in the order in which they were created.
        namespace_selector: the label selector of the namespaces that may use the queue; None selects no namespace.
        admission_checks: the flavors of each AdmissionCheck; no flavors means all flavors.
        preempts_own: whether the queue preempts its own Workloads.
        reclaims: whether the queue preempts Workloads that borrow its quota.
        preempts_to_borrow: whether the queue preempts Workloads of other queues to borrow their quota.
        inactive: the reason in the status why the queue is inactive, "" for an active queue.
        pending, reserving: status.pendingWorkloads and status.reservingWorkloads; None if the field is not set.
    """

    name: str
    cohort: str
    groups: tuple[QuotaGroup, ...]
    quotas: Mapping[FlavorResource, FlavorQuota]
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
        """Return the resource group of the queue that covers a resource."""
        return next((group for group in self.groups if resource in group.resources), None)

    def flavor_names(self) -> set[str]:
        """Return the names of the flavors of all resource groups of the queue."""
        return {name for group in self.groups for name in group.flavors}

    def is_stopped(self) -> bool:
        """Return whether stopPolicy stops the queue from admitting jobs."""
        return self.stop_policy not in ("", "None")


@lru_cache(maxsize=_KEPT_OBJECTS)
def read_stored_cluster_queue(key: IdentityKey) -> QueueFields:
    """Return a stored ClusterQueue as a plain value. Each stored object is read once."""
    return read_cluster_queue(ClusterQueue.of(key.value))


@lru_cache(maxsize=_KEPT_OBJECTS)
def read_stored_cohort(key: IdentityKey) -> QueueFields:
    """Return a stored Cohort as a plain value. Each stored object is read once."""
    written = Cohort.of(key.value)
    return QueueFields(
        name=written.name,
        cohort=written.parent,
        groups=tuple(map(_read_quota_group, written.spec.resource_groups)),
        quotas=dict(_quotas_of_groups(written.spec.resource_groups)),
    )


def read_cluster_queue(queue: ClusterQueue) -> QueueFields:
    """Return a ClusterQueue object as a plain value."""
    spec, status = queue.spec, queue.status
    active, preemption = status.condition("Active"), spec.preemption
    return QueueFields(
        name=queue.name,
        cohort=spec.cohort_name or spec.cohort,
        groups=tuple(map(_read_quota_group, spec.resource_groups)),
        quotas=dict(_quotas_of_groups(spec.resource_groups)),
        usage=dict(_usage_of_status(status)),
        stop_policy=spec.stop_policy,
        is_strict=spec.queueing_strategy == "StrictFIFO",
        namespace_selector=spec.namespace_selector.json if spec.has("namespaceSelector") else None,
        admission_checks=_admission_checks_of_spec(spec),
        preempts_own=preemption.within_cluster_queue != "Never",
        reclaims=preemption.reclaim_within_cohort != "Never",
        preempts_to_borrow=_preempts_to_borrow(preemption),
        inactive=f"{active.reason}: {active.message}" if active.status == "False" else "",
        pending=status.pending_workloads,
        reserving=status.reserving_workloads,
    )


def _preempts_to_borrow(preemption: Preemption) -> bool:
    return "Never" not in (preemption.reclaim_within_cohort, preemption.borrow_within_cohort.policy)


def _admission_checks_of_spec(spec: ClusterQueueSpec) -> dict[str, frozenset[str]]:
    """Return the flavors of each AdmissionCheck in admissionChecks and admissionChecksStrategy."""
    every: dict[str, frozenset[str]] = dict.fromkeys(spec.admission_checks, frozenset())
    return every | {
        check.name: frozenset(check.on_flavors) for check in spec.admission_checks_strategy.admission_checks
    }


def _read_quota_group(group: ResourceGroup) -> QuotaGroup:
    return QuotaGroup(tuple(group.covered_resources), tuple(flavor.name for flavor in group.flavors))


def _quotas_of_groups(groups: Iterable[ResourceGroup]) -> Iterator[tuple[FlavorResource, FlavorQuota]]:
    for group in groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                amounts = map(_amount_if_scalar, map(resource.json.get, _AMOUNTS))  # faster than typed fields
                yield (flavor.name, resource.name), _read_quota(resource.name == "cpu", *amounts)


def _amount_if_scalar(value: JSON) -> Amount | None:
    return value if isinstance(value, str | int | float) else None


@lru_cache(maxsize=4096, typed=True)
def _read_quota(is_cpu: bool, nominal: Amount | None, borrowing: Amount | None, lending: Amount | None) -> FlavorQuota:
    """Return a quota; equal quotas are read once, because queues have few different quotas."""
    resource = "cpu" if is_cpu else ""
    return FlavorQuota(
        nominal=parse_amount_in_kueue_units(resource, nominal) or 0,
        borrowing_limit=parse_amount_in_kueue_units(resource, borrowing),
        lending_limit=parse_amount_in_kueue_units(resource, lending),
    )


def _usage_of_status(status: ClusterQueueStatus) -> Iterator[tuple[FlavorResource, int]]:
    for flavor in status.flavors_reservation:
        for resource in flavor.resources:
            yield (flavor.name, resource.name), parse_amount_in_kueue_units(resource.name, resource.total) or 0


@dataclass(slots=True, eq=False)
class QuotaTrees:
    """All ClusterQueues and cohorts. Trees are built when they are first needed.

    Args:
        cluster_queues: ClusterQueues by name.
        cohorts: Cohort objects by name; a cohort may have no object.
        members: ClusterQueues by the name of their cohort.
        below: Cohorts by the name of their parent.
        reserved: the usage by Workloads, which replaces the usage in the status of ClusterQueues; None if the view
            lacks some or all Workloads.
    """

    cluster_queues: Mapping[str, QueueFields]
    cohorts: Mapping[str, QueueFields]
    members: dict[str, list[QueueFields]] = field(default_factory=dict)
    below: dict[str, list[QueueFields]] = field(default_factory=dict)
    reserved: WorkloadReservations | None = None
    _trees: dict[str, QuotaTree | None] = field(default_factory=dict)
    _nodes: dict[str, QuotaNode] = field(default_factory=dict)

    def tree_and_node_of_queue(self, name: str) -> tuple[QuotaTree, QuotaNode] | None:
        """Return the tree and the node of a ClusterQueue; None if its cohorts form a cycle.

        Raises:
            KeyError: the ClusterQueue does not exist.
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
        """Return the whole tree that a cohort is in; None if the parents form a cycle."""
        root = self.root_of(cohort)
        if root is None:
            return None
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = QuotaTree(self._build_cohort_tree(root))
        return tree

    def root_of(self, cohort: str) -> str | None:
        """Return the name of the root above a cohort; None if the parents form a cycle."""
        passed = set()
        while cohort not in passed:
            passed.add(cohort)
            parent = self.parent_of(cohort)
            if not parent:
                return cohort
            cohort = parent
        return None

    def parent_of(self, cohort: str) -> str:
        """Return the name of the parent of a cohort, "" without a parent."""
        return self.cohorts[cohort].cohort if cohort in self.cohorts else ""

    def cycle_above(self, cohort: str) -> tuple[str, ...]:
        """Return the cohorts of a cycle above a cohort, each before its parent; () without a cycle."""
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


def read_quota_trees(view: ClusterView) -> QuotaTrees:
    """Return the ClusterQueues and cohorts of the cluster. Objects that cannot be looked up are noted as missing."""
    stored = _StoredQueuesAndCohorts(
        IdentityKey(view.list_json(ClusterQueue.gvk)), IdentityKey(view.list_json(Cohort.gvk)), view.deadline
    )
    return _build_quota_trees(stored, IdentityKey(read_reservations(view)))


def others_in_tree_of_cohort(name: str, cohort: str, view: ClusterView) -> Items[QuotaNode]:
    """Return the ClusterQueues and Cohorts in the tree of a cohort, without the node `name`. The result is empty if
    parents form a cycle.
    """
    tree = read_quota_trees(view).tree_of(cohort)
    nodes = tree.nodes() if tree else ()
    return Items([node for node in nodes if node.name != name], view.deadline)


@dataclass(frozen=True, slots=True)
class _StoredQueuesAndCohorts:
    """The stored ClusterQueues and Cohorts.

    The deadline is not part of the cache key, because the result does not depend on the deadline.
    """

    cluster_queues: IdentityKey
    cohorts: IdentityKey
    deadline: Deadline = field(compare=False)

    def charge_for_each_object(self, objects: IdentityKey) -> Iterator[IdentityKey]:
        """Yield each object after its reading is counted against the deadline. If the deadline stops the reading, the
        objects that were read stay cached.
        """
        for stored in objects.value:
            self.deadline.spend(_READ_WORK)
            yield IdentityKey(stored)


@lru_cache(maxsize=_KEPT_STATES)
def _build_quota_trees(stored: _StoredQueuesAndCohorts, reserved: IdentityKey) -> QuotaTrees:
    listed = [read_stored_cluster_queue(queue) for queue in stored.charge_for_each_object(stored.cluster_queues)]
    parents = [read_stored_cohort(cohort) for cohort in stored.charge_for_each_object(stored.cohorts)]
    usage = reserved.value if _has_all_workloads(reserved.value, listed) else None
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
    """Return whether each ClusterQueue has at least as many Workloads with quota as its status counts."""
    return reserved is not None and all(reserved.holders[queue.name] >= (queue.reserving or 0) for queue in listed)
