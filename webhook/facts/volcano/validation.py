"""All rules of Volcano's webhook for a new Job.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.subject import Subject
from webhook.facts.volcano import job_scheduling
from webhook.facts.volcano.hyper_node import validate_network_topology
from webhook.facts.volcano.job import validate_min_available, validate_tasks
from webhook.facts.volcano.job_dependencies_and_deadlocks import validate_dependencies
from webhook.facts.volcano.job_events_actions_and_exit_codes import validate_policies
from webhook.facts.volcano.job_names import validate_job_name
from webhook.facts.volcano.job_plugins import check_plugins_exist, validate_mpi_master
from webhook.facts.volcano.job_scheduling import JOB_QUEUE_RULES
from webhook.facts.volcano.job_template import validate_task_templates, validate_volumes
from webhook.facts.volcano.queue_tree import validate_queue
from webhook.facts.volcano_objects.types import Job
from webhook.rules.problem import Problem


def validate_create(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield the problems that the webhook would report about a Job, including its queue."""
    yield from validate_tasks(job)
    yield from check_plugins_exist(job)
    yield from validate_mpi_master(job)
    yield from validate_network_topology(job.spec.network_topology, job_scheduling.JOB_TIER_RULES)
    yield from validate_policies(job)
    yield from validate_job_name(job)
    yield from validate_task_templates(job)
    if job.spec.tasks:
        yield from validate_min_available(job)
    yield from validate_volumes(job)
    yield from validate_dependencies(job)
    yield from validate_queue(job.spec.queue, job.spec.path("queue"), subject, JOB_QUEUE_RULES)
