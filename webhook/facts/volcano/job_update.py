"""What Volcano's webhook refuses when a Job is changed: it may be scaled, and nothing else.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobUpdate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.volcano.job import Job, problem, spec_of
from webhook.facts.volcano.job_validation import validate_network_topology, validate_partition_policy
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, Type
from webhook.wording import counted

_SCALED: Final = ("minAvailable", "priorityClassName")
_TASK_SCALED: Final = ("replicas", "minAvailable")
_DEFAULTS: Final[Mapping[str, Any]] = {"queue": "default", "maxRetry": 3}
"""Those of the schema, which a stored Job has."""


def validate_update(job: Job, subject: Subject) -> Iterator[Problem]:
    """Numbers that fit, the same tasks, and no other field changed."""
    for task in job.deadline.each(job.tasks):
        written = task.value.get("minAvailable")
        if job.is_filled and written is not None and written > task.replicas:
            message = f"must not be more than the {counted(task.replicas, 'replica')} of the task"
            yield problem(
                "task-min-available", (*task.at, "minAvailable"), message, "lower minAvailable of the task", written
            )
        yield from validate_partition_policy(task, job)
    if job.is_filled and job.min_available > job.pods:
        message = f"must not be more than the {counted(job.pods, 'pod')} of all tasks"
        yield problem("min-available", (*job.at, "minAvailable"), message, f"set {job.pods} or less", job.min_available)
    yield from validate_network_topology(job.spec, job.at)
    old = spec_of(subject.old_object)
    if len(old.get("tasks", [])) != len(job.tasks):
        was = len(old.get("tasks", []))
        message = f"cannot change from {was} to {counted(len(job.tasks), 'task')} because a Job keeps their number"
        yield problem("tasks-kept", (*job.at, "tasks"), message, "restore the tasks, or create a new Job")
        return
    kind = type_of(subject.attributes.kind)
    declared = kind.fields["spec"] if isinstance(kind, Fields) else "any"
    before, after = _unscaled({**_DEFAULTS, **old}), _unscaled(dict(job.spec))
    changed = next(_changes(before, after, declared, job.at, job.deadline), None)
    if changed is not None and not subject.omitted:
        message = (
            "cannot change because a Job keeps everything but minAvailable, priorityClassName, and replicas and "
            "minAvailable of its tasks"
        )
        yield problem("immutable", changed, message, "restore the old value, or create a new Job")


def _unscaled(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec without what may change, and without the claims that the controller names."""
    made = {name: value for name, value in spec.items() if name not in _SCALED}
    made["tasks"] = [_without(task, *_TASK_SCALED) for task in spec.get("tasks", [])]
    made["volumes"] = [
        _without(each, "volumeClaimName") if each.get("volumeClaim") is not None else each
        for each in spec.get("volumes", [])
    ]
    return made


def _without(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: held for name, held in value.items() if name not in names}


def _changes(old: JSON, new: JSON, of: Type, at: FieldPath, deadline: Deadline) -> Iterator[FieldPath]:
    """Where two values of a type differ; what is empty is as good as absent, what is not declared is lost."""
    deadline.spend(1)
    if old == new or (_is_empty(old) and _is_empty(new)):
        return
    if of == "quantity":
        if quantity.read(old) != quantity.read(new) or quantity.read(old) is None:
            yield at
    elif isinstance(of, Fields) and isinstance(old or {}, dict) and isinstance(new or {}, dict):
        before, after = old or {}, new or {}
        for name in dict.fromkeys((*before, *after)):
            inner = of.fields.get(name, of.others)
            if name not in of.fields and (name in before) != (name in after) and of.others is not None:
                yield (*at, name)
            elif inner is not None:
                yield from _changes(before.get(name), after.get(name), inner, (*at, name), deadline)
    elif isinstance(of, Items) and isinstance(old or [], list) and isinstance(new or [], list):
        for index, (one, other) in enumerate(zip_longest(old or [], new or [])):
            yield from _changes(one, other, of.item, (*at, index), deadline)
    else:
        yield at


def _is_empty(value: JSON) -> bool:
    """What Go leaves out when it writes a value."""
    return value in (None, "", 0, False) or value in ({}, [])
