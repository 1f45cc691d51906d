"""Everything that Volcano's webhook refuses of a new Job.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano import (
    dependencies,
    job_validation,
    lifecycle_policies,
    plugins,
    queue_reference,
    task_templates,
    volumes,
)
from webhook.facts.volcano.job import Job
from webhook.problem import Problem

_VALIDATIONS: Final = (
    job_validation.validate_tasks,
    plugins.validate_plugins,
    job_validation.validate_job_topology,
    lifecycle_policies.validate_policies,
    job_validation.validate_job_name,
    task_templates.validate_task_templates,
    job_validation.validate_min_available,
    volumes.validate_volumes,
    dependencies.validate_dependencies,
)


def validate_create(job: Job, subject: Subject) -> Iterator[Problem]:
    """What is refused of a Job, whose queue is looked up."""
    for validate in _VALIDATIONS:
        yield from validate(job)
    yield from queue_reference.validate_queue(job, subject)
