"""The Volcano Job that the webhook validates: as sent, or from the template of a CronJob or a JobTemplate.

Knows where its spec stands and what that defaults to, and no rule.
"""

from __future__ import annotations

from typing import Final

from webhook.attributes import Operation
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import kinds
from webhook.facts.volcano_objects.defaults import job_spec_with_webhook_defaults, object_with_defaults
from webhook.facts.volcano_objects.types import CronJob, Job, JobSpec, JobTemplate
from webhook.schema import decode_object
from webhook.typed.view import ReadingContext

RUN_SUFFIX: Final = "-01234567"
"""A suffix as long as that of a CronJob's Jobs: a dash and the minutes since 1970 (cronjob_controller getJobName)."""


def read_job(subject: Subject) -> Job:
    """Return the Job of an object, or the one that it creates; call it through `Subject.once`."""
    if subject.group_kind == kinds.JOB:
        return Job.of(subject.once(object_with_defaults), (), subject.reading_context)
    name = subject.typed(CronJob).name if subject.group_kind == kinds.CRON_JOB else ""
    return _job_with_defaults(spec_without_defaults(subject), f"{name}{RUN_SUFFIX}" if name else "")


def spec_without_defaults(subject: Subject) -> JobSpec:
    """Return the spec of the Job as it was sent, without defaults."""
    if subject.group_kind == kinds.CRON_JOB:
        return subject.typed(CronJob).spec.job_template.spec
    if subject.group_kind == kinds.JOB_TEMPLATE:
        return subject.typed(JobTemplate).spec
    return subject.typed(Job).spec


def job_of_template(template: JobTemplate, name: str) -> Job:
    """Return the Job that a controller creates from a JobTemplate of the cluster."""
    deadline = template.reading.deadline
    decoded = decode_object(template.json, JobTemplate.gvk, deadline)
    return _job_with_defaults(
        JobTemplate.of(decoded.value, (), ReadingContext(deadline, frozenset(decoded.unfilled))).spec, name
    )


def _job_with_defaults(sent: JobSpec, name: str) -> Job:
    """Return a Job with a spec, as Volcano's webhook changes it."""
    spec = job_spec_with_webhook_defaults(sent.json, sent.reading.deadline)
    return Job.of({"metadata": {"name": name}, "spec": spec}, sent.at[:-1], sent.reading)


def is_create_request(subject: Subject) -> bool:
    """Return whether the object is created, and not updated."""
    return subject.attributes.operation is Operation.CREATE
