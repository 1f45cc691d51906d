"""A Volcano Job as its webhook validates it: sent as it is, or made from the template of a CronJob or a JobTemplate.

Knows where its fields stand and what they default to, and no rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook.attributes import JSON, Operation
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import kinds
from webhook.facts.volcano_objects.defaults import defaulted, webhook_of_job
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder

problem: Final = Group("volcano-job").problem
RUN_SUFFIX: Final = "-01234567"
"""As long as what a CronJob puts behind its name: a dash and the minutes since 1970 (cronjob_controller getJobName)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a Job, with its index."""

    index: int
    value: Mapping[str, Any]
    at: FieldPath

    @property
    def name(self) -> str:
        """Its name, which the webhook sets where it is missing."""
        return str(self.value.get("name", ""))

    @property
    def replicas(self) -> int:
        """How many pods it has; 0 where it does not say so."""
        return int(self.value.get("replicas", 0))

    @property
    def min_available(self) -> int:
        """How many of them the gang needs."""
        return int(self.value.get("minAvailable", self.replicas))

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The tasks that it waits for."""
        return tuple(get(self.value, ("dependsOn", "name"), []))

    @property
    def waits_for_any(self) -> bool:
        """Whether one of several is enough."""
        return len(self.depends_on) > 1 and get(self.value, ("dependsOn", "iteration")) == "any"

    @property
    def pod(self) -> Mapping[str, Any]:
        """The spec of its pods."""
        spec: Mapping[str, Any] = get(self.value, ("template", "spec"), {})
        return spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One Job.

    Args:
        name: the name of the Job; "" where nobody knows it yet.
        spec: its spec, with defaults.
        sent: its spec as it was sent.
        at: where the spec stands.
        tasks: its tasks.
        is_filled: whether no number of it is a placeholder still.
        deadline: is charged for what is walked.
    """

    name: str
    spec: Mapping[str, Any]
    sent: Mapping[str, Any]
    at: FieldPath
    tasks: tuple[Task, ...]
    is_filled: bool
    deadline: Deadline

    @property
    def min_available(self) -> int:
        """How many pods have to be placed together."""
        return int(self.spec.get("minAvailable", 0))

    @property
    def shown_min_available(self) -> str:
        """The same as messages show it."""
        return f"`{self.min_available}`" + ("" if self.sent.get("minAvailable") else ", the default,")

    @property
    def pods(self) -> int:
        """How many pods its tasks have together."""
        return sum(task.replicas for task in self.tasks)

    @property
    def plugins(self) -> Mapping[str, list[str]]:
        """The arguments of each plugin."""
        return self.spec.get("plugins") or {}

    def places(self) -> Mapping[str, Task]:
        """The first task of each name."""
        return {task.name: task for task in reversed(self.tasks)}


def read_job(subject: Subject) -> Job:
    """The Job of an object, or the one that it makes; to be asked for with `Subject.once`."""
    at = kinds.SPECS[subject.group_kind]
    sent = get(subject.object, at, {})
    if subject.group_kind != kinds.JOB:
        return made_job(sent, _name(subject), at, subject)
    return _job(get(subject.once(defaulted), at, {}), sent, _name(subject), at, subject)


def made_job(template: Mapping[str, Any], name: str, at: FieldPath, subject: Subject) -> Job:
    """The Job that a controller makes of a template, with a name, as Volcano's webhook leaves it."""
    return _job(webhook_of_job(template, subject.deadline), template, name, at, subject)


def _job(spec: Mapping[str, Any], sent: Mapping[str, Any], name: str, at: FieldPath, subject: Subject) -> Job:
    tasks = enumerate(subject.deadline.paced(spec.get("tasks", [])))
    return Job(
        name=name,
        spec=spec,
        sent=sent,
        at=at,
        tasks=tuple(Task(index=index, value=task, at=(*at, "tasks", index)) for index, task in tasks),
        is_filled=not any(path[: len(at)] == at for path in subject.omitted),
        deadline=subject.deadline,
    )


def _name(subject: Subject) -> str:
    name: str = get(subject.object, ("metadata", "name"), "")
    if is_placeholder(name) or subject.group_kind == kinds.JOB_TEMPLATE:
        return ""
    return f"{name}{RUN_SUFFIX}" if name and subject.group_kind == kinds.CRON_JOB else name


def is_created(subject: Subject) -> bool:
    """Whether the object is created, and not changed."""
    return subject.attributes.operation is Operation.CREATE


def spec_of(obj: JSON) -> Mapping[str, Any]:
    """The spec of an object."""
    spec: Mapping[str, Any] = get(obj, ("spec",), {})
    return spec
