"""Tasks that a plugin sets up in another way than they are written: one pod of a role, and containers of Ray.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework: pytorch gives every pod of
the master rank 0, and ray looks for containers by name and puts `ray start` in the place of their commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.pods.containers import Container, containers
from webhook.facts.values import text
from webhook.facts.volcano.job import Job, Task, problem
from webhook.facts.volcano.plugins import roles
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

_ALONE: Final[Mapping[str, tuple[str, str]]] = {
    "mpi": ("master", "every pod would start the whole program on all workers"),
    "pytorch": ("master", "every pod would get rank 0"),
    "ray": ("head", "the workers join only the first pod"),
    "tensorflow": ("chief", "TensorFlow allows only one chief"),
}
"""The role of each plugin that one pod has, and what comes of more."""
_RAY_IMAGE: Final = re.compile(r"(?:^|[/_-])ray(?:[-_:@]|$|/ray)")
_RAY_START: Final = re.compile(r"\bray start\b")


def advise_tasks(job: Job) -> Iterator[Problem]:
    """The tasks that plugins find by their roles."""
    places = job.places()
    for plugin, (role, outcome) in _ALONE.items():
        task = places.get(roles(job, plugin)[role]) if plugin in job.plugins else None
        if task is not None and task.replicas > 1:
            message = f"must be 1 because the task is the {role} of the plugin {plugin}, and {outcome}"
            yield problem("plugin-one-pod", (*task.at, "replicas"), message, "set 1", task.replicas)
    if "ray" in job.plugins:
        wanted = {"headContainer": "head", "workerContainer": "worker", **roles(job, "ray")}
        for role in ("head", "worker"):
            if (task := places.get(wanted[role])) is not None:
                yield from _ray(task, wanted[f"{role}Container"], role, job)


def _ray(task: Task, name: str, role: str, job: Job) -> Iterator[Problem]:
    """The container in which the plugin starts Ray."""
    known = [each for each in containers(task.value.get("template"), job.deadline.each) if not each.init]
    chosen = next((each for each in known if each.name == name), None)
    if chosen is None:
        for each in known:
            if _RAY_IMAGE.search(text(each.value.get("image"))) and not _starts_ray(each) and not is_placeholder(name):
                message = f"does not start Ray because the plugin ray sets only the command of a container `{name}`"
                at = (*task.at, "template", *each.path, "name")
                fix = f"rename the container to {name}, or add --{role}Container={each.name} to the plugin"
                yield problem("ray-container", at, message, fix, each.name)
                return
    elif chosen.value.get("command") and not _starts_ray(chosen):
        message = "is never run because the plugin ray replaces it with `ray start`"
        at = (*task.at, "template", *chosen.path, "command")
        yield problem("ray-command", at, message, "start the program with a Ray job, or in another container")


def _starts_ray(container: Container) -> bool:
    return _RAY_START.search(" ".join(container.words)) is not None
