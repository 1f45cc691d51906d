"""ClusterQueues and Cohorts as plain values that outlive a request: groups, quotas, admission settings.

A view gives the same object until it changes, and what is read of an object is kept under that object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.facts.kueue.quota import FlavorQuota, FlavorResource
from webhook.facts.kueue.types import (
    ClusterQueue,
    ClusterQueueSpec,
    ClusterQueueStatus,
    Cohort,
    Preemption,
    ResourceGroup,
)
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.same import IdentityKey
from webhook.typed.fields import Amount

_KEPT_OBJECTS: Final = 8192
_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")


@dataclass(frozen=True, slots=True)
class QuotaGroup:
    """A resource group: the resources that it covers and the flavors in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class QueueFields:
    """The fields of a ClusterQueue or a Cohort. All but the first four are of ClusterQueues.

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
        """Return whether stopPolicy keeps the queue from admitting jobs."""
        return self.stop_policy not in ("", "None")


@lru_cache(maxsize=_KEPT_OBJECTS)
def read_stored_cluster_queue(key: IdentityKey) -> QueueFields:
    """Return a stored ClusterQueue, read once for each state of it."""
    return read_cluster_queue(ClusterQueue.of(key.held))


@lru_cache(maxsize=_KEPT_OBJECTS)
def read_stored_cohort(key: IdentityKey) -> QueueFields:
    """Return a stored Cohort, read once for each state of it."""
    written = Cohort.of(key.held)
    return QueueFields(
        name=written.name,
        cohort=written.spec.parent_name,
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
    """Return the AdmissionChecks of a ClusterQueue from either of their two fields, with their flavors."""
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
                amounts = map(_amount_if_scalar, map(resource.json.get, _AMOUNTS))  # faster than fields, of thousands
                yield (flavor.name, resource.name), _read_quota(resource.name == "cpu", *amounts)


def _amount_if_scalar(value: JSON) -> Amount | None:
    return value if isinstance(value, str | int | float) else None


@lru_cache(maxsize=4096, typed=True)
def _read_quota(is_cpu: bool, nominal: Amount | None, borrowing: Amount | None, lending: Amount | None) -> FlavorQuota:
    """Return a quota; equal quotas are read once, because queues have few different ones."""
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
