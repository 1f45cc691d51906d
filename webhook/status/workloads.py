"""Reads what controllers write into the status of their objects: jobs, and servers such as Deployments.

Source: k8s.io/api v0.36 batch/v1/types.go and apps/v1/types.go; kubernetes-sigs/jobset api/jobset/v1alpha2 and
pkg/constants; kubeflow/trainer@8c0f5059 pkg/apis/trainer/v1alpha1/trainjob_types.go and pkg/constants;
kubeflow/training-operator v1.9; kubernetes-sigs/lws@060ab4d api/leaderworkerset/v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.status.kueue import QUEUE_LABEL
from webhook.status.refusals import read_refused_creation
from webhook.status.sources import ClusterReading, event_words, time_of_event
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

_DEFAULT_RUNTIME: Final = "ClusterTrainingRuntime"
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
_NO_SUPPORT: Final = (
    "Trainer does not support {runtime}",
    "name a ClusterTrainingRuntime or a TrainingRuntime in spec.runtimeRef, then create it again",
)
_FAILED_TRAIN_JOB: Final[Mapping[str, tuple[str, str]]] = {
    "DeadlineExceeded": (
        "the TrainJob was stopped, because it ran longer than activeDeadlineSeconds",
        "raise activeDeadlineSeconds, then create it again",
    ),
    "TrainingRuntimeNotSupported": _NO_SUPPORT,
}


def read_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements from the status of a Job."""
    conditions = conditions_of(job)
    if failed := true_condition(conditions, "Failed", "FailureTarget"):
        sentence, fix = _FAILED_JOB.get(failed.reason, ("the job failed", "look at its pods, then create it again"))
        yield _statement_about_failed_job(job, failed, sentence, fix)
    elif done := true_condition(conditions, "Complete", "SuccessCriteriaMet"):
        yield _statement_about_complete_job(job, done)
    else:
        yield from _statement_about_suspended_job(job, ("spec", "suspend"))
        if number_at(job, ("status", "active")) == 0:
            yield from read_refused_creation(job, reading)


def read_job_set(job_set: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements from the status of a JobSet."""
    conditions = conditions_of(job_set)
    if failed := true_condition(conditions, "Failed"):
        sentence = _FAILED_JOB_SET.get(failed.reason, "the JobSet failed")
        if failed.reason == "ReachedMaxRestarts" and not number_at(job_set, ("spec", "failurePolicy", "maxRestarts")):
            sentence = f"{_FAILED_JOB_SET['FailedJobs']}, and maxRestarts allows no restart"
        yield _statement_about_failed_job(
            job_set, failed, sentence, "fix the cause of its failed pods, then create it again"
        )
    elif done := true_condition(conditions, "Completed"):
        yield _statement_about_complete_job(job_set, done)
    else:
        yield from _statement_about_suspended_job(job_set, ("spec", "suspend"))
        yield from read_refused_creation(job_set, reading)


def read_train_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements from the status of a TrainJob."""
    conditions, job_name = conditions_of(job), name_of(job)
    runtime = f"{text_at(job, ('spec', 'runtimeRef', 'kind')) or _DEFAULT_RUNTIME} "
    runtime += text_at(job, ("spec", "runtimeRef", "name"))
    if failed := true_condition(conditions, "Failed"):
        sentence, fix = _FAILED_TRAIN_JOB.get(
            failed.reason, ("the TrainJob failed", "fix the cause of its failed pods, then create it again")
        )
        yield _statement_about_failed_job(job, failed, sentence.format(runtime=runtime), fix)
    elif done := true_condition(conditions, "Complete"):
        yield _statement_about_complete_job(job, done)
    elif without_runtime := next(filter(_says_no_runtime, reading.events(job)), None):
        fix = "name a runtime that exists in spec.runtimeRef, or create this runtime"
        yield Statement(
            about=job_name,
            standing="stuck",
            turn=Turn.NO_RUNTIME,
            sentence=f"{runtime} does not exist",
            fix=fix,
            words=event_words(without_runtime),
            last_seen=time_of_event(without_runtime),
        )
    else:
        yield from _statement_about_suspended_job(job, ("spec", "suspend"))
        yield from read_refused_creation(job, reading)


def _says_no_runtime(event: JSON) -> bool:
    """Return whether an event says that the runtime of the TrainJob does not exist."""
    message = text_at(event, ("message",))
    if text_at(event, ("reason",)) != "TrainJobResourcesCreationFailed" or "not found" not in message:
        return False
    return "TrainingRuntime specified in TrainJob" in message or "trainingruntimes" in message


def read_training_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements from the status of a PyTorchJob or a similar kind, such as an MPIJob."""
    conditions = conditions_of(job)
    if failed := true_condition(conditions, "Failed"):
        yield _statement_about_failed_job(
            job, failed, "the job failed", "fix the cause of its failed pods, then create it again"
        )
    elif done := true_condition(conditions, "Succeeded"):
        yield _statement_about_complete_job(job, done)
    else:
        yield from _statement_about_suspended_job(job, ("spec", "runPolicy", "suspend"))
        yield from read_refused_creation(job, reading)
        if restarting := true_condition(conditions, "Restarting"):
            sentence = "the job starts its pods again, because some of them failed"
            yield Statement(
                about=name_of(job), standing="starting", turn=Turn.PROGRESS, sentence=sentence, words=restarting.words
            )


def _statement_about_failed_job(job: JSON, condition: Condition, sentence: str, fix: str) -> Statement:
    return Statement(
        about=name_of(job), standing="failed", turn=Turn.ENDED, sentence=sentence, fix=fix, words=condition.words
    )


def _statement_about_complete_job(job: JSON, condition: Condition) -> Statement:
    return Statement(
        about=name_of(job), standing="done", turn=Turn.ENDED, sentence="it is complete", words=condition.words
    )


def _statement_about_suspended_job(job: JSON, path: tuple[str, ...]) -> Iterator[Statement]:
    """Yield the statement about a suspended job. Kueue suspends a job that names a queue. Otherwise, the author
    suspended the job.
    """
    if get(job, path, False) is not True:
        return
    field, queue = ".".join(path), text_at(job, ("metadata", "labels", QUEUE_LABEL))
    if queue:
        sentence = f"Kueue keeps it suspended in LocalQueue {queue}, and has made no Workload for it"
        fix = (
            "check whether Kueue's controller runs, and whether the job's PriorityClass and WorkloadPriorityClass exist"
        )
    else:
        sentence, fix = f"it is suspended by {field}", f"set {field} to false"
    yield Statement(
        about=name_of(job), standing="stuck", turn=Turn.SUSPENDED, sentence=sentence, fix=fix, words=f"{field} is true"
    )


def read_pods_of_set(owner: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield statements about why a ReplicaSet, StatefulSet or DaemonSet lacks pods."""
    replicas = get(owner, ("spec", "replicas"), get(owner, ("status", "desiredNumberScheduled"), 1))
    current = number_at(owner, ("status", "replicas")) or number_at(owner, ("status", "currentNumberScheduled"))
    if replicas != current:
        yield from read_refused_creation(owner, reading)


def read_deployment(deployment: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements about the rollout from the status of a Deployment."""
    yield from read_refused_creation(deployment, reading)
    deployment_name, conditions = name_of(deployment), conditions_of(deployment)
    if get(deployment, ("spec", "replicas"), 1) == 0:
        sentence, fix = (
            "spec.replicas is 0, so it has no pod",
            "set spec.replicas, or correct the autoscaler that set it",
        )
        yield Statement(about=deployment_name, standing="stuck", turn=Turn.SUSPENDED, sentence=sentence, fix=fix)
    progressing = conditions.get("Progressing")
    if progressing is not None and progressing.status == "False":
        sentence = "the rollout made no progress within progressDeadlineSeconds"
        fix = "find out why its pods are not ready, and fix the cause"
        yield Statement(
            about=deployment_name,
            standing="stuck",
            turn=Turn.PROGRESS,
            sentence=sentence,
            fix=fix,
            words=progressing.words,
        )
    if get(deployment, ("spec", "paused"), False) is True:
        sentence = "the rollout is paused by spec.paused, so a changed template makes no pods"
        yield Statement(
            about=deployment_name,
            standing="stuck",
            turn=Turn.PROGRESS,
            sentence=sentence,
            fix="set spec.paused to false",
        )


def read_conditions_of_server(server: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements from the conditions of any other kind, such as an InferenceService."""
    yield from read_refused_creation(server, reading)
    conditions = conditions_of(server)
    if failed := true_condition(conditions, "Failed"):
        sentence, server_name = f"the {text_at(server, ('kind',))} failed", name_of(server)
        yield Statement(about=server_name, standing="failed", turn=Turn.ENDED, sentence=sentence, words=failed.words)
        return
    if done := true_condition(conditions, "Complete", "Completed", "Succeeded"):
        yield Statement(
            about=name_of(server), standing="done", turn=Turn.ENDED, sentence="it is complete", words=done.words
        )
        return
    for name in ("Ready", "Available"):
        condition = conditions.get(name)
        if condition is not None and condition.status == "False":
            sentence = f"it is not ready yet{f': {condition.message}' if condition.message else ''}"
            yield Statement(
                about=name_of(server),
                standing="starting",
                turn=Turn.READINESS,
                sentence=sentence,
                words=condition.words,
            )
            return
