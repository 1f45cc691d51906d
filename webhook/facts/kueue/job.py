"""Rules of Kueue's webhooks for labels and annotations of jobs of any kind, and for their changes.

Kueue's webhooks do not check whether a queue or a priority class exists.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.names import (
    dns1123_subdomain_errors,
    qualified_name_errors,
    qualified_name_fault,
    subdomain_fault,
    subdomain_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue.configuration import (
    ADMISSION_GATED_BY_GATE,
    ELASTIC_JOBS_GATE,
    WORKLOAD_ANNOTATION_GATE,
    is_gate_on,
    may_gate_be_on,
)
from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.job_types import SuspendableJob
from webhook.facts.kueue.managed import SERVING_FRAMEWORKS, KueueManagement
from webhook.facts.kueue.objects import DEFAULT_QUEUE, ELASTIC, GATED_BY, MAX_EXEC_TIME, PREBUILT, PRIORITY, QUEUE_NAME
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import change
from webhook.typed.collections import Items
from webhook.typed.objects import Object
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

KUEUE_JOB_QUEUE_NAME: Final = KUEUE_JOB.rule(
    "kueue-job/queue-name",
    title="The queue name is not a valid name",
    why="No queue can have this name, so Kueue refuses the job. An empty string is also not a name.",
    function="ValidateQueueName",
)
PREBUILT_WORKLOAD: Final = KUEUE_JOB.rule(
    "kueue-job/prebuilt-workload",
    title="The prebuilt Workload has an invalid name, or is not for this kind of job",
    why="No Workload can have an invalid name. For some kinds, Kueue creates the Workloads itself.",
    function="validatePrebuiltWorkload",
)
KUEUE_JOB_MAX_EXEC_TIME: Final = KUEUE_JOB.rule(
    "kueue-job/max-exec-time",
    title="The maximum execution time is not a positive whole number of seconds",
    why="Kueue ends the job after this number of seconds.",
    function="ValidateMaximumExecutionTimeSeconds",
)
ELASTIC_JOB: Final = KUEUE_JOB.rule(
    "kueue-job/elastic-job",
    title="This kind of job cannot be elastic",
    why="Kueue counts the pods of this kind only once and cannot follow a change of size.",
    function="validateElasticJob",
)
ADMISSION_GATE: Final = KUEUE_JOB.rule(
    "kueue-job/admission-gate",
    title="The admission gate is invalid or listed twice",
    why="A controller finds its gate by this name.",
    function="ValidateAdmissionGatedByAnnotation",
)
IMMUTABLE: Final = KUEUE_JOB.rule(
    "kueue-job/immutable",
    title="The queue or another fixed Kueue setting of the job was changed",
    why=(
        "Kueue admitted the job with the old values. A Deployment, StatefulSet or LeaderWorkerSet keeps its queue "
        "while a pod is ready."
    ),
    function="ValidateJobOnUpdate",
)

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


def validate_queue_name(subject: Subject, how: KueueManagement) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problems that ValidateQueueName would report."""
    given = _label_value(QUEUE_NAME, subject)
    if given is not None and dns1123_subdomain_errors(given):
        message = f"cannot be the name of a LocalQueue because {subdomain_fault(given)}"
        fix = f"{subdomain_fix(given)}, or remove the label"
        yield KUEUE_JOB_QUEUE_NAME.problem((*_LABELS, QUEUE_NAME), message, fix, given)


def _label_value(key: str, subject: Subject) -> str | None:
    """Return the value of a label; None if the label is not set or its value is a placeholder."""
    value = subject.typed(Object).labels.get(key)
    return None if value is None or is_placeholder_for_name(value) else value


def validate_prebuilt_workload(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that validateCreateForPrebuiltWorkload would report.

    If Kueue reads the annotation, the annotation takes precedence over the label.
    """
    metadata, kind = subject.metadata, subject.group_kind[1]
    path, given = metadata.path("labels", PREBUILT), metadata.labels.get(PREBUILT)
    annotated = metadata.annotations.get(PREBUILT, "")
    if len(annotated) > _LONGEST_LABEL or (annotated and is_gate_on(WORKLOAD_ANNOTATION_GATE, subject)):
        path, given = metadata.path("annotations", PREBUILT), annotated
    if given is None or is_placeholder(given) or how.framework in SERVING_FRAMEWORKS:
        return
    if dns1123_subdomain_errors(given):
        message = f"cannot be the name of a Workload because {subdomain_fault(given)}"
        yield PREBUILT_WORKLOAD.problem(path, message, subdomain_fix(given), given)
    if given and kind not in _PREBUILT_KINDS:
        yield PREBUILT_WORKLOAD.problem(path, f"must not be set on objects of kind {kind}", "remove the name", given)


def validate_max_exec_time(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that validateCreateForMaxExecTime would report."""
    given = _label_value(MAX_EXEC_TIME, subject)
    if given is None or how.framework in SERVING_FRAMEWORKS:
        return
    if not _NUMBER.fullmatch(given) or int(given) <= 0:
        path, message = (*_LABELS, MAX_EXEC_TIME), "must be a whole number of seconds above 0"
        yield KUEUE_JOB_MAX_EXEC_TIME.problem(path, message, "set a number of seconds, or remove the label", given)


def validate_elastic_job(subject: Subject, how: KueueManagement) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problems that ValidateElasticJobAnnotation would report."""
    kind = subject.group_kind[1]
    if kind not in ELASTIC_KINDS and is_elastic_job(subject.typed(Object), subject):
        message = f"must not be set on objects of kind {kind}, which cannot be elastic"
        yield ELASTIC_JOB.problem((*_NOTES, ELASTIC), message, "remove the annotation", "true")


def is_elastic_job(job: Object, subject: Subject) -> bool:
    """Return whether Kueue treats a job as elastic."""
    return job.annotations.get(ELASTIC) == "true" and is_gate_on(ELASTIC_JOBS_GATE, subject)


def validate_admission_gates(subject: Subject, how: KueueManagement) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problems that ValidateAdmissionGatedByAnnotation would report about a new object."""
    given = subject.typed(Object).annotations.get(GATED_BY, "")
    if (
        not given
        or subject.typed_old(Object)
        or is_placeholder(given)
        or not is_gate_on(ADMISSION_GATED_BY_GATE, subject)
    ):
        return
    gates = _admission_gates(subject.typed(Object))
    wrong = next((gate for gate in gates if _fault_of_gate_name(gate)), None)
    if wrong is not None:
        message = f"cannot be the name of an admission gate because {_fault_of_gate_name(wrong)}"
        yield ADMISSION_GATE.problem((*_NOTES, GATED_BY), message, "write a name such as example.com/ready", wrong)
    elif len(set(gates)) < len(gates):
        yield ADMISSION_GATE.problem((*_NOTES, GATED_BY), "names a gate twice", "remove one of the two", given)


def _fault_of_gate_name(gate: str) -> str:
    """Return the fault of an admission gate's name; "" if it is valid."""
    if "/" not in gate:
        return "it has no domain"
    if qualified_name_errors(gate):
        return qualified_name_fault(gate)
    too_long = f"it has {len(gate)} characters, and at most {_LONGEST_GATE} are allowed"
    return too_long if len(gate) > _LONGEST_GATE else ""


def validate_update(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that ValidateJobOnUpdate would report: changes of fields that are immutable while a
    job runs.
    """
    old, new = subject.typed_old(SuspendableJob), subject.typed(SuspendableJob)
    if not old or how.framework in ("pod", *SERVING_FRAMEWORKS):
        return
    if not new.is_suspended and _does_label_differ(old, new, QUEUE_NAME):
        yield immutable_label_problem(QUEUE_NAME, subject)
    elif old.labels.get(QUEUE_NAME) and how.is_default:
        message = (
            f"cannot be removed because the namespace has a LocalQueue `{DEFAULT_QUEUE}` for jobs without a queue name"
        )
        yield immutable_field_problem((*_LABELS, QUEUE_NAME), message, f"set the label, for example to {DEFAULT_QUEUE}")
    was_elastic = is_elastic_job(old, subject)
    may_be_elastic = old.annotations.get(ELASTIC) == "true" and may_gate_be_on(ELASTIC_JOBS_GATE, subject)
    if not new.is_suspended and not may_be_elastic and old.labels.get(PREBUILT) != new.labels.get(PREBUILT):
        yield immutable_label_problem(PREBUILT, subject)
    if old.labels.get(MAX_EXEC_TIME) != new.labels.get(MAX_EXEC_TIME) and not (new.is_suspended and old.is_suspended):
        yield immutable_label_problem(MAX_EXEC_TIME, subject)
    if was_elastic != is_elastic_job(new, subject):
        message = "cannot change because Kueue counts the pods of an elastic job in another way"
        yield immutable_field_problem((*_NOTES, ELASTIC), message, "restore the annotation, or create another job")
    yield from validate_priority_update(subject, is_waiting=new.is_suspended)
    yield from validate_gates_update(subject)


def _does_label_differ(old: Object, new: Object, label: str) -> bool:
    """Return whether a label has changed; an empty value counts as not set."""
    return old.labels.get(label, "") != new.labels.get(label, "")


def immutable_field_problem(path: FieldPath, message: str, fix: str, value: str | None = None) -> Problem:
    """Return the problem of a change that is not allowed while a job runs."""
    return IMMUTABLE.problem(path, message, fix, value)


def immutable_label_problem(label: str, subject: Subject, stop: str = _SUSPEND) -> Problem:
    """Return the problem of a label that changed while a job runs, and how to stop the job."""
    old_value, new_value = (job.labels.get(label, "") for job in (subject.typed_old(Object), subject.typed(Object)))
    return immutable_field_problem((*_LABELS, label), f"{change(old_value, new_value)} while the job runs", stop)


def validate_priority_update(subject: Subject, stop: str = _SUSPEND, *, is_waiting: bool) -> Iterator[Problem]:
    """Report changes of the priority class that ValidateUpdateForWorkloadPriorityClassName rejects."""
    old_value, new_value = (job.labels.get(PRIORITY, "") for job in (subject.typed_old(Object), subject.typed(Object)))
    if new_value and not old_value and not is_waiting:
        yield immutable_label_problem(PRIORITY, subject, stop)
    if old_value and not new_value:
        message = f"cannot be removed (it was `{old_value}`)"
        yield immutable_field_problem(
            (*_LABELS, PRIORITY), message, f"set `{old_value}` or another WorkloadPriorityClass"
        )


def validate_gates_update(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateAdmissionGatedByAnnotationOnUpdate would report: gates can only be removed."""
    if not is_gate_on(ADMISSION_GATED_BY_GATE, subject):
        return
    before = {"", *_admission_gates(subject.typed_old(Object))}
    added = set(_admission_gates(subject.typed(Object))) - before
    if added:
        message = "is a new gate, but after a job is created, gates can only be removed"
        yield immutable_field_problem((*_NOTES, GATED_BY), message, "remove the new gate", min(added))


def _admission_gates(job: Object) -> Items[str]:
    return Items(job.annotations.get(GATED_BY, "").split(","), job.reading.deadline)
