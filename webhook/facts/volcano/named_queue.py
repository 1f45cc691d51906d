"""The queue that an object of another project names, for the PodGroup that its controller or Volcano makes of it.

Nobody looks at the name before that: Volcano's webhook refuses a PodGroup whose queue is missing or closed, and the
pods wait. It takes one whose queue has children. Sources: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup and
pkg/webhooks/admission/podgroups; the batch schedulers of ray-project/kuberay, kubernetes-sigs/lws and
kubeflow/spark-operator; kubeflow/trainer release-1.9 pkg/controller.v1/common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.train_job import train_job
from webhook.facts.volcano.gang_resources import above_capability, written_amounts
from webhook.facts.volcano.queue_reference import exists_and_is_open, holds_gangs
from webhook.facts.volcano.queues import read_queues
from webhook.facts.volcano_objects import kinds
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("volcano-pod").problem
_SPARK: Final = ("sparkoperator.k8s.io", "SparkApplication")
_RAY_LABEL: Final[FieldPath] = ("metadata", "labels", "volcano.sh/queue-name")
_POLICY: Final[FieldPath] = ("spec", "runPolicy", "schedulingPolicy", "queue")
NAMED: Final[Mapping[tuple[str, str], FieldPath]] = {
    **dict.fromkeys((("ray.io", kind) for kind in ("RayCluster", "RayJob")), _RAY_LABEL),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): ("metadata", "annotations", kinds.QUEUE_NAME),
    _SPARK: ("spec", "batchSchedulerOptions", "queue"),
    **dict.fromkeys(
        (("kubeflow.org", f"{kind}Job") for kind in ("PyTorch", "TF", "MPI", "XGBoost", "Paddle", "JAX")), _POLICY
    ),
}
"""Where each kind names its queue."""


def named_queue(subject: Subject) -> Iterator[Problem]:
    """The queue that a workload of another project names."""
    path = NAMED[subject.group_kind]
    name = get(subject.object, path)
    if subject.group_kind == _SPARK and get(subject.object, ("spec", "batchScheduler")) != kinds.SCHEDULER:
        return
    if path is _POLICY and not subject.once(read_queues).is_whole:
        return  # nobody knows whether the operator uses Volcano
    yield from validate_named_queue(name, path, subject)
    if path is _POLICY and name in subject.once(read_queues).all:
        needed = written_amounts(get(subject.object, (*_POLICY[:-1], "minResources"), {}), subject.deadline)
        yield from above_capability(needed, name, path, subject.once(read_queues), problem)


def queue_of_train_job(subject: Subject) -> Iterator[Problem]:
    """The queue that a TrainJob and its runtime name, where the runtime has a policy for Volcano."""
    job = subject.once(train_job)
    if job.runtime.is_found and job.scheduler == kinds.SCHEDULER and kinds.QUEUE_NAME in job.merged.annotations:
        at = job.merged.annotated[kinds.QUEUE_NAME]
        yield from validate_named_queue(job.merged.annotations[kinds.QUEUE_NAME], at, subject)


def validate_named_queue(name: JSON, path: FieldPath | str, subject: Subject) -> Iterator[Problem]:
    """A queue that is named exists, is open, and has no queues below it."""
    if not isinstance(name, str) or not name or is_placeholder(name):
        return
    queues = subject.once(read_queues)
    yield from exists_and_is_open(name, path, queues, subject, problem)
    yield from holds_gangs(name, path, queues, problem)
