"""The place of a job: its LocalQueue, the ClusterQueue of that, and the cohorts above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.kueue.quota import QuotaNode, QuotaTree
from webhook.facts.kueue.quota_tree import QuotaTrees, read_quota_tree
from webhook.facts.kueue.quota_types import QueueFields
from webhook.facts.kueue.types import ClusterQueue, LocalQueue
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.paths import FieldPath, path_as_text

_AT: Final[FieldPath] = ("metadata", "labels", QUEUE_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlace:
    """The place of a job, as far as it is known.

    Args:
        view: notes what could not be looked up.
        at: where the object names its queue, rendered; "" where it does not.
        local_queue: the LocalQueue; false where it is not known.
        queues: every ClusterQueue and cohort.
        queue: its ClusterQueue.
        tree, node: the cohorts that this is in; None where they have a cycle.
    """

    view: ClusterView
    at: str
    local_queue: LocalQueue
    queues: QuotaTrees
    queue: QueueFields | None = None
    tree: QuotaTree | None = None
    node: QuotaNode | None = None


def queue_place_of_job(subject: Subject, how: KueueManagement) -> QueuePlace:
    """Return the LocalQueue and ClusterQueue that a managed job waits in."""
    view = subject.cluster_view()
    local, everything = view.find(LocalQueue, how.queue), read_quota_tree(view)
    at, target = "" if how.is_default else path_as_text(_AT), local.spec.cluster_queue
    queue = everything.cluster_queues.get(target) if target else None  # files may have one without a name
    if queue is None:
        if local:
            view.find(ClusterQueue, target, namespaced=False)  # says why it is missing
        return QueuePlace(view=view, at=at, local_queue=local, queues=everything)
    tree, node = everything.tree_and_node_of_queue(target) or (None, None)
    return QueuePlace(view=view, at=at, local_queue=local, queues=everything, queue=queue, tree=tree, node=node)
