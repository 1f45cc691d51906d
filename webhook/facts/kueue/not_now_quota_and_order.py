"""Checks whether the quota that a job needs is free now, and whether preemption could free it.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go available, pkg/scheduler/preemption. Which
jobs are of lower priority is left open: what preemption may free is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from webhook.facts.kueue.assignment import Capacity, PodSetQuotaRequest, RejectedFlavor, pod_sets_not_fitting_together
from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.never import MOST_TOLD, JobInClusterQueue
from webhook.facts.kueue.quota import FlavorResource
from webhook.facts.kueue.reservations import count_other_waiting_workloads, is_queued
from webhook.facts.resource_units import format_amount_in_kueue_units, format_amount_with_resource_name
from webhook.problem import Problem
from webhook.wording import counted

WAITING_FOR_QUOTA: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/waiting-for-quota",
    title="The quota that a job asks for is free.",
    why="Other jobs have it, and the preemption settings of the queue cannot take it back.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go",
    function="available",
)
QUEUE_ORDER: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/queue-order",
    title="No job waits before another one in a queue with StrictFIFO.",
    why="A job at the head that cannot be admitted blocks all that come after it.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/queue",
    issues=(
        "https://github.com/kubernetes-sigs/kueue/issues/4809",
        "https://github.com/kubernetes-sigs/kueue/issues/8309",
    ),
)


def advise_waiting_for_quota(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> Iterator[Problem]:
    """Yield the problem of a job that waits for quota or for other jobs in its queue."""
    before = _number_of_workloads_before(fitting) if fitting.queue.is_strict else 0
    now = partial(fitting.tree.available_quota, fitting.node)
    if before > 0:
        yield _queue_order_problem(fitting, before)
    elif not _fits_capacity(wanted, now) and not _may_preemption_free_enough(fitting, wanted):
        yield _waiting_for_quota_problem(fitting, wanted)


def _fits_capacity(wanted: Sequence[PodSetQuotaRequest], capacity: Capacity) -> bool:
    return all(pods.flavors_with_capacity(capacity) for pods in wanted) and not pod_sets_not_fitting_together(
        wanted, capacity
    )


def _queue_order_problem(fitting: JobInClusterQueue, before: int) -> Problem:
    others = counted(before, "workload")
    message = f"leads to {fitting.queue_as_text()}, whose StrictFIFO order puts the job behind {others}"
    fix = "wait, use a higher priority, or use a queue with BestEffortFIFO"
    return QUEUE_ORDER.problem(fitting.place.at, f"{message}, unless the job has a higher priority", fix)


def _waiting_for_quota_problem(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> Problem:
    now = partial(fitting.tree.available_quota, fitting.node)
    short = [pods for pods in wanted if not pods.flavors_with_capacity(now)] or [*wanted]
    reasons = [reason for pods in short for reason in pods.rejected_flavors(now) if reason.resource]
    left = "; ".join(_remaining_quota_as_text(fitting, reason) for reason in reasons[:MOST_TOLD])
    message = (
        f"{fitting.describe_request(short[0], reasons)}, but {left}" if left else "fits only one pod set at a time"
    )
    message = f"{message} {_source_of_usage(fitting)}, and preemption cannot free enough, so the job waits"
    path, fix = short[0].pod_set.path_in_object(("spec",)), "wait, or use another queue"
    return WAITING_FOR_QUOTA.problem(path, f"{message} (Kueue: WaitingForQuota)", fix)


def _source_of_usage(fitting: JobInClusterQueue) -> str:
    """Return a text that names the objects from which the usage of a queue is read."""
    reserved = fitting.place.queues.reserved
    if reserved is None:
        return "according to the status of the ClusterQueues"
    return f"next to {counted(reserved.number_of_workloads_with_quota, 'Workload')} with reserved quota"


def _number_of_workloads_before(fitting: JobInClusterQueue) -> int:
    """Return how many other workloads wait in the same queue."""
    view = fitting.place.view
    if fitting.place.queues.reserved is not None:
        return count_other_waiting_workloads(fitting.subject, fitting.queue.name, view)
    pending = fitting.queue.pending
    return 0 if pending is None else pending - is_queued(fitting.subject, view)


def _remaining_quota_as_text(fitting: JobInClusterQueue, rejected: RejectedFlavor) -> str:
    pair = (rejected.flavor, rejected.resource)
    ever = format_amount_with_resource_name(
        rejected.resource, fitting.tree.potential_available_quota(fitting.node, pair)
    )
    free = format_amount_in_kueue_units(rejected.resource, max(0, rejected.most))
    return f"flavor `{rejected.flavor}` has {free} of {ever} free now"


def _may_preemption_free_enough(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> bool:
    """Return whether preemption of others could free enough, if they have lower priority or borrow."""
    queue = fitting.queue
    if queue.preempts_to_borrow:
        return True

    def freeable_amount(pair: FlavorResource) -> int:
        used = fitting.tree.usage(fitting.node, pair)
        left = fitting.tree.available_quota(fitting.node, pair, less_usage=used if queue.preempts_own else 0)
        nominal = fitting.node.quota(pair).nominal - (0 if queue.preempts_own else used)
        return max(left, nominal) if queue.reclaims else left

    return (queue.preempts_own or queue.reclaims) and not pod_sets_not_fitting_together(wanted, freeable_amount)
