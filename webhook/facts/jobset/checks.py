"""The checks of JobSets: one that is sent, the one of a runtime, and the one that Trainer makes of a TrainJob."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.jobset.generated_job_set import validate_generated_job_set
from webhook.facts.jobset.job_set import JobSet
from webhook.facts.jobset.name_length import limit, validate_name
from webhook.facts.jobset.validation import validate_create
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.subject import Subject
from webhook.paths import get
from webhook.problem import Problem

_RUNTIME: Final = ("spec", "template", "spec")


def job_set(subject: Subject) -> Iterator[Problem]:
    """What JobSet refuses of a JobSet."""
    spec = get(subject.object, ("spec",), {})
    yield from validate_name(subject.object, (limit(spec),))
    yield from validate_create(JobSet(spec=spec, at=("spec",), deadline=subject.deadline))


def runtime(subject: Subject) -> Iterator[Problem]:
    """What JobSet refuses of the JobSet of every TrainJob of a runtime, whose pods a TrainJob counts."""
    spec = get(subject.object, _RUNTIME, {})
    yield from validate_create(JobSet(spec=spec, at=_RUNTIME, is_counted=False, deadline=subject.deadline))


CHECKS: Final = (
    Check(group="job-set", run=job_set, kinds=frozenset((("jobset.x-k8s.io", "JobSet"),))),
    Check(
        group="job-set",
        run=runtime,
        kinds=TRAINING_RUNTIMES,
    ),
    Check(group="job-set", run=validate_generated_job_set, kinds=frozenset((TRAIN_JOB,))),
)
