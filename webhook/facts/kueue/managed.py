"""Whether Kueue manages an object, and by which LocalQueue.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework (defaults.go, utils.go) and pkg/controller/jobs. What
Kueue does not manage starts at once, without a queue and without quota.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from webhook.attributes import JSON, NAME_LABEL, NAMESPACE
from webhook.facts.kueue.configuration import KINDS, configuration
from webhook.facts.kueue.feature_gates import SELECTOR_RESPECTED, is_on
from webhook.facts.kueue.objects import DEFAULT_QUEUE, GROUP, LOCAL_QUEUE, QUEUE_NAME
from webhook.facts.kueue.queues import name_of
from webhook.facts.pods.node_selection import selects
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.placeholders import is_placeholder

Why: TypeAlias = Literal["", "owner", "kind", "framework", "namespace", "cluster-selector", "no-queue"]
SYSTEM: Final = ("kube-system", "kueue-system")
"""Namespaces that are never managed."""
SERVING: Final = ("deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset")
"""The integrations of kinds that serve: they have no field to suspend them, and webhooks of their own."""
_RAY_JOB: Final = ("ray.io", "RayJob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """Whether and how an object is managed.

    Args:
        why_not: why Kueue leaves it alone, "" where it does not: its `owner` is managed instead, its `kind` is not
            known to Kueue, its `framework` is not integrated, its `namespace` is left out, it is a RayJob on a cluster
            that exists (`cluster-selector`), or it names no queue (`no-queue`).
        queue: the name of its LocalQueue, "" for none.
        is_default: whether that is the queue of jobs that name none.
        framework: what Kueue's Configuration calls its kind.
    """

    why_not: Why = ""
    queue: str = ""
    is_default: bool = False
    framework: str = ""


def concerns_kueue(subject: Subject) -> bool:
    """Whether Kueue may have to do with an object at all, to be asked for with `Subject.once`: most have nothing.

    Its metadata, or that of its pods, has a label or an annotation of Kueue, its namespace has queues, or
    Kueue manages every job.
    """
    if _names_kueue(subject.object) or subject.cluster.has_any(LOCAL_QUEUE, subject.namespace):
        return True
    if subject.once(configuration).manages_all:
        return True
    if subject.group_kind == ("", "Pod"):
        return False
    return any(_names_kueue(each.template) for each in subject.deadline.paced(subject.once(pod_sets).all))


def _names_kueue(obj: JSON) -> bool:
    metadata = mapping(mapping(obj).get("metadata"))
    return GROUP in "\n".join((*mapping(metadata.get("labels")), *mapping(metadata.get("annotations"))))


def managed(subject: Subject) -> Managed:
    """How Kueue manages an object, to be asked for with `Subject.once`."""
    queue, framework = queue_name(subject.object), KINDS.get(subject.group_kind, "")
    if _has_managed_owner(subject):
        return Managed(why_not="owner", queue=queue, framework=framework)
    if not framework:
        return Managed(why_not="kind", queue=queue)
    if framework not in subject.once(configuration).frameworks:
        return Managed(why_not="framework", queue=queue, framework=framework)
    if not is_managed_namespace(subject) and not _is_managed_by_name(queue, framework, subject):
        return Managed(why_not="namespace", queue=queue, framework=framework)
    if subject.group_kind == _RAY_JOB and _uses_existing_cluster(subject.object):
        return Managed(why_not="cluster-selector", queue=queue, framework=framework)
    if not queue and _has_default_queue(subject):
        return Managed(queue=DEFAULT_QUEUE, is_default=True, framework=framework)
    return Managed(why_not="" if queue else "no-queue", queue=queue, framework=framework)


def queue_name(obj: JSON) -> str:
    """The queue that an object names by its label; one that is still to be filled in is none."""
    name = text(get(obj, ("metadata", "labels", QUEUE_NAME)))
    return "" if is_placeholder(name) else name


def _is_managed_by_name(queue: str, framework: str, subject: Subject) -> bool:
    """Whether a job is managed in any namespace because it names a queue: a job with a field to suspend it once was."""
    return bool(queue) and framework not in ("pod", *SERVING) and not is_on(SELECTOR_RESPECTED, subject)


def _has_managed_owner(subject: Subject) -> bool:
    """Whether the controller of an object is of an integrated kind, which is then what Kueue manages."""
    frameworks = subject.once(configuration).frameworks
    for owner in map(mapping, items(get(subject.object, ("metadata", "ownerReferences")))):
        group = text(owner.get("apiVersion")).rpartition("/")[0]
        if owner.get("controller") is True and KINDS.get((group, text(owner.get("kind")))) in frameworks:
            return True
    return False


def is_owned(subject: Subject) -> bool:
    """Whether another object made this one, which Kueue may then take for a part of it."""
    return bool(get(subject.object, ("metadata", "ownerReferences")))


def says_namespace(subject: Subject) -> bool:
    """Whether the namespace of an object is known: an object of a file may say none, and be created in any."""
    return get(subject.object, ("metadata", "namespace")) is not None or subject.view().is_whole()


def is_managed_namespace(subject: Subject) -> bool:
    """Whether Kueue looks at the object's namespace at all."""
    is_taken = takes_namespace(subject.once(configuration).namespaces, subject.namespace, subject.view())
    return subject.namespace not in SYSTEM if is_taken is None else is_taken


def takes_namespace(selector: JSON, name: str, view: View) -> bool | None:
    """Whether a label selector takes a namespace; None where nobody knows the labels that it asks for.

    Nobody knows more than the name of a namespace that cannot be listed: of one that files do not have
    (cluster/assumed_namespaces.py).
    """
    held = view.get(NAMESPACE, name, namespaced=False)
    if held is None:
        return None
    labels = {NAME_LABEL: name, **mapping(get(held, ("metadata", "labels")))}
    if selects(selector, labels, view.deadline):
        return True
    is_known = any(name_of(each) == name for each in view.deadline.paced(view.objects(NAMESPACE)))
    return None if not is_known and selects(_of_name(selector, view), labels, view.deadline) else False


def _of_name(selector: JSON, view: View) -> JSON:
    """What a selector asks of the name of a namespace."""
    wanted = mapping(mapping(selector).get("matchLabels"))
    listed = view.deadline.paced(items(mapping(selector).get("matchExpressions")))
    return {
        "matchLabels": {NAME_LABEL: wanted[NAME_LABEL]} if NAME_LABEL in wanted else {},
        "matchExpressions": [each for each in listed if mapping(each).get("key") == NAME_LABEL],
    }


def _uses_existing_cluster(obj: JSON) -> bool:
    spec = mapping(get(obj, ("spec",)))
    return bool(spec.get("clusterSelector")) and not spec.get("rayClusterSpec")


def _has_default_queue(subject: Subject) -> bool:
    return DEFAULT_QUEUE in local_queues(subject)


def local_queues(subject: Subject) -> list[str]:
    """The names of the LocalQueues of the namespace."""
    listed = subject.view().all(LOCAL_QUEUE, subject.namespace)
    return [text(get(each, ("metadata", "name"))) for each in subject.deadline.paced(listed)]
