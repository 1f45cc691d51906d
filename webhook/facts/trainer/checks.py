"""The checks of Kubeflow Trainer's kinds, and of the pods that a TrainJob gets from its runtime.

The pods of a TrainJob are validated by the API server's rules for claims, volumes and images. The TrainJob does not
contain these pods. So a problem in the runtime itself is reported at the place where the TrainJob names the runtime,
and any other problem at the patches.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.releases import Release
from webhook.facts.dra.pod_claims import LOOKUPS as DEVICES
from webhook.facts.jobset.job_set_policies import claim_template_names
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.pods.checks import validate_pod_resources
from webhook.facts.priority_classes import PRIORITY_CLASS_LOOKUP
from webhook.facts.subject import Check, Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.releases import UNKNOWN_RELEASE, find_trainer_release, read_trainer_installation
from webhook.facts.train_job_pods.train_job_and_runtime_fields import (
    WORDS_FOR_PROCESSES,
    FieldRules,
    changes_more_than_suspend,
    check_fields_exist_in_release,
    older_release_of_fields,
)
from webhook.facts.train_job_pods.types import INSTALLED, TrainingRuntime
from webhook.facts.train_job_pods.virtual_pods import run_check_on_virtual_pods
from webhook.facts.trainer import (
    train_job,
    train_job_changes,
    train_job_claims,
    train_job_gang,
    train_job_launcher,
    train_job_processes_and_gpus,
    train_job_steps,
    training_runtime,
    training_runtime_steps,
)
from webhook.facts.trainer.generated_pods import GeneratedPods, source_fields_of, sources_by_name
from webhook.facts.trainer.train_job import TRAIN_JOB_FIELD_RULES, check_image_is_set
from webhook.facts.trainer.train_job_claims import (
    UNUSED_CLAIM,
    advise_unused_claims,
    check_claims_are_declared,
    claim_source_problem,
    device_claims_of_training_node,
)
from webhook.facts.trainer.train_job_steps import validate_mounts, validate_volume_sources
from webhook.facts.trainer.train_job_torchtune import validate_torchtune
from webhook.facts.trainer.training_runtime import RUNTIME_FIELD_RULES, TORCH_ADDRESS
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec

_TRAIN_JOB: Final = frozenset((TRAIN_JOB,))
_WITHOUT_RUNTIME: Final = (
    train_job.validate_name,
    train_job.validate_runtime_kind,
    train_job.validate_managed_by,
    train_job_claims.check_claims_in_resources_per_node,
    train_job.validate_source_scheme,
    train_job_claims.validate_resource_claims_per_node,
    train_job.validate_patch_managers,
    train_job.check_patch_env_and_repeated_jobs,
    train_job_processes_and_gpus.check_num_nodes_not_zero,
)
_ON_RUNTIME: Final = (
    train_job_steps.validate_initializer_step,
    train_job_steps.check_trainer_fields_reach_container,
    train_job_processes_and_gpus.validate_ignored_nodes,
    train_job.validate_reserved_env,
    train_job_processes_and_gpus.validate_processes,
    train_job_processes_and_gpus.validate_flux_nodes,
    train_job_launcher.validate_launcher_as_node,
    train_job_processes_and_gpus.check_launcher_as_second_node,
    train_job_launcher.validate_workers,
    train_job.check_trainer_set_for_several_nodes,
    validate_torchtune,
    train_job_gang.validate_volcano_queue,
    train_job_gang.validate_gang,
)


def check_train_job_without_runtime(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a TrainJob that do not depend on its runtime."""
    job = subject.once(merge_train_job)
    for validate in _WITHOUT_RUNTIME:
        yield from validate(job)
    if subject.attributes.is_decoded or older_release_of_fields(subject) is None:
        yield from train_job_processes_and_gpus.validate_num_proc_per_node(job)
    elif job.object.json is subject.object and job.trainer.num_proc_per_node in WORDS_FOR_PROCESSES:
        yield train_job_processes_and_gpus.wrong_processes_problem(missing=(UNKNOWN_RELEASE,))
    if job.object.json is not subject.object:  # the release drops some fields
        rules = TRAIN_JOB_FIELD_RULES
        yield from _check_fields(subject, "TrainJob", job.release, rules)


def _check_fields(subject: Subject, kind: str, release: Release, rules: FieldRules) -> Iterator[Problem]:
    is_sent, is_named = subject.attributes.is_decoded, subject.once(read_trainer_installation).is_named
    yield from check_fields_exist_in_release(
        subject.object, kind, release, rules, subject.deadline, is_sent=is_sent, is_named=is_named
    )


def check_train_job_on_runtime(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a TrainJob together with its runtime."""
    if not changes_more_than_suspend(subject):
        return
    job = subject.once(merge_train_job)
    yield from train_job.validate_runtime_exists(job, subject)
    if job.runtime.is_found:
        yield from job.merged.problems
        for validate in _ON_RUNTIME:
            yield from validate(job)
        yield from validate_pods(subject)
        yield from train_job_gang.validate_priority_class(job, subject)
    kept = [claim for claim in subject.once(device_claims_of_training_node) if not claim.is_dropped]
    yield from train_job_processes_and_gpus.advise_processes(subject, kept)


def check_generated_pod_resources(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that Kubernetes would report about the resources of the pods that Trainer creates."""
    yield from run_check_on_virtual_pods(subject, validate_pod_resources)


def check_runtime_of_train_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the runtime that a TrainJob names, after the merge of the patches."""
    job = subject.once(merge_train_job)
    if not job.runtime.is_found or not changes_more_than_suspend(subject):
        return
    yield from training_runtime.advise_deprecated_runtime(job)
    problems = (
        *training_runtime.validate_plugins(job.runtime.spec.ml_policy, job.merged.patched, job.release),
        *training_runtime.check_token_volume_conflict(job.merged.patched),
    )
    for problem in problems:
        if problem.code != TORCH_ADDRESS.id or (job.number_of_nodes > 1 and job.trainer):
            yield _relocate_problem_to_runtime_ref(problem, job)


def _relocate_problem_to_runtime_ref(problem: Problem, job: MergedTrainJob) -> Problem:
    """Return a problem of the runtime as a problem of the TrainJob."""
    message = f"in {job.runtime}, {problem.path} {problem.found_and_message}"
    return replace(problem, path="spec.runtimeRef", found="", message=message, fix=f"in the runtime, {problem.fix}")


def check_train_job_update(subject: Subject) -> Iterator[Problem]:
    """Yield changes of a TrainJob that the API server, Trainer or JobSet refuses."""
    if subject.old_object is None:
        return
    yield from train_job_changes.validate_immutable_fields(subject)
    yield from train_job_changes.validate_immutable_patches(subject)
    yield from train_job_changes.check_patch_changes_while_running(subject)
    yield from train_job_changes.check_changes_that_job_set_rejects(subject)


def validate_training_runtime(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a TrainingRuntime or ClusterTrainingRuntime."""
    runtime, release = subject.typed(TrainingRuntime), find_trainer_release(subject)
    if not training_runtime.is_ignored_by_trainer(subject):
        yield from training_runtime_steps.validate_steps(runtime.spec, release)
    yield from training_runtime.validate_ml_policy(runtime.spec.ml_policy, release)
    yield from training_runtime.validate_plugins(runtime.spec.ml_policy, runtime.spec.template.spec, release)
    yield from training_runtime_steps.validate_job_name_length(runtime.spec, release)
    if subject.old_object is not None:
        yield from training_runtime.validate_immutable_fields(subject)
    yield from _warn_of_runtime_settings(runtime, subject)
    kind = subject.group_kind[1]
    yield from _check_fields(subject, kind, release, RUNTIME_FIELD_RULES)


def _warn_of_runtime_settings(runtime: TrainingRuntime, subject: Subject) -> Iterator[Problem]:
    spec, release = runtime.spec, find_trainer_release(subject)
    yield from training_runtime.advise_deprecation(runtime)
    yield from training_runtime_steps.warn_of_missing_trainer_step(spec)
    if subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime":
        yield from training_runtime_steps.advise_overlooked_steps(spec)
    yield from training_runtime.warn_of_missing_ml_policy(spec, release)
    yield from training_runtime.advise_plugin_variables(spec)
    yield from training_runtime_steps.advise_initializer_mounts(spec, release)
    yield from training_runtime.check_token_volume_conflict(spec.template.spec)
    yield from training_runtime_steps.advise_gangs(spec)


def validate_pods(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the pods of all replicated jobs: fields that the API server refuses, and unused claims."""
    job = subject.once(merge_train_job)
    problems = list(_problems_of_pods(job.job_set, subject))
    if problems:
        of_runtime = set(_problems_of_pods(job.runtime.spec.template.spec, subject))
        for refusal in Items(problems, subject.deadline):
            is_own = refusal in of_runtime
            is_unused = refusal.code == UNUSED_CLAIM.id
            fix = f"in the runtime, {refusal.fix}" if is_own and is_unused else refusal.fix
            yield replace(refusal, path=job.path_for_runtime_problem(is_own=is_own), fix=fix)


def _problems_of_pods(job_set: JobSetSpec, subject: Subject) -> Iterator[Problem]:
    job, shared = subject.once(merge_train_job), claim_template_names(job_set)
    before = {replicated.name: replicated for replicated in job.runtime.replicated_jobs}
    for replicated in job_set.replicated_jobs:
        if (replicated.name, "") not in job.merged.unknown:
            pods = GeneratedPods(replicated, before.get(replicated.name), job)
            yield from _validate_sources(pods)
            yield from _validate_containers(pods, shared)
            yield from advise_unused_claims(pods, subject)


def _validate_sources(pods: GeneratedPods) -> Iterator[Problem]:
    """Yield volumes and claims with several sources, and claims with no source."""
    yield from validate_volume_sources(pods)
    wrong = [claim for claim in pods.spec.resource_claims if len(source_fields_of(claim)) != 1]
    before = sources_by_name(pods.before.pod.resource_claims) if wrong and pods.before is not None else {}
    for claim in wrong:
        yield claim_source_problem(claim, before, pods)


def _validate_containers(pods: GeneratedPods, shared: Collection[str]) -> Iterator[Problem]:
    mountable = {volume.name for volume in pods.spec.volumes}.union(shared)
    declared = {claim.name for claim in pods.spec.resource_claims}
    for container in pods.spec.all_containers():
        yield from check_claims_are_declared(container, declared, pods)
        if (pods.replicated.name, container.name) not in pods.job.merged.unknown:
            yield from check_image_is_set(container, pods)
            yield from validate_mounts(container, mountable, pods)


CHECKS: Final = (
    Check(group="train-job", run=check_train_job_without_runtime, kinds=_TRAIN_JOB),
    Check(
        group="train-job", run=check_train_job_on_runtime, kinds=_TRAIN_JOB, lookups=(*DEVICES, PRIORITY_CLASS_LOOKUP)
    ),
    Check(group="train-job", run=check_generated_pod_resources, kinds=_TRAIN_JOB),
    Check(group="train-job-changes", run=check_train_job_update, kinds=_TRAIN_JOB, lookups=train_job_changes.LOOKUPS),
    Check(group="training-runtime", run=validate_training_runtime, kinds=TRAINING_RUNTIMES, lookups=INSTALLED),
    Check(group="training-runtime", run=check_runtime_of_train_job, kinds=_TRAIN_JOB),
)
