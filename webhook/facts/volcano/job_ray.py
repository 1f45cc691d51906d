"""Rules for tasks that a plugin sets up differently from how they are written: single pods, and containers of Ray.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework: pytorch gives every pod of
the master rank 0, and ray looks for containers by name and puts `ray start` in the place of their commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.job_plugins import warn_of_several_master_pods
from webhook.facts.volcano_objects.types import Job, Task
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.pods import Container

RAY_CONTAINER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ray-container",
    title="The plugin ray finds the containers that it starts Ray in.",
    why=(
        "They are called head and worker, unless its arguments name others. It leaves the commands of other "
        "containers as they are."
    ),
    refused_by="nobody; Ray does not start",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/ray/ray.go",
    function="OnPodCreate",
    fails="start",
)
RAY_COMMAND: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ray-command",
    title="The containers of the plugin ray have no command of their own.",
    why="The plugin puts `ray start` in its place, so the program that it names is never run.",
    refused_by="nobody; the command is never run",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/ray/ray.go",
    function="OnPodCreate",
    severity="high",
)

_RAY_IMAGE: Final = re.compile(r"(?:^|[/_-])ray(?:[-_:@]|$|/ray)")
_RAY_START: Final = re.compile(r"\bray start\b")


def warn_of_tasks_with_plugin_roles(job: Job) -> Iterator[Problem]:
    """Yield the problems of the tasks that plugins find by their roles."""
    yield from warn_of_several_master_pods(job)
    if "ray" in job.spec.plugins:
        wanted = {"headContainer": "head", "workerContainer": "worker", **job.spec.tasks_by_role("ray")}
        for role in ("head", "worker"):
            task = job.spec.tasks_by_name.get(wanted[role])
            if task is not None:
                yield from _check_task_starts_ray(task, wanted[f"{role}Container"], role)


def _check_task_starts_ray(task: Task, name: str, role: str) -> Iterator[Problem]:
    """Yield the problems of the container in which the plugin starts Ray."""
    chosen = next((container for container in task.pod_spec.containers if container.name == name), None)
    if chosen is not None:
        yield from _check_command_replaced_by_ray(chosen)
    elif not is_placeholder(name):
        yield from _check_ray_container_name(task, name, role)


def _check_ray_container_name(task: Task, name: str, role: str) -> Iterator[Problem]:
    for container in task.pod_spec.containers:
        if container.is_found_in(_RAY_IMAGE, (container.image,)) and not container.runs(_RAY_START):
            message = f"does not start Ray because the plugin ray sets only the command of a container `{name}`"
            fix = f"rename the container to {name}, or add --{role}Container={container.name} to the plugin"
            yield RAY_CONTAINER.problem(container.path("name"), message, fix, container.name)
            return


def _check_command_replaced_by_ray(container: Container) -> Iterator[Problem]:
    if container.command and not container.runs(_RAY_START):
        message = "is never run because the plugin ray replaces it with `ray start`"
        fix = "start the program with a Ray job, or in another container"
        yield RAY_COMMAND.problem(container.path("command"), message, fix)
