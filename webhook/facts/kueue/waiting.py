"""Whether the quota that a job could have is free now, and whether preemption could free it.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go available, pkg/scheduler/preemption. Which
jobs are of lower priority is left open: what preemption may free is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from webhook.facts.kueue.assignment import Rejected, Wanted, together
from webhook.facts.kueue.blocked import NOT_NOW
from webhook.facts.kueue.fitting import MOST_TOLD, Fitting
from webhook.facts.kueue.quota import FlavorResource
from webhook.facts.kueue.reservations import is_queued, waiting_before
from webhook.facts.resource_units import amount_text, of_resource
from webhook.problem import Problem
from webhook.wording import counted


def waiting(fitting: Fitting, wanted: Sequence[Wanted]) -> Iterator[Problem]:
    """What is free now, and whether preemption could free the rest."""
    before = _before(fitting) if fitting.queue.spec.get("queueingStrategy") == "StrictFIFO" else 0
    if before > 0:
        waiting = counted(before, "workload")
        message = f"leads to ClusterQueue `{fitting.queue.name}`, whose StrictFIFO order puts the job behind {waiting}"
        fix = "wait, use a higher priority, or use a queue with BestEffortFIFO"
        yield NOT_NOW("queue-order", fitting.place.at, f"{message}, unless the job has a higher priority", fix)
        return
    now = partial(fitting.tree.available, fitting.node)
    if all(each.fitting(now) for each in wanted) and not together(wanted, now, fitting.subject.deadline):
        return
    if _may_preempt(fitting, wanted):
        return
    short = [each for each in wanted if not each.fitting(now)] or [*wanted]
    reasons = [each for one in short for each in one.reasons(now) if each.resource]
    told = "; ".join(_left(fitting, each) for each in reasons[:MOST_TOLD])
    message = f"{fitting.asks(short[0], reasons)}, but {told}" if told else "fits only one pod set at a time"
    message = f"{message} {_source(fitting)}, and preemption cannot free enough, so the job waits"
    at = short[0].pod_set.at(("spec",))
    yield NOT_NOW("waiting-for-quota", at, f"{message} (Kueue: WaitingForQuota)", "wait, or use another queue")


def _source(fitting: Fitting) -> str:
    """Who says what is in use."""
    reserved = fitting.place.queues.reserved
    if reserved is None:
        return "according to the status of the ClusterQueues"
    return f"next to {counted(reserved.holding, 'Workload')} with reserved quota"


def _before(fitting: Fitting) -> int:
    """How many other workloads wait in the same queue."""
    view = fitting.place.view
    if fitting.place.queues.reserved is not None:
        return waiting_before(fitting.subject, fitting.queue.name, view)
    count = fitting.queue.status.get("pendingWorkloads")
    return count - is_queued(fitting.subject, view) if isinstance(count, int) else 0


def _left(fitting: Fitting, rejected: Rejected) -> str:
    pair = (rejected.flavor, rejected.resource)
    ever = of_resource(rejected.resource, fitting.tree.potential(fitting.node, pair))
    free = amount_text(rejected.resource, max(0, rejected.most))
    return f"flavor `{rejected.flavor}` has {free} of {ever} free now"


def _may_preempt(fitting: Fitting, wanted: Sequence[Wanted]) -> bool:
    """Whether preempting others could free enough, if they are of lower priority, or borrow."""
    settings = fitting.queue.spec.get("preemption", {})
    own = settings.get("withinClusterQueue", "Never") != "Never"
    reclaims = settings.get("reclaimWithinCohort", "Never") != "Never"
    if reclaims and settings.get("borrowWithinCohort", {}).get("policy", "Never") != "Never":
        return True

    def freed(pair: FlavorResource) -> int:
        used = fitting.tree.usage(fitting.node, pair)
        left = fitting.tree.available(fitting.node, pair, less_usage=used if own else 0)
        nominal = fitting.node.quota(pair).nominal - (0 if own else used)
        return max(left, nominal) if reclaims else left

    return (own or reclaims) and not together(wanted, freed, fitting.subject.deadline)
