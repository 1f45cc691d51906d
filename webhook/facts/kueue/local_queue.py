"""A LocalQueue: the ClusterQueue that it names, which stays and has to take jobs of its namespace.

Source: kubernetes-sigs/kueue@ff69552e config/components/crd/bases, pkg/cache/queue and pkg/scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.cluster_queue import immutable
from webhook.facts.kueue.cluster_queues import Queue, read_cluster_queue
from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.managed import takes_namespace
from webhook.facts.kueue.queues import queues
from webhook.facts.kueue.types import ClusterQueue, LocalQueue
from webhook.facts.subject import Subject
from webhook.name_faults import subdomain_fault
from webhook.names import USE_SUBDOMAIN, dns1123_subdomain
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import change, did_you_mean

CLUSTER_QUEUE_NAME: Final = KUEUE_QUEUE.rule(
    "kueue-queue/cluster-queue-name",
    title="A LocalQueue names a ClusterQueue by a name that one can have.",
    why="No ClusterQueue has another name.",
    source="kubernetes-sigs/kueue@ff69552e config/components/crd/bases",
)
CLUSTER_QUEUE_MISSING: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cluster-queue-missing",
    title="The ClusterQueue that a LocalQueue names exists.",
    why="Jobs wait until it is created.",
    refused_by="nobody; jobs wait",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/queue",
)
NAMESPACE_NOT_SELECTED: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/namespace-not-selected",
    title="The ClusterQueue of a LocalQueue takes jobs of its namespace.",
    why="Jobs of other namespaces are never admitted.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go",
)


def validate_local_queue(subject: Subject) -> Iterator[Problem]:
    """The CustomResourceDefinition of LocalQueues: its ClusterQueue stays, and has a name that one can have."""
    spec, old = subject.typed(LocalQueue).spec, subject.typed_old(LocalQueue).spec.cluster_queue
    new, path = spec.cluster_queue, spec.path("clusterQueue")
    if new and dns1123_subdomain(new) and not is_placeholder(new):
        message = f"cannot be the name of a ClusterQueue because {subdomain_fault(new)}"
        yield CLUSTER_QUEUE_NAME.problem(path, message, USE_SUBDOMAIN, new)
    if old and new != old:
        message = f"{change(old, new)} because a LocalQueue keeps its ClusterQueue"
        yield immutable(path, message, f"set `{old}` again, or create another LocalQueue")


def advise_local_queue(subject: Subject) -> Iterator[Problem]:
    """A LocalQueue that leads nowhere."""
    view, local = subject.view(), subject.typed(LocalQueue)
    name, path = local.spec.cluster_queue, local.spec.path("clusterQueue")
    queue = view.find(ClusterQueue, name, namespaced=False) if name else None
    if queue:
        yield from _namespace_not_selected(read_cluster_queue(queue), path, subject)
    elif name and view.is_whole(ClusterQueue.gvk):
        near = view.nearest(name, queues(view).cluster_queues)
        message = "is a ClusterQueue that does not exist, so the jobs of this LocalQueue wait"
        fix = did_you_mean(near, "create the ClusterQueue, or correct the name")
        yield CLUSTER_QUEUE_MISSING.problem(path, message, fix, name)


def _namespace_not_selected(queue: Queue, path: FieldPath, subject: Subject) -> Iterator[Problem]:
    selector = queue.namespace_selector
    if selector is None or takes_namespace(selector, subject.namespace, subject.view()) is False:
        message = (
            f"takes no jobs from namespace `{subject.namespace}` because the namespaceSelector of the ClusterQueue "
            f"{'is not set' if selector is None else 'does not match the namespace'}"
        )
        fix = "name another ClusterQueue, or ask the administrator of this one to admit the namespace"
        yield NAMESPACE_NOT_SELECTED.problem(path, message, fix, queue.name)
