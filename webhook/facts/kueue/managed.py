"""Whether Kueue manages an object, and the LocalQueue, ClusterQueue and cohorts of the object.

An object that Kueue does not manage starts at once, without a queue and without quota.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework (defaults.go, utils.go) and pkg/controller/jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, NAME_LABEL
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.facts.check import is_made_by_controller
from webhook.facts.kueue.configuration import (
    FRAMEWORK_OF_KIND,
    NAMESPACE_SELECTOR_GATE,
    is_gate_on,
    read_kueue_configuration,
)
from webhook.facts.kueue.objects import DEFAULT_QUEUE, QUEUE_NAME
from webhook.facts.kueue.quota import QuotaNode, QuotaTree
from webhook.facts.kueue.quota_tree import QueueFields, QuotaTrees, read_quota_trees
from webhook.facts.pods.node_selection import selector_json_matches
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.typed.kueue import ClusterQueue, LocalQueue
from webhook.typed.objects import Namespace, Object
from webhook.typed.pods import LabelSelector
from webhook.typed.ray import RayJob
from webhook.typed.view import ReadingContext
from webhook.yamltext.placeholders import is_placeholder_for_name

Reason: TypeAlias = Literal["", "owner", "kind", "framework", "namespace", "cluster-selector", "no-queue"]
SYSTEM_NAMESPACES: Final = ("kube-system", "kueue-system")
"""Namespaces that count as not managed if their labels are not known."""
SERVING_FRAMEWORKS: Final = ("deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset")
"""The integrations of serving kinds, which cannot be suspended and have their own webhooks."""
_RAY_JOB: Final = "ray.io/rayjob"
_AT: Final[FieldPath] = ("metadata", "labels", QUEUE_NAME)


class KueueManagement(Struct, frozen=True, kw_only=True):
    """Whether and how Kueue manages an object.

    Args:
        why_not: "" if Kueue manages the object, otherwise the reason why not: `owner` (Kueue manages the owner
            instead), `kind` (Kueue does not know the kind), `framework` (the integration of the kind is off),
            `namespace` (the namespace is excluded), `cluster-selector` (a RayJob on an existing cluster), or
            `no-queue` (the object names no queue).
        queue: the name of the LocalQueue, "" without a LocalQueue.
        is_default: whether `queue` is the default queue, which jobs without a queue name get.
        framework: the name of the object's kind in Kueue's Configuration.
    """

    why_not: Reason = ""
    queue: str = ""
    is_default: bool = False
    framework: str = ""


def how_kueue_manages(subject: Subject) -> KueueManagement:
    """Return how Kueue manages an object. Call this function through `Subject.once`."""
    queue, framework = queue_name_of_object(subject.typed(Object)), FRAMEWORK_OF_KIND.get(subject.group_kind, "")
    if _has_managed_owner(subject):
        return KueueManagement(why_not="owner", queue=queue, framework=framework)
    if not framework:
        return KueueManagement(why_not="kind", queue=queue)
    if framework not in subject.once(read_kueue_configuration).frameworks:
        return KueueManagement(why_not="framework", queue=queue, framework=framework)
    if not is_managed_namespace(subject) and not _is_managed_by_name(queue, framework, subject):
        return KueueManagement(why_not="namespace", queue=queue, framework=framework)
    if framework == _RAY_JOB and _uses_existing_cluster(subject.typed(RayJob)):
        return KueueManagement(why_not="cluster-selector", queue=queue, framework=framework)
    if not queue and _has_default_queue(subject):
        return KueueManagement(queue=DEFAULT_QUEUE, is_default=True, framework=framework)
    return KueueManagement(why_not="" if queue else "no-queue", queue=queue, framework=framework)


def queue_name_of_object(obj: Object) -> str:
    """Return the queue that an object names by its label; "" for a placeholder."""
    name = obj.labels.get(QUEUE_NAME, "")
    return "" if is_placeholder_for_name(name) else name


def _is_managed_by_name(queue: str, framework: str, subject: Subject) -> bool:
    """Return whether Kueue manages a job in any namespace because the job names a queue.

    The job must be of a kind that can be suspended.
    """
    return (
        bool(queue)
        and framework not in ("pod", *SERVING_FRAMEWORKS)
        and not is_gate_on(NAMESPACE_SELECTOR_GATE, subject)
    )


def _has_managed_owner(subject: Subject) -> bool:
    """Return whether the controlling owner of an object has an integrated kind. Kueue manages this owner instead."""
    frameworks = subject.once(read_kueue_configuration).frameworks
    owners = subject.metadata.controller_kinds
    return subject.once(is_made_by_controller) and any(FRAMEWORK_OF_KIND.get(owner) in frameworks for owner in owners)


def is_namespace_known(subject: Subject) -> bool:
    """Return whether the namespace of an object is known; an object in a file may be created in any namespace."""
    return subject.metadata.has("namespace") or subject.cluster_view().is_whole()


def is_managed_namespace(subject: Subject) -> bool:
    """Return whether Kueue manages objects in the namespace of this object."""
    is_selected = selects_namespace(
        subject.once(read_kueue_configuration).namespaces, subject.namespace, subject.cluster_view()
    )
    return subject.namespace not in SYSTEM_NAMESPACES if is_selected is None else is_selected


def is_namespace_selection_known(subject: Subject) -> bool:
    """Return whether the view shows enough to know if Kueue's Configuration selects the namespace of an object. If the
    selector reads labels other than the name, only the Namespace object shows this.
    """
    selector, view = subject.once(read_kueue_configuration).namespaces, subject.cluster_view()
    asked = LabelSelector(selector or {}, (), ReadingContext(view.deadline))
    keys = {*asked.match_labels, *(each.key for each in asked.match_expressions)}
    return keys <= {NAME_LABEL} or selects_namespace(selector, subject.namespace, view) is not None


def selects_namespace(selector: Mapping[str, JSON] | None, name: str, view: ClusterView) -> bool | None:
    """Return whether a label selector selects a namespace; None if this depends on labels that are not known.

    If a namespace cannot be listed, only its name is known. An example is a namespace that is not in the files
    (cluster/layered.py).
    """
    namespace = view.find(Namespace, name, namespaced=False)
    if not namespace:
        return None
    labels = {NAME_LABEL: name, **namespace.labels}
    if selector_json_matches(selector, labels, view.deadline):
        return True
    is_listed = view.find_namespace(name) is not None
    return (
        None
        if not is_listed
        and selector_json_matches(_namespace_name_part_of_selector(selector, view), labels, view.deadline)
        else False
    )


def _namespace_name_part_of_selector(selector: Mapping[str, JSON] | None, view: ClusterView) -> JSON:
    """Return the part of a selector that is about the name of the namespace."""
    asked = LabelSelector(selector or {}, (), ReadingContext(view.deadline))
    return {
        "matchLabels": {key: value for key, value in asked.match_labels.items() if key == NAME_LABEL},
        "matchExpressions": [each.json for each in asked.match_expressions if each.key == NAME_LABEL],
    }


def _uses_existing_cluster(job: RayJob) -> bool:
    return bool(job.spec.cluster_selector) and not job.spec.has_cluster


def _has_default_queue(subject: Subject) -> bool:
    return DEFAULT_QUEUE in local_queue_names(subject)


def local_queue_names(subject: Subject) -> list[str]:
    """Return the names of the LocalQueues of the namespace."""
    return [queue.name for queue in subject.cluster_view().list_typed(LocalQueue, subject.namespace)]


class QueuePlace(Struct, frozen=True, kw_only=True):
    """The queues of a job, as far as they are known.

    Args:
        view: the view of the cluster, which notes the objects that could not be looked up.
        at: the printed path of the queue's name in the object; "" if the object names no queue.
        local_queue: the LocalQueue; an empty object, which is false, if the LocalQueue is not known.
        queues: all ClusterQueues and cohorts of the cluster.
        queue: the ClusterQueue of the LocalQueue; None if the ClusterQueue is not known.
        tree, node: the quota tree with the cohorts, and the ClusterQueue in it; None if the ClusterQueue is not known,
            or if the cohorts form a cycle.
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
    local, trees = view.find(LocalQueue, how.queue), read_quota_trees(view)
    at, target = "" if how.is_default else path_as_text(_AT), local.spec.cluster_queue
    queue = trees.cluster_queues.get(target) if target else None  # a ClusterQueue of a file may have no name
    if queue is None:
        if local:
            view.find(ClusterQueue, target, namespaced=False)  # notes the ClusterQueue as missing
        return QueuePlace(view=view, at=at, local_queue=local, queues=trees)
    tree, node = trees.tree_and_node_of_queue(target) or (None, None)
    return QueuePlace(view=view, at=at, local_queue=local, queues=trees, queue=queue, tree=tree, node=node)
