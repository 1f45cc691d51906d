"""Rules of Kueue's webhook for a Job: partial admission, and completions that equal parallelism.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.job_pod_group_and_managed_label import _NUMBER
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.objects import (
    BOOLEANS,
    ELASTIC,
    EQUAL_COMPLETIONS,
    MIN_PARALLELISM,
)
from webhook.facts.subject import Subject
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.jobs import Job, JobSpec
from webhook.typed.objects import Metadata

KUEUE_JOB_MIN_PARALLELISM: Final = KUEUE_JOB.rule(
    "kueue-job/min-parallelism",
    title="The least parallelism of a Job is above 0 and below its pods.",
    why="Kueue admits the Job with fewer pods, and at least with so many.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/job/job_webhook.go",
    function="validatePartialAdmissionCreate",
    refused_on_updates="",
)
KUEUE_JOB_EQUAL_COMPLETIONS: Final = KUEUE_JOB.rule(
    "kueue-job/equal-completions",
    title="A Job whose completions follow its parallelism is Indexed and has as many of both.",
    why="Kueue changes both together when it admits the Job with fewer pods.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/job/job_webhook.go",
    function="validateSyncCompletionCreate",
)


def validate_partial_admission(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that validatePartialAdmissionCreate of batch/job would report."""
    if how.framework == "batch/job":
        job = subject.typed(Job)
        metadata = subject.metadata
        yield from _validate_min_parallelism(job, metadata)
        yield from _validate_equal_completions(job.spec, metadata)


def _validate_min_parallelism(job: Job, metadata: Metadata) -> Iterator[Problem]:
    notes, count = metadata.annotations, job.pods
    given = notes.get(MIN_PARALLELISM)
    if given is None or is_placeholder(given):
        return
    if not _NUMBER.fullmatch(given) or not 0 < int(given) < count:
        message = f"must be a whole number above 0 and below {count}, the number of pods of the Job"
        fix, number = "remove the annotation", "1" if count == 2 else f"1 to {count - 1}"
        yield KUEUE_JOB_MIN_PARALLELISM.problem(
            metadata.path("annotations", MIN_PARALLELISM),
            message,
            f"set {number}, or {fix}" if count > 1 else fix,
            given,
        )
    elif notes.get(ELASTIC) == "true":
        message = "must not be set on an elastic job, which changes its size by itself"
        yield KUEUE_JOB_MIN_PARALLELISM.problem(
            metadata.path("annotations", MIN_PARALLELISM), message, "remove one of the two annotations", given
        )


def _validate_equal_completions(spec: JobSpec, metadata: Metadata) -> Iterator[Problem]:
    """Yield the problems that validateSyncCompletionCreate would report."""
    given = metadata.annotations.get(EQUAL_COMPLETIONS)
    if given is None or is_placeholder(given):
        return
    path = metadata.path("annotations", EQUAL_COMPLETIONS)
    if given not in BOOLEANS:
        yield KUEUE_JOB_EQUAL_COMPLETIONS.problem(path, "must be true or false", "set true or false", given)
    elif BOOLEANS[given] and spec.completion_mode != "Indexed":
        message = "is not allowed on a Job whose completionMode is not Indexed"
        yield KUEUE_JOB_EQUAL_COMPLETIONS.problem(path, message, "set spec.completionMode to Indexed", given)
    elif BOOLEANS[given] and spec.completions != spec.parallelism:
        must = f"must be {spec.parallelism}, as spec.parallelism,"
        message = f"{must} because the annotation {EQUAL_COMPLETIONS} is true"
        fix = "set both to the same number"
        yield KUEUE_JOB_EQUAL_COMPLETIONS.problem(spec.path("completions"), message, fix, spec.completions)
