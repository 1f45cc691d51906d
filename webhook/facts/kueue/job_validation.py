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
from webhook.facts.kueue.feature_gates import ADMISSION_GATED_BY, ANNOTATED_WORKLOAD, ELASTIC_JOBS, is_on
from webhook.facts.kueue.managed import SERVING, Managed
from webhook.facts.kueue.objects import DEFAULT_QUEUE, ELASTIC, GATED_BY, MAX_EXEC_TIME, PREBUILT, PRIORITY, QUEUE_NAME
from webhook.facts.subject import Subject
from webhook.facts.values import mapping, text
from webhook.name_faults import key_fault, subdomain_fault
from webhook.names import USE_SUBDOMAIN, dns1123_subdomain, qualified_name
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import change

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
_LONGEST_LABEL: Final = 63
_SUSPEND: Final = "suspend the job first"


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
        message = f"cannot be the name of a LocalQueue because {subdomain_fault(given)}"
        fix = f"{USE_SUBDOMAIN}, or remove the label"
        yield problem("queue-name", (*_LABELS, QUEUE_NAME), message, fix, given)


def validate_prebuilt_workload(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As validateCreateForPrebuiltWorkload: an annotation stands before the label."""
    path, given, kind = (*_LABELS, PREBUILT), labels_of(subject.object).get(PREBUILT), subject.group_kind[1]
    annotated = text(annotations_of(subject.object).get(PREBUILT))
    if len(annotated) > _LONGEST_LABEL or (annotated and is_on(ANNOTATED_WORKLOAD, subject)):
        path, given = (*_NOTES, PREBUILT), annotated
    if not isinstance(given, str) or is_placeholder(given) or how.framework in SERVING:
        return
    if dns1123_subdomain(given):
        message = f"cannot be the name of a Workload because {subdomain_fault(given)}"
        yield problem("prebuilt-workload", path, message, USE_SUBDOMAIN, given)
    if given and kind not in _PREBUILT_KINDS:
        yield problem("prebuilt-workload", path, f"must not be set on objects of kind {kind}", "remove the name", given)


def validate_max_exec_time(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As validateCreateForMaxExecTime."""
    given = labels_of(subject.object).get(MAX_EXEC_TIME)
    if not isinstance(given, str) or is_placeholder(given) or how.framework in SERVING:
        return
    if not _NUMBER.fullmatch(given) or int(given) <= 0:
        message = "must be a whole number of seconds above 0"
        yield problem(
            "max-exec-time", (*_LABELS, MAX_EXEC_TIME), message, "set a number of seconds, or remove the label", given
        )


def validate_elastic_job(subject: Subject, how: Managed) -> Iterator[Problem]:  # noqa: ARG001
    """As ValidateElasticJobAnnotation."""
    kind = subject.group_kind[1]
    if kind not in ELASTIC_KINDS and is_elastic(subject.object, subject):
        message = f"must not be set on objects of kind {kind}, which cannot be elastic"
        yield problem("elastic-job", (*_NOTES, ELASTIC), message, "remove the annotation", "true")


def is_elastic(obj: JSON, subject: Subject) -> bool:
    """Whether Kueue takes a job, as it is or was, for an elastic one."""
    return annotations_of(obj).get(ELASTIC) == "true" and is_on(ELASTIC_JOBS, subject)


def validate_admission_gates(subject: Subject, how: Managed) -> Iterator[Problem]:  # noqa: ARG001
    """As ValidateAdmissionGatedByAnnotation, when an object is created."""
    given = annotations_of(subject.object).get(GATED_BY)
    if subject.old_object is not None or not isinstance(given, str) or not given or is_placeholder(given):
        return
    if not is_on(ADMISSION_GATED_BY, subject):
        return
    gates, path = given.split(","), (*_NOTES, GATED_BY)
    for gate in subject.deadline.paced(gates):
        if "/" not in gate or qualified_name(gate) or len(gate) > _LONGEST_GATE:
            message = f"cannot be the name of an admission gate because {_fault(gate)}"
            yield problem("admission-gate", path, message, "write a name such as example.com/ready", gate)
            return
    if len(set(gates)) < len(gates):
        yield problem("admission-gate", path, "names a gate twice", "remove one of the two", given)


def _fault(gate: str) -> str:
    if "/" not in gate:
        return "it has no domain"
    too_long = f"it has {len(gate)} characters, and at most {_LONGEST_GATE} are allowed"
    return key_fault(gate) if qualified_name(gate) else too_long


def is_suspended(obj: JSON) -> bool:
    """Whether a job is suspended, by either field that kinds have for it."""
    return get(obj, ("spec", "suspend")) is True or get(obj, ("spec", "runPolicy", "suspend")) is True


def validate_update(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As ValidateJobOnUpdate: what may not change of a job that runs."""
    if subject.old_object is None or how.framework in ("pod", *SERVING):
        return
    is_waiting = is_suspended(subject.object)
    before, after = labels_of(subject.old_object), labels_of(subject.object)
    if not is_waiting and text(before.get(QUEUE_NAME)) != text(after.get(QUEUE_NAME)):
        yield fixed(QUEUE_NAME, subject)
    elif before.get(QUEUE_NAME) and how.is_default:
        message = f"cannot be removed because the namespace has a LocalQueue `{DEFAULT_QUEUE}` for jobs without a name"
        yield problem("immutable", (*_LABELS, QUEUE_NAME), message, f"set the label, for example to {DEFAULT_QUEUE}")
    was_elastic = is_elastic(subject.old_object, subject)
    if not is_waiting and not was_elastic and before.get(PREBUILT) != after.get(PREBUILT):
        yield fixed(PREBUILT, subject)
    if before.get(MAX_EXEC_TIME) != after.get(MAX_EXEC_TIME) and not (is_waiting and is_suspended(subject.old_object)):
        yield fixed(MAX_EXEC_TIME, subject)
    if was_elastic != is_elastic(subject.object, subject):
        message = "cannot change because Kueue counts the pods of an elastic job in another way"
        fix = "restore the annotation, or create another job"
        yield problem("immutable", (*_NOTES, ELASTIC), message, fix)
    yield from validate_priority_update(subject, is_waiting=is_waiting)
    yield from validate_gates_update(subject)


def fixed(label: str, subject: Subject, stop: str = _SUSPEND) -> Problem:
    """A label that changed of a job that runs, and how it can be stopped."""
    was, now = (text(labels_of(each).get(label)) for each in (subject.old_object, subject.object))
    return problem("immutable", (*_LABELS, label), f"{change(was, now)} while the job runs", stop)


def validate_priority_update(subject: Subject, stop: str = _SUSPEND, *, is_waiting: bool) -> Iterator[Problem]:
    """As ValidateUpdateForWorkloadPriorityClassName: a class may change, and be added to a job that waits."""
    was, now = (text(labels_of(each).get(PRIORITY)) for each in (subject.old_object, subject.object))
    if now and not was and not is_waiting:
        yield fixed(PRIORITY, subject, stop)
    if was and not now:
        message = f"cannot be removed (it was `{was}`)"
        yield problem("immutable", (*_LABELS, PRIORITY), message, f"set `{was}` or another WorkloadPriorityClass")


def validate_gates_update(subject: Subject) -> Iterator[Problem]:
    """As ValidateAdmissionGatedByAnnotationOnUpdate: gates are removed only."""
    if not is_on(ADMISSION_GATED_BY, subject):
        return
    before = {*filter(None, text(annotations_of(subject.old_object).get(GATED_BY)).split(","))}
    added = {*filter(None, text(annotations_of(subject.object).get(GATED_BY)).split(","))} - before
    if added:
        message = "is a new gate, but gates can only be removed once the job exists"
        yield problem("immutable", (*_NOTES, GATED_BY), message, "remove the new gate", min(added))
