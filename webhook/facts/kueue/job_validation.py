"""What Kueue's webhooks refuse of the labels and annotations of a job, whatever its kind, and of changes of them.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/validation.go; functions are named like those there.
They never ask whether a queue or a class exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.kueue.managed import Managed
from webhook.facts.kueue.objects import (
    ELASTIC,
    GATED_BY,
    MAX_EXEC_TIME,
    PREBUILT,
    PRIORITY,
    QUEUE_NAME,
)
from webhook.facts.pods.containers import mapping, text
from webhook.facts.subject import Subject
from webhook.names import dns1123_subdomain, qualified_name
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("kueue-job").problem
_LABELS: Final[FieldPath] = ("metadata", "labels")
_NOTES: Final[FieldPath] = ("metadata", "annotations")
ELASTIC_KINDS: Final = ("Job", "RayCluster", "RayJob", "RayService")
_PREBUILT_KINDS: Final = (
    *("Job", "JobSet", "TFJob", "PaddleJob", "PyTorchJob", "XGBoostJob", "TrainJob", "MPIJob", "RayJob", "Pod"),
    *("RayCluster", "RayService", "AppWrapper"),
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_LONGEST_GATE: Final = 63


def labels_of(obj: JSON) -> Mapping[str, JSON]:
    """The labels of an object."""
    return mapping(get(obj, _LABELS))


def annotations_of(obj: JSON) -> Mapping[str, JSON]:
    """The annotations of an object."""
    return mapping(get(obj, _NOTES))


def validate_queue_name(subject: Subject, how: Managed) -> Iterator[Problem]:  # noqa: ARG001
    """As ValidateQueueName."""
    given = labels_of(subject.object).get(QUEUE_NAME)
    if isinstance(given, str) and not is_placeholder(given) and dns1123_subdomain(given):
        message = "must be a name that a LocalQueue can have: lower case letters, digits, dashes and dots"
        yield problem("queue-name", (*_LABELS, QUEUE_NAME), message, "correct it, or remove the label", given)


def validate_prebuilt_workload(subject: Subject, how: Managed) -> Iterator[Problem]:  # noqa: ARG001
    """As validatePrebuiltWorkload."""
    given, kind = labels_of(subject.object).get(PREBUILT), subject.group_kind[1]
    if not isinstance(given, str) or is_placeholder(given):
        return
    path = (*_LABELS, PREBUILT)
    if dns1123_subdomain(given):
        yield problem("prebuilt-workload", path, "must be a name that a Workload can have", "correct it", given)
    if kind not in _PREBUILT_KINDS:
        yield problem("prebuilt-workload", path, f"must not be set on objects of kind {kind}", "remove it", given)


def validate_max_exec_time(subject: Subject, how: Managed) -> Iterator[Problem]:  # noqa: ARG001
    """As ValidateMaximumExecutionTimeSeconds."""
    given = labels_of(subject.object).get(MAX_EXEC_TIME)
    if not isinstance(given, str) or is_placeholder(given):
        return
    if not _NUMBER.fullmatch(given) or int(given) <= 0:
        message = "must be a whole number of seconds above 0"
        yield problem("max-exec-time", (*_LABELS, MAX_EXEC_TIME), message, "set it, or remove the label", given)


def validate_elastic_job(subject: Subject, how: Managed) -> Iterator[Problem]:  # noqa: ARG001
    """As validateElasticJob."""
    kind = subject.group_kind[1]
    if annotations_of(subject.object).get(ELASTIC) == "true" and kind not in ELASTIC_KINDS:
        message = f"must not be set on objects of kind {kind}, which cannot be elastic"
        yield problem("elastic-job", (*_NOTES, ELASTIC), message, "remove it", "true")


def validate_admission_gates(subject: Subject, how: Managed) -> Iterator[Problem]:  # noqa: ARG001
    """As ValidateAdmissionGatedByAnnotation, when an object is created."""
    given = annotations_of(subject.object).get(GATED_BY)
    if subject.old_object is not None or not isinstance(given, str) or not given or is_placeholder(given):
        return
    gates, path = given.split(","), (*_NOTES, GATED_BY)
    for gate in subject.deadline.paced(gates):
        if "/" not in gate or qualified_name(gate) or len(gate) > _LONGEST_GATE:
            message = "must be a list of names with a domain, such as example.com/ready, of at most 63 characters"
            yield problem("admission-gate", path, f"{message}, without spaces", "correct the name", gate)
            return
    if len(set(gates)) < len(gates):
        yield problem("admission-gate", path, "must not name a gate twice", "remove one", given)


def is_suspended(obj: JSON) -> bool:
    """Whether a job is suspended, by either field that kinds have for it."""
    return get(obj, ("spec", "suspend")) is True or get(obj, ("spec", "runPolicy", "suspend")) is True


def validate_update(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As ValidateJobOnUpdate: what may not change of a job that runs."""
    old, new = subject.old_object, subject.object
    if old is None or how.framework in ("pod", "deployment", "statefulset"):
        return
    is_waiting = is_suspended(new)
    before, after = labels_of(old), labels_of(new)
    if not is_waiting and before.get(QUEUE_NAME) != after.get(QUEUE_NAME) and not is_suspended(old):
        yield _fixed(QUEUE_NAME, before, after)
    if not is_waiting and before.get(PREBUILT) != after.get(PREBUILT) and not is_suspended(old):
        yield _fixed(PREBUILT, before, after)
    if before.get(MAX_EXEC_TIME) != after.get(MAX_EXEC_TIME) and not (is_waiting and is_suspended(old)):
        yield _fixed(MAX_EXEC_TIME, before, after)
    if not is_waiting and not is_suspended(old) and bool(before.get(PRIORITY)) != bool(after.get(PRIORITY)):
        yield _fixed(PRIORITY, before, after)
    yield from _validate_gates_update(subject)


def _fixed(label: str, before: Mapping[str, JSON], after: Mapping[str, JSON]) -> Problem:
    was = text(before.get(label))
    message = f"must stay `{was}` while the job runs" if was else "must not be added while the job runs"
    return problem("immutable", (*_LABELS, label), message, "suspend the job first", text(after.get(label)))


def _validate_gates_update(subject: Subject) -> Iterator[Problem]:
    before = {*filter(None, text(annotations_of(subject.old_object).get(GATED_BY)).split(","))}
    added = {*filter(None, text(annotations_of(subject.object).get(GATED_BY)).split(","))} - before
    if added:
        message = "must not name further gates after the job was created"
        yield problem("immutable", (*_NOTES, GATED_BY), message, "remove it", min(added))
