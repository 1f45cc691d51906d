"""The checks of JobSets: one that is sent, the one of a runtime, and the one that Trainer makes of a TrainJob."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check, group_kinds_of_types
from webhook.facts.jobset.generated_job_set import validate_generated_job_set
from webhook.facts.jobset.name_length import strictest_name_limit, validate_name_length
from webhook.facts.jobset.unknown_keys import advise_unknown_keys
from webhook.facts.jobset.validation import validate_create
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.types import TrainingRuntime
from webhook.problem import Problem
from webhook.typed.job_sets import JobSet


def check_job_set(subject: Subject) -> Iterator[Problem]:
    """Yield what JobSet refuses of a JobSet."""
    sent = subject.typed(JobSet)
    yield from validate_name_length(sent.metadata, (strictest_name_limit(sent.spec),))
    yield from validate_create(sent.spec)
    yield from advise_unknown_keys(sent.metadata, sent.spec, subject.cluster_view())


def check_job_set_of_runtime(subject: Subject) -> Iterator[Problem]:
    """Yield what JobSet refuses of the JobSet of every TrainJob of a runtime, whose pods a TrainJob counts."""
    template = subject.typed(TrainingRuntime).spec.template
    yield from validate_create(template.spec, is_counted=False)
    yield from advise_unknown_keys(template.metadata, template.spec, subject.cluster_view())


CHECKS: Final = (
    Check(group="job-set", run=check_job_set, kinds=group_kinds_of_types(JobSet), of_made_objects=False),
    Check(group="job-set", run=check_job_set_of_runtime, kinds=TRAINING_RUNTIMES),
    Check(group="job-set", run=validate_generated_job_set, kinds=frozenset((TRAIN_JOB,))),
)
