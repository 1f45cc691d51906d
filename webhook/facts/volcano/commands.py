"""Reads the commands of a Job: their variables, and the files in which the plugin svc lists the hosts of each task.

Commands are read as texts, never run. Variables that the command itself sets are left out. If a command reads a script,
the variables of the script are not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.command import LaunchedProgram, cached_launch_of_json
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects.types import Job, Task
from webhook.typed.collections import Items
from webhook.typed.pods import Container

_READ: Final = re.compile(r"(?<![$\\])\$([{(]?)([A-Z][A-Z0-9_]*)(:?[-=+?])?")
_ASSIGNED: Final = re.compile(r"\b([A-Z][A-Z0-9_]*)\+?=")
_READ_INTO: Final = re.compile(r"\b(?:read|for|mapfile|readarray) (?:-\w++ )*+(?:([A-Z][A-Z0-9_]*)\b)?")
"""Matches a command that sets a variable. The name of the variable is optional in the pattern. Otherwise, a failed
match would read the options again.
"""
_SCRIPT: Final = re.compile(r"(?:^|[\s;&|(])(?:source|\.|eval|set -a)\s")
_HOST_FILE: Final = re.compile(r"/etc/volcano/([A-Za-z0-9_.-]+?)\.host\b")
_FOLDER: Final = "/etc/volcano"


@dataclass(frozen=True, slots=True)
class ContainerCommand:
    """The command of one container.

    Args:
        task: the task that has the container.
        container: the container.
        script: the command and the arguments of the container, one on each line.
        launch: what the command starts.
        reads: variables that the command reads, but that neither the command nor env sets; () if a script may set
            variables.
        host_files: the names of the host files that the command reads, such as `worker` for worker.host.
    """

    task: Task
    container: Container
    script: str
    launch: LaunchedProgram
    reads: Items[str]
    host_files: Items[str]

    @property
    def path(self) -> FieldPath:
        """Return the path of the container."""
        return self.container.at


def read_commands(job: Job, subject: Subject) -> Iterator[ContainerCommand]:
    """Yield the commands of all tasks that have pods."""
    for task in job.spec.tasks:
        for container in task.pod_spec.all_containers() if task.replicas else ():
            yield _command_of_container(task, container, subject)


def _command_of_container(task: Task, container: Container, subject: Subject) -> ContainerCommand:
    script = "\n".join(container.words)
    container.charge_search(script)
    return ContainerCommand(
        task=task,
        container=container,
        script=script,
        launch=cached_launch_of_json(container.json, subject),
        reads=container.charged_list(_variables_read(script, container) if "$" in script else ()),
        host_files=container.charged_list(_host_files_read(script, container) if _FOLDER in script else ()),
    )


def _host_files_read(script: str, container: Container) -> tuple[str, ...]:
    return () if _mounts_folder_of_plugin(container) else tuple(dict.fromkeys(_HOST_FILE.findall(script)))


def _variables_read(script: str, container: Container) -> tuple[str, ...]:
    if container.env_from or _SCRIPT.search(script):
        return ()
    return tuple(_variables_never_set(script, set(container.env_names)))


def _variables_never_set(script: str, variables: set[str]) -> Iterator[str]:
    variables.update(_ASSIGNED.findall(script), _READ_INTO.findall(script))
    for bracket, name, otherwise in dict.fromkeys(_READ.findall(script)):
        if name not in variables and not (bracket == "{" and otherwise):
            variables.add(name)
            yield name


def _mounts_folder_of_plugin(container: Container) -> bool:
    """Return whether a volume of the pod is mounted where the plugin svc puts its files."""
    paths = (mount.mount_path for mount in container.volume_mounts)
    return any(path.rstrip("/") == _FOLDER or path.startswith(f"{_FOLDER}/") for path in paths)
