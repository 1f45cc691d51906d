"""Finds the reasons why a ClusterQueue is inactive: objects that it names do not exist, or conflict.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go updateQueueStatus and inactiveReason. The
Workload says only that its queue is inactive; the cause is a condition of the ClusterQueue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.admission_checks import may_run_in_other_cluster, why_checks_keep_queue_inactive
from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.place import QueuePlace
from webhook.facts.kueue.quota_types import QueueFields, QuotaGroup
from webhook.facts.kueue.types import ClusterQueue, ResourceFlavor, Topology
from webhook.facts.view import ClusterView
from webhook.problem import Problem
from webhook.typed.collections import Items

INACTIVE: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/inactive",
    title="The ClusterQueue of a job is active.",
    why="A single flavor, topology or admission check that is missing makes all of it inactive.",
    function="inactiveReason",
    issues=("https://github.com/headlamp-k8s/plugins/issues/1191",),
)
WAIT: Final = "wait, ask the owner of the queue, or use another queue"


def inactive_queue_problem(place: QueuePlace, queue: QueueFields, cause: str) -> Problem:
    """Return the problem of a job whose ClusterQueue is inactive for a cause."""
    message = f"leads to {place.view.name_with_file(ClusterQueue.gvk, queue.name)}, which is inactive because {cause}"
    return INACTIVE.problem(place.at, f"{message} (Kueue: ClusterQueue {queue.name} is inactive)", WAIT)


def causes_of_inactivity(queue: QueueFields, view: ClusterView) -> Iterator[str]:
    """Yield the reasons why a ClusterQueue is inactive, as `its ResourceFlavor a100 does not exist
    (FlavorNotFound)`.
    """
    for group in queue.groups:
        yield from _describe_absent_flavors(group, view)
    yield from why_checks_keep_queue_inactive(queue, view)
    for group in queue.groups:
        yield from _describe_absent_topologies(group, queue, view)
    if queue.inactive:
        yield f"its status says {queue.inactive}"


def _describe_absent_flavors(group: QuotaGroup, view: ClusterView) -> Iterator[str]:
    for name in Items(group.flavors, view.deadline):
        if view.lacks(ResourceFlavor.gvk, name):
            yield f"its ResourceFlavor `{name}` does not exist (FlavorNotFound)"


def _describe_absent_topologies(group: QuotaGroup, queue: QueueFields, view: ClusterView) -> Iterator[str]:
    flavors = view.copy_without_missing_objects()
    for name in Items(group.flavors, view.deadline):
        topology = flavors.find(ResourceFlavor, name, namespaced=False).spec.topology_name
        if topology and not may_run_in_other_cluster(queue, view) and view.lacks(Topology.gvk, topology):
            yield f"Topology `{topology}` of its flavor `{name}` does not exist (TopologyNotFound)"
