"""Rules for the scheduler and the priority of a Job.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job createJobPod.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.scheduling.priority_classes import ALWAYS_THERE
from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano_objects.types import Job
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

OTHER_SCHEDULER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/other-scheduler",
    title="All pods of a Job are placed by its scheduler.",
    why=(
        "A pod template that names another scheduler takes its pods out of the gang, which then starts without them "
        "or never."
    ),
    refused_by="nobody; the gang is incomplete",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="createJobPod",
    fails="pending",
)
VOLCANO_JOB_PRIORITY_CLASS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/priority-class",
    title="The PriorityClass of a Job exists.",
    why="Kubernetes refuses pods whose class does not exist.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/priority",
    fails="controller",
)
_KUBERNETES: Final = "default-scheduler"


def warn_of_other_schedulers(job: Job) -> Iterator[Problem]:
    """Yield pods that another scheduler places, which are not part of the gang."""
    of_job = job.spec.scheduler_name
    if of_job == _KUBERNETES:
        message = (
            "is the scheduler of Kubernetes, which starts the pods one by one, so the queue and minAvailable have no "
            "effect"
        )
        yield OTHER_SCHEDULER.problem(job.spec.path("schedulerName"), message, "remove schedulerName", of_job)
        return
    for task in job.spec.tasks:
        other = task.pod_spec.scheduler_name or of_job
        if other != of_job and not is_placeholder(other + of_job):
            message = (
                f"takes these pods from scheduler `{of_job}` of the job, which starts the pods of the job together"
            )
            yield OTHER_SCHEDULER.problem(task.pod_spec.path("schedulerName"), message, "remove schedulerName", other)


def warn_of_missing_priority_class(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield a PriorityClass of the Job that does not exist."""
    name = job.spec.priority_class_name
    if not name or name in ALWAYS_THERE or is_placeholder(name):
        return
    view, path = subject.cluster_view(), job.spec.path("priorityClassName")
    if view.get(PRIORITY_CLASS, name, namespaced=False) is not None:
        return
    if not (view.is_whole(PRIORITY_CLASS) or subject.once(read_queues).is_whole):
        yield VOLCANO_JOB_PRIORITY_CLASS.problem(path, missing=view.missing_objects_by_field()[""])
        return
    message = "names a PriorityClass that does not exist, so Kubernetes refuses every pod"
    yield VOLCANO_JOB_PRIORITY_CLASS.problem(path, message, "create the class, or correct the name", name)
