"""Statements about jobs in their own status: Job, JobSet, TrainJob, the jobs of the training operator and of
mpi-operator.

Source: k8s.io/api v0.36 batch/v1/types.go; kubernetes-sigs/jobset api/jobset/v1alpha2 and pkg/constants;
kubeflow/trainer@8c0f5059 pkg/apis/trainer/v1alpha1/trainjob_types.go and pkg/constants;
kubeflow/training-operator v1.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.status.kueue import QUEUE_LABEL
from webhook.status.refused_creation import read_refused_creation
from webhook.status.sources import ClusterReading, event_words
from webhook.status.statement import (
    Condition,
    Statement,
    Turn,
    conditions_of,
    name_of,
    number_at,
    text_at,
    true_condition,
)

_RUNTIMES: Final = {
    kind: GroupVersionKind("trainer.kubeflow.org", "v1alpha1", kind)
    for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
}
_FAILED_JOB: Final[Mapping[str, tuple[str, str]]] = {
    "BackoffLimitExceeded": (
        "the job gave up, because its pods failed more often than backoffLimit allows",
        "fix the cause of the failed pods, then create it again",
    ),
    "DeadlineExceeded": (
        "the job was stopped, because it ran longer than activeDeadlineSeconds",
        "raise activeDeadlineSeconds, then create it again",
    ),
    "PodFailurePolicy": ("the job failed by a rule of its podFailurePolicy", "fix the cause of the failed pod"),
    "FailedIndexes": (
        "the job failed, because some of its indexes failed",
        "fix the cause of the failed pods of these indexes",
    ),
    "MaxFailedIndexesExceeded": (
        "the job gave up, because more indexes failed than maxFailedIndexes allows",
        "fix the cause of the failed pods of these indexes",
    ),
}
_FAILED_JOB_SET: Final[Mapping[str, str]] = {
    "FailedJobs": "the JobSet failed, because one of its jobs failed",
    "FailJobSetAction": "the JobSet failed, because a rule of its failurePolicy says so",
    "FailJobSetFailurePolicyAction": "the JobSet failed, because a rule of its failurePolicy says so",
    "ReachedMaxRestarts": "the JobSet failed, because it was restarted maxRestarts times",
}


def read_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what a Job says."""
    conditions = conditions_of(job)
    if failed := true_condition(conditions, "Failed", "FailureTarget"):
        says, fix = _FAILED_JOB.get(failed.reason, ("the job failed", "look at its pods, then create it again"))
        yield _ended(job, failed, says, fix)
    elif done := true_condition(conditions, "Complete", "SuccessCriteriaMet"):
        yield _done(job, done)
    else:
        yield from _suspended(job, ("spec", "suspend"))
        if number_at(job, ("status", "active")) == 0:
            yield from read_refused_creation(job, reading)


def read_job_set(job_set: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what a JobSet says."""
    conditions = conditions_of(job_set)
    if failed := true_condition(conditions, "Failed"):
        says = _FAILED_JOB_SET.get(failed.reason, "the JobSet failed")
        yield _ended(job_set, failed, says, "fix the cause of its failed pods, then create it again")
    elif done := true_condition(conditions, "Completed"):
        yield _done(job_set, done)
    else:
        yield from _suspended(job_set, ("spec", "suspend"))
        yield from read_refused_creation(job_set, reading)


def read_train_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what a TrainJob says."""
    conditions = conditions_of(job)
    failed, about = true_condition(conditions, "Failed"), name_of(job)
    kind = text_at(job, ("spec", "runtimeRef", "kind")) or "ClusterTrainingRuntime"
    name = text_at(job, ("spec", "runtimeRef", "name"))
    is_known = kind in _RUNTIMES and not reading.missing
    runtime_kind = _RUNTIMES.get(kind, _RUNTIMES["ClusterTrainingRuntime"])
    runtime = (
        reading.get(runtime_kind, about.namespace if kind == "TrainingRuntime" else "", name) if is_known else None
    )
    if failed is not None and failed.reason not in ("TrainJobRuntimeNotSupported", "RuntimeNotSupported"):
        if failed.reason == "DeadlineExceeded":
            says, fix = (
                "the TrainJob was stopped, because it ran longer than activeDeadlineSeconds",
                "raise activeDeadlineSeconds",
            )
        else:
            says, fix = "the TrainJob failed", "fix the cause of its failed pods, then create it again"
        yield _ended(job, failed, says, fix)
    elif done := true_condition(conditions, "Complete"):
        yield _done(job, done)
    elif failed is not None or (is_known and runtime is None and name and not reading.missing and not conditions):
        says = f"{kind} {name} does not exist, or Trainer does not support it"
        fix = f"name a runtime that exists: kubectl get {kind.lower()}s"
        words = failed.words if failed else next(map(event_words, reading.events(job)), "")
        yield Statement(about=about, standing="stuck", turn=Turn.NO_RUNTIME, says=says, fix=fix, words=words)
    else:
        yield from _suspended(job, ("spec", "suspend"))
        yield from read_refused_creation(job, reading)


def read_training_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what a PyTorchJob or one of its kin says, MPIJob among them."""
    conditions = conditions_of(job)
    if failed := true_condition(conditions, "Failed"):
        yield _ended(job, failed, "the job failed", "fix the cause of its failed pods, then create it again")
    elif done := true_condition(conditions, "Succeeded"):
        yield _done(job, done)
    else:
        yield from _suspended(job, ("spec", "runPolicy", "suspend"))
        yield from read_refused_creation(job, reading)
        if restarting := true_condition(conditions, "Restarting"):
            says = "the job starts its pods again, because some of them failed"
            yield Statement(
                about=name_of(job), standing="starting", turn=Turn.PROGRESS, says=says, words=restarting.words
            )


def _ended(job: JSON, condition: Condition, says: str, fix: str) -> Statement:
    return Statement(about=name_of(job), standing="failed", turn=Turn.ENDED, says=says, fix=fix, words=condition.words)


def _done(job: JSON, condition: Condition) -> Statement:
    return Statement(about=name_of(job), standing="done", turn=Turn.ENDED, says="it is complete", words=condition.words)


def _suspended(job: JSON, path: tuple[str, ...]) -> Iterator[Statement]:
    """Yield that a job is suspended: by Kueue if it names a queue, else by its author."""
    if get(job, path, False) is not True:
        return
    field, queue = ".".join(path), text_at(job, ("metadata", "labels", QUEUE_LABEL))
    if queue:
        says = f"Kueue keeps it suspended in LocalQueue {queue}, and has made no Workload for it"
        fix = "look whether Kueue's controller runs, and whether its PriorityClass and WorkloadPriorityClass exist"
    else:
        says, fix = f"it is suspended by {field}", f"set {field} to false"
    yield Statement(
        about=name_of(job), standing="stuck", turn=Turn.SUSPENDED, says=says, fix=fix, words=f"{field} is true"
    )
