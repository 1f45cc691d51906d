"""What keeps a job waiting before anybody looks at quota: a queue that is missing, stopped or inactive, or a class.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go updateQueueStatus and inactiveReason,
pkg/scheduler and pkg/controller/jobframework/reconciler.go. The Workload says only that its queue is inactive; the
cause is a condition of the ClusterQueue. A cycle of cohorts is told nowhere but in a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.kueue.absence import is_absent, lacks
from webhook.facts.kueue.admission_checks import inactive_checks, is_remote
from webhook.facts.kueue.configuration import configuration
from webhook.facts.kueue.managed import SERVING, Managed, is_owned, local_queues, managed, says_namespace
from webhook.facts.kueue.objects import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    PRIORITY,
    QUEUE_NAME,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    WORKLOAD_PRIORITY_CLASS,
)
from webhook.facts.kueue.queues import Declared, Queues, queues
from webhook.facts.kueue.quota import Node, Tree
from webhook.facts.kueue.reservations import condition
from webhook.facts.pods.containers import text
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.paths import FieldPath, get, render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import did_you_mean

NEVER: Final = Group("kueue-never").problem
NOT_NOW: Final = Group("kueue-not-now").problem
_AT: Final[FieldPath] = ("metadata", "labels", QUEUE_NAME)
_MOST_NAMED: Final = 5
"""Cohorts of a cycle that are named after the first."""
_WAIT: Final = "wait, ask the owner of the queue, or use another queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job queues, as far as it is known.

    Args:
        view: notes what could not be looked up.
        at: where the object names its queue, rendered; "" where it does not.
        local_queue: the LocalQueue, None where it is not known.
        queues: every ClusterQueue and cohort.
        queue: its ClusterQueue.
        tree, node: the cohorts that this is in; None where they have a cycle.
    """

    view: View
    at: str
    local_queue: JSON
    queues: Queues
    queue: Declared | None = None
    tree: Tree | None = None
    node: Node | None = None


def placed(subject: Subject, how: Managed) -> Place:
    """Where a managed job queues."""
    view = subject.view()
    local = view.get(LOCAL_QUEUE, how.queue)
    known, at = queues(view), "" if how.is_default else render(_AT)
    target = text(get(local, ("spec", "clusterQueue")))
    queue = known.cluster_queues.get(target) if target else None  # files may have one without a name
    if queue is None:
        if local is not None:
            view.get(CLUSTER_QUEUE, target, namespaced=False)  # says why it is missing
        return Place(view=view, at=at, local_queue=local, queues=known)
    tree, node = known.placed(target) or (None, None)
    return Place(view=view, at=at, local_queue=local, queues=known, queue=queue, tree=tree, node=node)


def queue_required(subject: Subject) -> Iterator[Problem]:
    """A job that names no queue waits for one where Kueue manages every job."""
    how = subject.once(managed)
    if how.why_not != "no-queue" or how.framework in SERVING or not subject.once(configuration).manages_all:
        return
    if is_owned(subject) or not says_namespace(subject):
        return
    queues = local_queues(subject)
    message = "the object names no queue, so it stays suspended because Kueue runs with manageJobsWithoutQueueName"
    fix = f"set the label {QUEUE_NAME}" + (f", for example to `{min(queues)}`" if queues else "")
    yield NOT_NOW("queue-required", "", message, fix)


def priority_classes(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Classes without which Kueue creates no Workload."""
    name = text(get(subject.object, ("metadata", "labels", PRIORITY)))
    if name and not is_placeholder(name) and lacks(subject.view(), WORKLOAD_PRIORITY_CLASS, name):
        message = (
            "names a WorkloadPriorityClass that does not exist, so the job waits because Kueue creates no "
            "Workload for it"
        )
        path, fix = ("metadata", "labels", PRIORITY), "create the class, or correct the name"
        yield NOT_NOW("priority-class", path, message, fix, name)
    for each in subject.deadline.paced(subject.fact("priorities")["classes"]):
        if each["absent"] and not name:
            message = (
                "names a PriorityClass that does not exist, so the job waits because Kueue creates no Workload for it"
            )
            fix = did_you_mean(each["nearest"], "create the class, or correct the name")
            yield NOT_NOW("priority-class", each["path"], message, fix, each["name"])
            return


def local_queue(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:
    """The LocalQueue exists and is not stopped."""
    if place.local_queue is None:
        if says_namespace(subject) and is_absent(subject.view(), LOCAL_QUEUE, subject.namespace):
            near = place.view.nearest(how.queue, local_queues(subject))
            message = f"is not a LocalQueue of namespace `{subject.namespace}`, so the job waits"
            fix = did_you_mean(near, "create the LocalQueue, or name another LocalQueue")
            reason = f"Kueue: LocalQueue {how.queue} doesn't exist"
            yield NOT_NOW("local-queue-missing", place.at, f"{message} ({reason})", fix, how.queue)
        return
    policy = text(get(place.local_queue, ("spec", "stopPolicy")))
    if policy not in ("", "None"):
        message = f"leads to LocalQueue `{how.queue}`, which is stopped because its stopPolicy is {policy}"
        reason = f"Kueue: LocalQueue {how.queue} is inactive"
        yield NOT_NOW("stopped", place.at, f"{message} ({reason})", _WAIT)


def cluster_queue(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:
    """The ClusterQueue exists and is active."""
    if place.local_queue is None:
        return
    target = text(get(place.local_queue, ("spec", "clusterQueue")))
    if place.queue is None:
        if is_absent(subject.view(), CLUSTER_QUEUE):
            message = f"leads to LocalQueue `{how.queue}`, whose ClusterQueue `{target}` does not exist"
            reason = f"Kueue: ClusterQueue {target} doesn't exist"
            yield NOT_NOW(
                "cluster-queue-missing",
                place.at,
                f"{message} ({reason})",
                "create the ClusterQueue, or use another queue",
            )
        return
    policy = text(place.queue.spec.get("stopPolicy"))
    if policy not in ("", "None"):
        yield _inactive("stopped", f"is stopped because its stopPolicy is {policy}", place)
    elif cause := next(causes(place.queue, place.view), ""):
        yield _inactive("inactive", f"is inactive because {cause}", place)
    elif place.tree is None:
        first, *others = place.queues.cycle_above(place.queue.above)
        way = ", ".join([first, *others[:_MOST_NAMED], *(["..."] if len(others) > _MOST_NAMED else []), first])
        message = (
            f"leads to ClusterQueue `{target}`, but the parents of its Cohorts form a cycle ({way}), so Kueue admits "
            "no job"
        )
        fix = f"use another queue, or ask the owner of Cohort `{first}` to correct its spec.parentName"
        yield NOT_NOW("cohort-cycle", place.at, message, fix)


def _inactive(rule: str, cause: str, place: Place) -> Problem:
    name = place.queue.name if place.queue else ""
    message = f"leads to ClusterQueue `{name}`, which {cause} (Kueue: ClusterQueue {name} is inactive)"
    return NOT_NOW(rule, place.at, message, _WAIT)


def causes(queue: Declared, view: View) -> Iterator[str]:
    """Why a ClusterQueue is inactive, as `its ResourceFlavor a100 does not exist (FlavorNotFound)`."""
    yield from _absent_flavors(queue, view)
    yield from inactive_checks(queue, view)
    yield from _absent_topologies(queue, view)
    active = condition(queue.status, "Active")
    if active.get("status") == "False":
        yield f"its status says {text(active.get('reason'))}: {text(active.get('message'))}"


def _absent_flavors(queue: Declared, view: View) -> Iterator[str]:
    for group in queue.groups:
        for name in view.deadline.paced(group.flavors):
            if lacks(view, RESOURCE_FLAVOR, name):
                yield f"its ResourceFlavor `{name}` does not exist (FlavorNotFound)"


def _absent_topologies(queue: Declared, view: View) -> Iterator[str]:
    looking = view.unnoted()
    for group in queue.groups:
        for name in view.deadline.paced(group.flavors):
            topology = text(get(looking.get(RESOURCE_FLAVOR, name, namespaced=False), ("spec", "topologyName")))
            if topology and not is_remote(queue, view) and lacks(view, TOPOLOGY, topology):
                yield f"Topology `{topology}` of its flavor `{name}` does not exist (TopologyNotFound)"
