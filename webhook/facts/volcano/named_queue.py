"""Checks the queue that a pod, or an object of another project, names for its PodGroup.

Nobody looks at the name before that: Volcano's webhook refuses a PodGroup whose queue is missing or closed, and the
pods wait. It takes one whose queue has children. Sources: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup and
pkg/webhooks/admission/podgroups; the batch schedulers of ray-project/kuberay, kubernetes-sigs/lws and
kubeflow/spark-operator; kubeflow/trainer release-1.9 pkg/controller.v1/common.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import GroupVersionKind
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import merge_train_job
from webhook.facts.volcano.gang_resources import amounts_in_thousandths
from webhook.facts.volcano.pod_queue_and_capability import OF_PODS
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano.referenced_queue import validate_queue, warn_of_amounts_above_capability
from webhook.facts.volcano_objects import kinds
from webhook.problem import Problem
from webhook.typed.fields import Amounts, Part, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed

_RAY_LABEL: Final = "volcano.sh/queue-name"
RAY: Final = frozenset(("ray.io", kind) for kind in ("RayCluster", "RayJob"))
LEADER_WORKER_SET: Final = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
TRAINING_JOBS: Final = frozenset(
    ("kubeflow.org", f"{kind}Job") for kind in ("PyTorch", "TF", "MPI", "XGBoost", "Paddle", "JAX")
)


class BatchSchedulerOptions(Typed):
    """The settings of the batch scheduler for a Spark application."""

    queue = Text()


class SparkApplicationSpec(Typed):
    """The scheduler settings of a SparkApplication."""

    batch_scheduler = Text()
    batch_scheduler_options = Part(BatchSchedulerOptions)


class SparkApplication(Object):
    """sparkoperator.k8s.io SparkApplication."""

    gvk = GroupVersionKind("sparkoperator.k8s.io", "v1beta2", "SparkApplication")
    spec = Part(SparkApplicationSpec)


class SchedulingPolicy(Typed):
    """kubeflow.org SchedulingPolicy."""

    queue = Text()
    min_resources = Amounts()


class RunPolicy(Typed):
    """kubeflow.org RunPolicy."""

    scheduling_policy = Part(SchedulingPolicy)


class TrainingJobSpec(Typed):
    """The fields that all jobs of the Training Operator have."""

    run_policy = Part(RunPolicy)


class TrainingJob(Object):
    """kubeflow.org PyTorchJob, and the other jobs of the Training Operator."""

    gvk = GroupVersionKind("kubeflow.org", "v1", "PyTorchJob")
    spec = Part(TrainingJobSpec)


def check_queue_of_ray_cluster(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a RayCluster or a RayJob names."""
    labels = subject.metadata.labels
    yield from validate_queue(labels.get(_RAY_LABEL, ""), ("metadata", "labels", _RAY_LABEL), subject, OF_PODS)


def check_queue_of_leader_worker_set(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a LeaderWorkerSet names."""
    annotations, path = subject.metadata.annotations, ("metadata", "annotations", kinds.QUEUE_NAME)
    yield from validate_queue(annotations.get(kinds.QUEUE_NAME, ""), path, subject, OF_PODS)


def check_queue_of_spark_application(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a SparkApplication names, if its scheduler is Volcano."""
    spec = subject.typed(SparkApplication).spec
    options = spec.batch_scheduler_options
    if spec.batch_scheduler == kinds.SCHEDULER:
        yield from validate_queue(options.queue, options.path("queue"), subject, OF_PODS)


def check_queue_of_training_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a job of the Training Operator names, if the cluster has Volcano queues."""
    if subject.once(read_queues).is_whole:
        policy = subject.typed(TrainingJob).spec.run_policy.scheduling_policy
        yield from validate_queue(policy.queue, policy.path("queue"), subject, OF_PODS)
        needed = amounts_in_thousandths(policy.min_resources)
        yield from warn_of_amounts_above_capability(
            needed, policy.queue, policy.path("queue"), subject.once(read_queues), OF_PODS
        )


def check_queue_of_train_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a TrainJob and its runtime name, if the runtime has a policy for Volcano."""
    job = subject.once(merge_train_job)
    if job.runtime.is_found and job.scheduler == kinds.SCHEDULER and kinds.QUEUE_NAME in job.merged.annotations:
        path = job.merged.annotated[kinds.QUEUE_NAME]
        yield from validate_queue(job.merged.annotations[kinds.QUEUE_NAME], path, subject, OF_PODS)
