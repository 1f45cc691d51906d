"""The checks of JobSets: a submitted JobSet, the JobSet of a runtime, and the JobSet that Trainer creates from a
TrainJob.

The other modules of this package have the rules. Trainer reports a refused JobSet only in an event. A TrainJob does not
contain the JobSet. So a problem in the runtime itself is reported at the path where the TrainJob names the runtime, and
any other problem at the path of the patches. Existing PersistentVolumeClaims are not looked up.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateCreate; kubeflow/trainer#2735 for names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from webhook.facts.jobset import job_set_policies
from webhook.facts.jobset.job_set import (
    ALPHA_FEATURE,
    TARGET_EXISTS,
    invalid_label_problem,
    is_invalid_label,
    validate_network_subdomain,
    validate_replicated_jobs,
    validate_startup_policy,
    validate_success_policy,
)
from webhook.facts.jobset.job_set_policies import COORDINATOR_EXISTS
from webhook.facts.jobset.names_and_keys import (
    LONGEST_NAME,
    NameLimit,
    advise_unknown_keys,
    strictest_name_limit,
    validate_name_length,
)
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.subject import Check, Subject, group_kinds_of_types
from webhook.facts.train_job_pods import train_job_patches
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.plugins import entrypoint_config_map_name
from webhook.facts.train_job_pods.train_job_and_runtime_fields import changes_more_than_suspend
from webhook.facts.train_job_pods.types import TrainingRuntime
from webhook.rules.problem import Problem
from webhook.typed.collections import Entries, Items
from webhook.typed.job_sets import JobSet, JobSetSpec


def check_job_set(subject: Subject) -> Iterator[Problem]:
    """Yield what JobSet refuses in a JobSet."""
    sent = subject.typed(JobSet)
    yield from validate_name_length(sent.metadata, (strictest_name_limit(sent.spec),))
    yield from _without_targets_of_patch(validate_create(sent.spec), sent.spec, subject)
    yield from advise_unknown_keys(sent.metadata, sent.spec, subject.cluster_view())


def check_job_set_of_runtime(subject: Subject) -> Iterator[Problem]:
    """Yield what JobSet refuses in the JobSets that Trainer creates from a runtime. Numbers of pods are not checked,
    because TrainJobs set them.
    """
    template = subject.typed(TrainingRuntime).spec.template
    problems = validate_create(template.spec, are_pod_numbers_final=False)
    yield from _without_targets_of_patch(problems, template.spec, subject)
    yield from advise_unknown_keys(template.metadata, template.spec, subject.cluster_view())


def _without_targets_of_patch(problems: Iterator[Problem], job_set: JobSetSpec, subject: Subject) -> Iterator[Problem]:
    """Yield the problems, except missing targets in a patch.

    In a file, a JobSet without replicatedJobs is a patch, and the patched JobSet has the targets. An API server sends
    whole JobSets.
    """
    is_patch = subject.attributes.is_plain and not job_set.has("replicatedJobs")
    return (each for each in problems if not is_patch or each.code not in (TARGET_EXISTS.id, COORDINATOR_EXISTS.id))


def validate_generated_job_set(subject: Subject) -> Iterator[Problem]:
    """Yield everything that JobSet refuses in the JobSet that Trainer creates from a TrainJob and its runtime."""
    job = subject.once(merge_train_job)
    if not job.runtime.is_found or not changes_more_than_suspend(subject):
        return
    yield from validate_name_length(
        job.object.metadata, (strictest_name_limit(job.job_set), *_limits_of_flux_volume_name(job))
    )
    yield from _validate_patched_labels(Entries(job.merged.labels, subject.deadline), job)
    problems = [
        problem for problem in validate_create(_job_set_without_unknown_jobs(job)) if problem.code != ALPHA_FEATURE.id
    ]
    if problems:
        yield from _relocate_problems_to_train_job(Items(problems, subject.deadline), job)


def _limits_of_flux_volume_name(job: MergedTrainJob) -> Iterator[NameLimit]:
    """Yield the limit for the job's name that follows from the plugin flux. The plugin derives the name of a volume
    from the job's name.

    This volume name must be a DNS label.
    """
    if job.plugin == "flux" and any(replicated.name == "node" for replicated in job.replicated_jobs):
        yield LONGEST_NAME - len(entrypoint_config_map_name("")), "volume", entrypoint_config_map_name("")


def _job_set_without_unknown_jobs(job: MergedTrainJob) -> JobSetSpec:
    """Return the JobSet without replicated jobs that the runtime lacks. A patch with a wrong name adds such jobs."""
    if not job.merged.unknown:
        return job.job_set
    jobs = [replicated.json for replicated in job.replicated_jobs if (replicated.name, "") not in job.merged.unknown]
    return JobSetSpec({**job.merged.spec, "replicatedJobs": jobs}, (), job.job_set.reading)


def _validate_patched_labels(labels: Entries[str], job: MergedTrainJob) -> Iterator[Problem]:
    for key, value in labels.items():
        if is_invalid_label(key, value):
            yield invalid_label_problem(
                key, value, f"spec.{train_job_patches.name_of_patches_field(job.release)}", is_of_patch=True
            )


def _relocate_problems_to_train_job(problems: Items[Problem], job: MergedTrainJob) -> Iterator[Problem]:
    runtime = job.runtime.spec.template.spec
    of_runtime = JobSetSpec(runtime.json, (), runtime.reading)  # its paths are the paths in the merged JobSet
    own = {problem.code_found_and_message for problem in validate_create(of_runtime)}
    for problem in problems:
        is_own = problem.code_found_and_message in own
        message = f"in the JobSet of {job.runtime}, {problem.path} {problem.found_and_message}"
        where = "the patches or the runtime" if job.is_patched and not is_own else "the runtime"
        fix = f"in {where}, {problem.fix}"
        yield replace(problem, path=job.path_for_runtime_problem(is_own=is_own), found="", message=message, fix=fix)


def validate_create(job_set: JobSetSpec, *, are_pod_numbers_final: bool = True) -> Iterator[Problem]:
    """Yield everything that JobSet's webhook refuses in a JobSet spec, except the length of the name.

    Args:
        job_set: the spec.
        are_pod_numbers_final: whether the numbers of pods are final. A TrainJob may change the numbers of its runtime.
    """
    yield from validate_network_subdomain(job_set)
    yield from validate_success_policy(job_set)
    yield from job_set_policies.validate_failure_policy(job_set)
    yield from validate_startup_policy(job_set)
    yield from job_set_policies.validate_coordinator(job_set, are_pod_numbers_final=are_pod_numbers_final)
    yield from job_set_policies.validate_volume_claim_policies(job_set)
    yield from validate_replicated_jobs(job_set, are_pod_numbers_final=are_pod_numbers_final)


CHECKS: Final = (
    Check(group="job-set", run=check_job_set, kinds=group_kinds_of_types(JobSet), of_made_objects=False),
    Check(group="job-set", run=check_job_set_of_runtime, kinds=TRAINING_RUNTIMES),
    Check(group="job-set", run=validate_generated_job_set, kinds=frozenset((TRAIN_JOB,))),
)
