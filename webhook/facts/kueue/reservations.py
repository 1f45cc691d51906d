"""Counts what Workloads with reserved quota use of each ClusterQueue, and which Workloads wait.

Source: kubernetes-sigs/kueue@ff69552e pkg/workload/workload.go totalRequestsFromAdmission, HasQuotaReservation and
IsActive. Kueue sums the same Workloads up in the status of each ClusterQueue, which is read where a view has none, or
not all of them: a live one holds none, for they are many and change with every job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from webhook.facts.kueue.quota import FlavorResource
from webhook.facts.kueue.types import LocalQueue
from webhook.facts.kueue.workload_types import PodSetAssignment, Workload
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.same import IdentityKey
from webhook.typed.objects import Object

Owner: TypeAlias = tuple[str, str, str, str]
"""Namespace, group, kind and name of the object that owns a Workload."""
_KEPT_STATES: Final = 4


@dataclass(slots=True, eq=False)
class WorkloadReservations:
    """The quota that Workloads use, and those that wait.

    Args:
        usage: what is reserved, by ClusterQueue.
        holders: how many Workloads have quota, by ClusterQueue.
        admitted: the objects whose Workloads have quota.
        waiting: how many Workloads wait, by namespace and LocalQueue.
        queued: the objects whose Workloads wait.
    """

    usage: dict[str, Counter[FlavorResource]] = field(default_factory=dict)
    holders: Counter[str] = field(default_factory=Counter)
    admitted: set[Owner] = field(default_factory=set)
    waiting: Counter[tuple[str, str]] = field(default_factory=Counter)
    queued: set[Owner] = field(default_factory=set)

    @property
    def number_of_workloads_with_quota(self) -> int:
        """Return the number of Workloads that have quota reserved."""
        return self.holders.total()


def read_reservations(view: ClusterView) -> WorkloadReservations | None:
    """Return the reservations of the Workloads of a view, None if it has no Workloads."""
    listed = view.copy_without_missing_objects().list_json(Workload.gvk)
    return _sum_reservations_of_workloads(IdentityKey(listed)) if listed else None


@lru_cache(maxsize=_KEPT_STATES)
def _sum_reservations_of_workloads(workloads: IdentityKey) -> WorkloadReservations:
    total = WorkloadReservations()
    for obj in workloads.held:
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


def _owners_of_workload(workload: Workload) -> Iterator[Owner]:
    for reference in workload.metadata.owner_references:
        yield _namespace_or_default(workload), *reference.group_kind, reference.name


def _admitted_usage(workload: Workload) -> Counter[FlavorResource]:
    """Return the admitted amounts of a Workload without those of pods that have ended."""
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


def key_as_workload_owner(subject: Subject) -> Owner:
    """Return the key under which the Workload of an object names its owner."""
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
    for obj in local_queues.held:
        queue = LocalQueue.of(obj)
        total[queue.spec.cluster_queue] += waiting[_namespace_or_default(queue), queue.name]
    return total
