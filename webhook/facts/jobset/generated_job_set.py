"""What JobSet refuses of the JobSet that Trainer makes of a TrainJob, which Trainer tells in an event alone.

The JobSet stands nowhere in the TrainJob: a problem that the runtime has by itself is told where the TrainJob names it,
another where it has its patches. Sources: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go;
kubeflow/trainer#2735 for names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook.facts.jobset.alpha_features import ALPHA_FEATURE
from webhook.facts.jobset.job_set import invalid_label_problem, is_invalid_label
from webhook.facts.jobset.name_length import MOST, Limit, strictest_name_limit, validate_name_length
from webhook.facts.jobset.validation import validate_create
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import overlays
from webhook.facts.train_job_pods.flux_pods import entrypoint_config_map_name
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.spec_changes import changes_more_than_suspend
from webhook.problem import Problem
from webhook.typed.collections import Entries, Items
from webhook.typed.job_sets import JobSetSpec

"""What is told of the runtime alone."""


def validate_generated_job_set(subject: Subject) -> Iterator[Problem]:
    """Yield everything that JobSet refuses of a TrainJob on its runtime."""
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


def _limits_of_flux_volume_name(job: MergedTrainJob) -> Iterator[Limit]:
    """Yield the limit of the name that flux gives a volume, which is a DNS label."""
    if job.plugin == "flux" and any(replicated.name == "node" for replicated in job.replicated_jobs):
        yield MOST - len(entrypoint_config_map_name("")), "volume", entrypoint_config_map_name("")


def _job_set_without_unknown_jobs(job: MergedTrainJob) -> JobSetSpec:
    """Return the JobSet without the replicated jobs that exist only because a patch misspells their names."""
    if not job.merged.unknown:
        return job.job_set
    jobs = [replicated.json for replicated in job.replicated_jobs if (replicated.name, "") not in job.merged.unknown]
    return JobSetSpec({**job.merged.spec, "replicatedJobs": jobs}, (), job.job_set.reading)


def _validate_patched_labels(labels: Entries[str], job: MergedTrainJob) -> Iterator[Problem]:
    """Check the labels that patches give the JobSet."""
    for key, value in labels.items():
        if is_invalid_label(key, value):
            yield invalid_label_problem(
                key, value, f"spec.{overlays.name_of_patches_field(job.release)}", is_of_patch=True
            )


def _relocate_problems_to_train_job(problems: Items[Problem], job: MergedTrainJob) -> Iterator[Problem]:
    runtime = job.runtime.spec.template.spec
    of_runtime = JobSetSpec(runtime.json, (), runtime.reading)  # with the same paths as the merged one
    own = {problem.code_found_and_message for problem in validate_create(of_runtime)}
    for problem in problems:
        is_own = problem.code_found_and_message in own
        message = f"in the JobSet of {job.runtime}, {problem.path} {problem.found_and_message}"
        where = "the patches or the runtime" if job.is_patched and not is_own else "the runtime"
        fix = f"in {where}, {problem.fix}"
        yield replace(problem, path=job.path_for_runtime_problem(is_own=is_own), found="", message=message, fix=fix)
