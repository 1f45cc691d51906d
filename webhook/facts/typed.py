"""The object of a subject as its kind has it, also where the subject stands inside another object.

What policies are asked about is decoded already; an object inside another one, what was before an update and what a
view has may hold anything.
"""

from __future__ import annotations

from webhook.attributes import JSON, GroupVersionKind
from webhook.deadline import Deadline
from webhook.facts.pods.containers import mapping
from webhook.facts.subject import Subject
from webhook.paths import get
from webhook.schema import decode_object
from webhook.workloads.podsets import group_kind


def typed(subject: Subject) -> JSON:
    """The object of a subject without nulls and without values of another type; {} where there is none."""
    return subject.once(_typed)


def typed_before(subject: Subject) -> JSON:
    """What it was before, likewise."""
    return subject.once(_typed_before)


def _decoded(obj: JSON, deadline: Deadline) -> JSON:
    group, kind = group_kind(obj)
    version = str(get(obj, ("apiVersion",), "")).rpartition("/")[2]
    return mapping(decode_object(obj, GroupVersionKind(group, version, kind), deadline).value)


def _typed(subject: Subject) -> JSON:
    return _decoded(subject.object, subject.deadline)


def _typed_before(subject: Subject) -> JSON:
    return _decoded(subject.old_object, subject.deadline)
