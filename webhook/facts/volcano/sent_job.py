"""The Volcano Job that the webhook validates: as sent, or from the template of a CronJob or a JobTemplate.

This module finds the path of the spec, sets defaults, and finds the fields that an update changes. Values are
compared as Go compares decoded values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON, GroupVersionKind, Operation
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import types
from webhook.facts.volcano_objects.defaults import job_spec_with_webhook_defaults, object_with_defaults
from webhook.facts.volcano_objects.types import CronJob, Job, JobSpec, JobTemplate
from webhook.schema import decode_object
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, Type
from webhook.typed.view import ReadingContext, Typed

RUN_SUFFIX: Final = "-01234567"
"""A text as long as the suffix in the names of a CronJob's Jobs: a dash and the minutes since 1970
(cronjob_controller getJobName).
"""


def read_job(subject: Subject) -> Job:
    """Return the Job that an object is or creates. Call this function through `Subject.once`."""
    if subject.group_kind == types.JOB:
        return Job.of(subject.once(object_with_defaults), (), subject.reading_context)
    name = subject.typed(CronJob).name if subject.group_kind == types.CRON_JOB else ""
    return _job_with_defaults(spec_without_defaults(subject), f"{name}{RUN_SUFFIX}" if name else "")


def spec_without_defaults(subject: Subject) -> JobSpec:
    """Return the spec of the Job as it was sent, without defaults."""
    if subject.group_kind == types.CRON_JOB:
        return subject.typed(CronJob).spec.job_template.spec
    if subject.group_kind == types.JOB_TEMPLATE:
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
    """Return a Job with the sent spec, and with the defaults that Volcano's webhook sets."""
    spec = job_spec_with_webhook_defaults(sent.json, sent.reading.deadline)
    return Job.of({"metadata": {"name": name}, "spec": spec}, sent.at[:-1], sent.reading)


def is_create_request(subject: Subject) -> bool:
    """Return whether the request creates the object."""
    return subject.attributes.operation is Operation.CREATE


def paths_of_changed_fields(
    before: Mapping[str, Any], after: Mapping[str, Any], spec: Typed, kind: GroupVersionKind
) -> Iterator[FieldPath]:
    """Yield the paths of changed fields of an object's spec; `spec` has the path of the spec."""
    declared = type_of(kind)
    inner = declared.fields["spec"] if isinstance(declared, Fields) else "any"
    return _SpecComparison(spec.reading.deadline).paths_of_changes(before, after, inner, spec.at)


@dataclass(frozen=True, slots=True)
class _SpecComparison:
    """Compares values. Empty values count as not set, and undeclared fields are ignored."""

    deadline: Deadline

    def paths_of_changes(self, old: JSON, new: JSON, declared: Type, at: FieldPath) -> Iterator[FieldPath]:
        """Yield the paths where two values of a type differ."""
        self.deadline.spend(1)
        if old == new or (_is_omitted_by_go(old) and _is_omitted_by_go(new)):
            return
        if declared == "quantity":
            if (
                quantity.read_quantity_or_none(old) != quantity.read_quantity_or_none(new)
                or quantity.read_quantity_or_none(old) is None
            ):
                yield at
        elif isinstance(declared, Fields) and isinstance(old or {}, dict) and isinstance(new or {}, dict):
            yield from self._paths_in_fields(old or {}, new or {}, declared, at)
        elif isinstance(declared, Items) and isinstance(old or [], list) and isinstance(new or [], list):
            for index, (one, other) in enumerate(zip_longest(old or [], new or [])):
                yield from self.paths_of_changes(one, other, declared.item, (*at, index))
        else:
            yield at

    def _paths_in_fields(
        self, old: Mapping[str, JSON], new: Mapping[str, JSON], declared: Fields, at: FieldPath
    ) -> Iterator[FieldPath]:
        for name in dict.fromkeys((*old, *new)):
            inner = declared.fields.get(name, declared.others)
            if name not in declared.fields and (name in old) != (name in new) and declared.others is not None:
                yield (*at, name)
            elif inner is not None:
                yield from self.paths_of_changes(old.get(name), new.get(name), inner, (*at, name))


def _is_omitted_by_go(value: JSON) -> bool:
    """Return whether Go leaves out a value because it is empty."""
    return value in (None, "", 0, False) or value in ({}, [])
