"""Reads the demands of a job: its pods, their devices and claims, its schedulers and its queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, Attributes
from webhook.apimachinery.paths import get
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.kueue.configuration import may_concern_kueue
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano_objects.types import QUEUE_NAME
from webhook.policy.policy_set import PolicySet
from webhook.schema import decode_object

VOLCANO: Final = "volcano"
_VOLCANO: Final = ("batch.volcano.sh", "scheduling.volcano.sh")
_UNMANAGED: Final = {"managed": False, "queue": "", "clusterQueue": "", "cohort": "", "verdict": "", "podSets": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPods:
    """One pod set: the number of pods, None if unknown, and the devices and claims of one pod. Kueue may count pods
    that the object has no template of.
    """

    name: str
    pods: int | None
    devices: int = 0
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """The demands of a job.

    Args:
        pod_sets: the pod sets of the job.
        queue, cluster_queue, cohort: where the job waits in Kueue; "" if Kueue does not manage the job, or if the name
            is unknown.
        volcano_queue: the queue of Volcano, or "".
        assumed: the assumption about a runtime that no file has, or "".
        requests: for each pod set, the amounts that count against the queue, as quantities by resource.
    """

    pod_sets: tuple[AskedPods, ...] = ()
    queue: str = ""
    cluster_queue: str = ""
    cohort: str = ""
    volcano_queue: str = ""
    assumed: str = ""
    requests: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


def subject_of_job(attributes: Attributes, obj: JSON, cluster: Cluster, policies: PolicySet) -> Subject:
    """Return a job as a subject for facts, without values of wrong types, which policies report.

    Args:
        attributes: the attributes of the request that creates the job.
        obj: the object after the mutating phase.
        cluster: the other objects of the cluster.
        policies: the policies of the review.
    """
    view = ClusterView(cluster, attributes.namespace, Deadline(), own_namespace=policies.own_namespace)
    decoded = decode_object(obj, attributes.kind, view.deadline).value
    return Subject(object=decoded, old_object=None, attributes=attributes, cluster=view, table=policies.table)


def read_job_request(subject: Subject) -> JobRequest:
    """Return the demands of a job; empty for an object without demands."""
    obj = subject.object
    if not isinstance(obj, dict):
        return JobRequest()
    devices = {each["path"]: each["devices"] for each in subject.fact("gpu")["podSets"]}
    queued: Any = (subject.once(may_concern_kueue) and subject.fact("kueue")) or _UNMANAGED
    pod_sets_of_object = [_pods(each, devices.get(each["path"], 0)) for each in subject.fact("podSets")]
    names = {each.name for each in pod_sets_of_object}
    counted = [AskedPods(name=each["name"], pods=each["count"]) for each in queued["podSets"]]
    return JobRequest(
        pod_sets=(*pod_sets_of_object, *(each for each in counted if each.name not in names)),
        queue=str(queued["queue"]) if queued["managed"] else "",
        cluster_queue=str(queued["clusterQueue"]),
        cohort=str(queued["cohort"]),
        volcano_queue=_volcano_queue(subject),
        assumed=_assumed_of_runtime(subject) if subject.group_kind == TRAIN_JOB else "",
        requests=tuple((each["name"], tuple(each["requests"].items())) for each in queued["podSets"]),
    )


def _assumed_of_runtime(train_job: Subject) -> str:
    from webhook.facts.train_job_pods.merged_train_job import merge_train_job

    return train_job.once(merge_train_job).runtime.assumed


def _volcano_queue(subject: Subject) -> str:
    """Return the job's queue in Volcano; "" if Volcano does not place the pods."""
    templates = [each.template for each in subject.once(pod_sets).all]
    if subject.group_kind[0] in _VOLCANO:
        named = [get(subject.object, ("spec", "queue"), "")]
    elif VOLCANO in scheduler_names(subject):
        named = [get(each, ("metadata", "annotations", QUEUE_NAME), "") for each in (subject.object, *templates)]
    else:
        return ""
    return next((each for each in named if isinstance(each, str) and each), "default")


def _pods(pod_set: Any, devices: int) -> AskedPods:
    claims = get(pod_set["template"], ("spec", "resourceClaims"), ())
    names = (each.get("name") for each in claims if isinstance(each, dict)) if isinstance(claims, list) else ()
    return AskedPods(
        name=pod_set["name"], pods=pod_set["pods"], devices=devices, claims=tuple(map(str, filter(None, names)))
    )


def scheduler_names(subject: Subject) -> tuple[str, ...]:
    """Return the schedulers that place the pods of an object; empty for only the default scheduler.

    A Volcano Job, a SparkApplication and a label of KubeRay name the scheduler for all pods.
    """
    obj = subject.object
    of_all = (
        get(obj, ("spec", "schedulerName"), ""),
        get(obj, ("spec", "batchScheduler"), ""),
        get(obj, ("metadata", "labels", "ray.io/scheduler-name"), ""),
    )
    of_templates = (get(each.template, ("spec", "schedulerName"), "") for each in subject.once(pod_sets).all)
    return tuple(dict.fromkeys(name for name in (*of_all, *of_templates) if isinstance(name, str) and name))
