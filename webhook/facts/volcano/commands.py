"""What the commands of a Job read: variables, and the files in which the plugin svc lists the hosts of each task.

Commands are read as texts, never run. A variable that the command sets, or has another value for, is not read from
outside; where a command reads a script, nobody knows what that sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON
from webhook.facts.command_lines.command import Launch, launched
from webhook.facts.pods.containers import Container, containers
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, names, text
from webhook.facts.volcano.job import Job, Task
from webhook.paths import FieldPath

_READ: Final = re.compile(r"(?<![$\\])\$([{(]?)([A-Z][A-Z0-9_]*)(:?[-=+?])?")
_SET: Final = re.compile(r"\b([A-Z][A-Z0-9_]*)\+?=|\b(?:read|for|mapfile|readarray)(?: -\w+)* ([A-Z][A-Z0-9_]*)\b")
_SCRIPT: Final = re.compile(r"(?:^|[\s;&|(])(?:source|\.|eval|set -a)\s")
_HOST_FILE: Final = re.compile(r"/etc/volcano/([A-Za-z0-9_.-]+?)\.host\b")
_FOLDER: Final = "/etc/volcano"


@dataclass(frozen=True, slots=True)
class Command:
    """The command of one container.

    Args:
        task: the task whose pods have it.
        container: the container.
        script: its command and arguments, a line each.
        launch: what it starts.
        reads: variables that it neither sets nor has in its env; () where a script may set more.
        host_files: tasks whose hosts it reads from a file, as the names of the files have them.
    """

    task: Task
    container: Container
    script: str
    launch: Launch
    reads: tuple[str, ...]
    host_files: tuple[str, ...]

    @property
    def path(self) -> FieldPath:
        """Where the container stands."""
        return (*self.task.at, "template", *self.container.path)


def commands(job: Job, subject: Subject) -> Iterator[Command]:
    """Those of all tasks that have pods."""
    for task in job.deadline.each(job.tasks):
        for container in containers(task.value.get("template"), job.deadline.each) if task.replicas else ():
            yield _command(task, container, job, subject)


def _command(task: Task, container: Container, job: Job, subject: Subject) -> Command:
    value = container.value
    script = "\n".join(container.words)
    job.deadline.spend_text(script)
    return Command(
        task=task,
        container=container,
        script=script,
        launch=launched(container.value, subject),
        reads=_reads(script, value) if "$" in script else (),
        host_files=_host_files(script, value) if _FOLDER in script else (),
    )


def _host_files(script: str, container: JSON) -> tuple[str, ...]:
    return () if _mounts_own(container) else tuple(dict.fromkeys(_HOST_FILE.findall(script)))


def _reads(script: str, container: JSON) -> tuple[str, ...]:
    if container.get("envFrom") or _SCRIPT.search(script):
        return ()
    return tuple(_unset(script, {*names(container.get("env"))}))


def _unset(script: str, known: set[str]) -> Iterator[str]:
    known.update(name for either in _SET.findall(script) for name in either)
    for bracket, name, otherwise in dict.fromkeys(_READ.findall(script)):
        if name not in known and not (bracket == "{" and otherwise):
            known.add(name)
            yield name


def _mounts_own(container: JSON) -> bool:
    """Whether a volume of its own stands where the plugin svc puts its files."""
    mounts = (text(mapping(each).get("mountPath")) for each in items(container.get("volumeMounts")))
    return any(path.rstrip("/") == _FOLDER or path.startswith(f"{_FOLDER}/") for path in mounts)
