"""What the plugins of a Volcano Job set up for the commands of its tasks.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins: svc names its variables and files after the tasks,
with `_` for `-`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano_objects.go_flags import is_true_in_go
from webhook.facts.volcano_objects.types import Job, Task


@dataclass(frozen=True, slots=True)
class PluginSetup:
    """What the plugins of a Job set up for its commands.

    Args:
        job: the Job.
        tasks: the names of its tasks.
        files: the tasks by their names as svc writes them.
        variables: the same in capital letters.
        roles: the tasks that plugins which set variables in some tasks look for.
        has_variables: whether svc sets variables beside its files.
        pods: how many pods the Job has.
        view: compares names.
    """

    job: Job
    tasks: frozenset[str]
    files: Mapping[str, Task]
    variables: frozenset[str]
    roles: Mapping[str, Mapping[str, str]]
    has_variables: bool
    pods: int
    view: ClusterView


def read_plugin_setup(job: Job, subject: Subject) -> PluginSetup:
    """Return what the plugins of a Job set up."""
    files = {task.name.replace("-", "_"): task for task in job.spec.tasks}
    service = job.spec.plugin_flags["svc"].values if "svc" in job.spec.plugins else {}
    return PluginSetup(
        job=job,
        tasks=frozenset(job.spec.tasks_by_name),
        files=files,
        variables=frozenset(map(str.upper, files)),
        roles={name: job.spec.tasks_by_role(name) for name in ("mpi", "pytorch") if name in job.spec.plugins},
        has_variables=is_true_in_go(service.get("inject-hosts-env", "true")),
        pods=job.spec.pod_count,
        view=subject.cluster_view(),
    )
