"""What JobSet refuses of the JobSet that Trainer makes of a TrainJob, which Trainer tells in an event alone.

The JobSet stands nowhere in the TrainJob: a problem that the runtime has by itself is told where the TrainJob names it,
another where it has its patches. Sources: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go;
kubeflow/trainer#2735 for names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook.attributes import JSON
from webhook.facts.jobset.job_set import JobSet, problem
from webhook.facts.jobset.name_length import MOST, limit, validate_name
from webhook.facts.jobset.replicated_jobs import LABEL, invalid_label
from webhook.facts.jobset.validation import validate_create
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import overlays
from webhook.facts.train_job_pods.flux_pods import entrypoint
from webhook.facts.train_job_pods.nodes import name_of
from webhook.facts.train_job_pods.spec_changes import changes_more_than_suspend
from webhook.facts.train_job_pods.train_job import TrainJob, train_job
from webhook.names import label_value, qualified_name
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

_ADVICE = ("job-set/alpha-feature",)
"""What is told of the runtime alone."""


def validate_generated_job_set(subject: Subject) -> Iterator[Problem]:
    """Everything that JobSet refuses of a TrainJob on its runtime."""
    job = subject.once(train_job)
    if not job.runtime.is_found or not changes_more_than_suspend(subject):
        return
    yield from validate_name(job.object, (limit(job.merged.spec), *_volumes(job)))
    yield from _validate_labels(job)
    problems = [each for each in _problems(_known(job), job) if each.code not in _ADVICE]
    if problems:
        yield from _told(problems, job)


def _volumes(job: TrainJob) -> Iterator[tuple[int, str, str]]:
    """What flux names a volume, which is a DNS label."""
    if job.plugin == "flux" and any(name_of(each) == "node" for each in job.jobs):
        yield MOST - len(entrypoint("")), "volume", entrypoint("")


def _known(job: TrainJob) -> JSON:
    """The JobSet without the replicated jobs that exist only because a patch misspells their names."""
    jobs = [each for each in job.jobs if (name_of(each), "") not in job.merged.unknown]
    return {**job.merged.spec, "replicatedJobs": jobs} if len(jobs) < len(job.jobs) else job.merged.spec


def _problems(spec: JSON, job: TrainJob) -> Iterator[Problem]:
    yield from validate_create(JobSet(spec=spec, deadline=job.deadline))


def _validate_labels(job: TrainJob) -> Iterator[Problem]:
    """The labels that patches give the JobSet."""
    for key, value in job.deadline.each(job.merged.labels.items()):
        if (label_value(value) or qualified_name(key)) and not is_placeholder(key + value):
            part, message = invalid_label(key, value)
            message = f"set label `{key}: {value}` of the JobSet, but `{part}` {message}"
            yield problem("label", f"spec.{overlays.field(job.release)}", message, f"in the patch, {LABEL}")


def _told(problems: list[Problem], job: TrainJob) -> Iterator[Problem]:
    own = {each.without_path for each in _problems(get(job.runtime.spec, ("template", "spec"), {}), job)}
    for each in job.deadline.paced(problems):
        is_own = each.without_path in own
        said = f"in the JobSet of {job.runtime}, {each.path} {each.said}"
        is_patched = bool(job.spec.get(overlays.field(job.release))) and not is_own
        fix = f"in {'the patches or the runtime' if is_patched else 'the runtime'}, {each.fix}"
        yield replace(each, path=job.origin(is_own=is_own), found="", message=said, fix=fix)
