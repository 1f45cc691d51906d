"""The checks of Kubeflow Trainer's kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from webhook.facts.check import Check
from webhook.facts.dra.pod_claims import LOOKUPS as DEVICES
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.scheduling.priority_classes import LOOKUP as PRIORITY_CLASSES
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import fields
from webhook.facts.train_job_pods.installation import release_of
from webhook.facts.train_job_pods.lookups import INSTALLED
from webhook.facts.train_job_pods.spec_changes import changes_more_than_suspend
from webhook.facts.train_job_pods.train_job import MergedTrainJob, train_job
from webhook.facts.train_job_pods.types import TrainingRuntime
from webhook.facts.trainer import (
    claims_validation,
    job_validation,
    ml_policy,
    mpi_workers,
    patch_validation,
    plugin_validation,
    processes_and_gpus,
    runtime_deprecation,
    runtime_plugins,
    runtime_scheduling,
    runtime_steps,
    runtime_validation,
    scheduling,
    step_validation,
    train_job_changes,
)
from webhook.facts.trainer.node_claims import node_claims
from webhook.facts.trainer.pod_validation import validate_pods
from webhook.facts.trainer.runtime_plugins import TORCH_ADDRESS
from webhook.facts.trainer.torchtune import validate_torchtune
from webhook.problem import Problem
from webhook.releases import Release

_TRAIN_JOB: Final = frozenset((TRAIN_JOB,))

_ALONE: Final = (
    job_validation.validate_name,
    job_validation.validate_runtime_kind,
    job_validation.validate_managed_by,
    job_validation.validate_resource_claims,
    job_validation.validate_num_proc_per_node,
    job_validation.validate_source_scheme,
    claims_validation.validate_resource_claims_per_node,
    patch_validation.validate_patch_managers,
    patch_validation.validate_overlays,
    job_validation.validate_no_nodes,
)
_ON_RUNTIME: Final = (
    step_validation.validate_initializer_step,
    step_validation.validate_trainer,
    step_validation.validate_ignored_nodes,
    plugin_validation.validate_reserved_env,
    plugin_validation.validate_processes,
    plugin_validation.validate_flux_nodes,
    mpi_workers.validate_launcher_as_node,
    mpi_workers.validate_extra_node,
    mpi_workers.validate_workers,
    plugin_validation.validate_no_trainer,
    validate_torchtune,
    scheduling.validate_volcano_queue,
    scheduling.validate_gang,
)


def train_job_alone(subject: Subject) -> Iterator[Problem]:
    """What is wrong with a TrainJob whatever its runtime is."""
    job = subject.once(train_job)
    for validate in _ALONE:
        yield from validate(job)
    if job.object.json is not subject.object:  # something is left out of it
        rules = fields.OF_TRAIN_JOBS
        yield from _fields(subject, "TrainJob", job.release, rules)


def _fields(subject: Subject, kind: str, release: Release, rules: fields.FieldRules) -> Iterator[Problem]:
    """Fields that the release does not have."""
    is_sent = subject.attributes.is_decoded
    yield from fields.validate_fields(subject.object, kind, release, rules, subject.deadline, is_sent=is_sent)


def train_job_on_runtime(subject: Subject) -> Iterator[Problem]:
    """What is wrong with a TrainJob on its runtime."""
    if not changes_more_than_suspend(subject):
        return
    job = subject.once(train_job)
    yield from step_validation.validate_runtime_exists(job, subject)
    if job.runtime.is_found:
        yield from job.merged.problems
        for validate in _ON_RUNTIME:
            yield from validate(job)
        yield from validate_pods(subject)
        yield from scheduling.validate_priority_class(job, subject)
    kept = [claim for claim in subject.once(node_claims) if not claim.is_dropped]
    yield from processes_and_gpus.advise_processes(subject, kept)


def runtime_of_train_job(subject: Subject) -> Iterator[Problem]:
    """What is wrong with the runtime that a TrainJob names, once the patches are merged."""
    job = subject.once(train_job)
    if not job.runtime.is_found or not changes_more_than_suspend(subject):
        return
    yield from runtime_deprecation.advise_deprecated_runtime(job)
    problems = (
        *runtime_plugins.validate_plugins(job.runtime.spec.ml_policy, job.merged.patched, job.release),
        *runtime_plugins.validate_token_volume(job.merged.patched),
    )
    for problem in problems:
        if problem.code != TORCH_ADDRESS.id or (job.nodes > 1 and job.trainer):
            yield _of_runtime(problem, job)


def _of_runtime(problem: Problem, job: MergedTrainJob) -> Problem:
    """A problem of the runtime as a TrainJob is told of it."""
    message = f"in {job.runtime}, {problem.path} {problem.said}"
    return replace(problem, path="spec.runtimeRef", found="", message=message, fix=f"in the runtime, {problem.fix}")


def train_job_update(subject: Subject) -> Iterator[Problem]:
    """What may not change of a TrainJob."""
    if subject.old_object is None:
        return
    yield from train_job_changes.validate_immutable_fields(subject)
    yield from train_job_changes.validate_immutable_patches(subject)
    yield from train_job_changes.validate_running(subject)
    yield from train_job_changes.validate_job_set_immutable(subject)


def training_runtime(subject: Subject) -> Iterator[Problem]:
    """What is wrong with a runtime."""
    runtime, release = subject.typed(TrainingRuntime), release_of(subject)
    if not runtime_validation.is_overlooked(subject):
        yield from runtime_steps.validate_steps(runtime.spec, release)
    yield from ml_policy.validate_ml_policy(runtime.spec.ml_policy, release)
    yield from runtime_plugins.validate_plugins(runtime.spec.ml_policy, runtime.spec.template.spec, release)
    yield from runtime_validation.validate_job_name_length(runtime.spec, release)
    if subject.old_object is not None:
        yield from runtime_validation.validate_immutable_fields(subject)
    yield from _runtime_advice(runtime, subject)
    kind = subject.group_kind[1]
    yield from _fields(subject, kind, release, fields.OF_RUNTIMES)


def _runtime_advice(runtime: TrainingRuntime, subject: Subject) -> Iterator[Problem]:
    spec, release = runtime.spec, release_of(subject)
    yield from runtime_deprecation.advise_deprecation(runtime)
    yield from runtime_steps.advise_trainer_step(spec)
    if subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime":
        yield from runtime_steps.advise_overlooked_steps(spec)
    yield from ml_policy.advise_ml_policy(spec, release)
    yield from runtime_plugins.advise_plugin_variables(spec)
    yield from runtime_steps.advise_initializer_mounts(spec, release)
    yield from runtime_plugins.validate_token_volume(spec.template.spec)
    yield from runtime_scheduling.advise_gangs(spec)


CHECKS: Final = (
    Check(group="train-job", run=train_job_alone, kinds=_TRAIN_JOB),
    Check(group="train-job", run=train_job_on_runtime, kinds=_TRAIN_JOB, lookups=(*DEVICES, PRIORITY_CLASSES)),
    Check(group="train-job-changes", run=train_job_update, kinds=_TRAIN_JOB, lookups=train_job_changes.LOOKUPS),
    Check(group="training-runtime", run=training_runtime, kinds=TRAINING_RUNTIMES, lookups=(INSTALLED,)),
    Check(group="training-runtime", run=runtime_of_train_job, kinds=_TRAIN_JOB),
)
