"""Compares the spec of a TrainJob or a runtime before and after an update."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.attributes import JSON
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.installation import find_trainer_release
from webhook.facts.train_job_pods.train_job_and_runtime_fields import without_dropped_fields
from webhook.paths import get
from webhook.typed.view import Typed


def comparable_specs(subject: Subject) -> tuple[Mapping[str, JSON], Mapping[str, JSON]]:
    """Return the spec now and before, without the fields that the release drops."""
    return subject.once(_specs_without_ignored_fields)


def _specs_without_ignored_fields(subject: Subject) -> tuple[Mapping[str, JSON], Mapping[str, JSON]]:
    (_, kind), release, deadline = subject.group_kind, find_trainer_release(subject), subject.deadline
    kept = (without_dropped_fields(each, kind, release, deadline) for each in (subject.object, subject.old_object))
    now, before = (get(each, ("spec",), {}) for each in kept)
    return now, before


def is_field_changed(name: str, now: Typed, before: Typed) -> bool:
    """Return whether a field changed (`self == oldSelf`); adding or removing it does not count."""
    return None not in (now.json.get(name), before.json.get(name)) and now.differs(before, name)


def changes_more_than_suspend(subject: Subject) -> bool:
    """Return whether an update changes more than spec.suspend, because it must always be possible to stop a job."""
    if subject.old_object is None:
        return True
    now, before = comparable_specs(subject)
    return any(now.get(name) != before.get(name) for name in {**now, **before} if name != "suspend")
