"""The checks of jobs in the queues of Kueue.

Most objects do not concern Kueue, so each check imports the modules of its rules when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import changes_fields_that_checks_read
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.kueue.configuration import TOPOLOGY_GATE, is_gate_on, may_concern_kueue
from webhook.facts.kueue.objects import LOOKUPS, QUEUE_NAME
from webhook.facts.subject import Check, Subject
from webhook.rules.problem import Problem
from webhook.typed.objects import Object

_NO_TOPOLOGY: Final = ("deployment", "statefulset")
_IGNORED_BY_WEBHOOKS: Final = ("owner", "kind", "framework", "namespace")
"""Reasons why Kueue does not manage an object. For these reasons, Kueue's webhooks also ignore the object."""


def validate_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that Kueue's webhooks would report about a job."""
    from webhook.facts.kueue import job, job_kinds, job_serving, job_topology
    from webhook.facts.kueue.managed import how_kueue_manages

    how = subject.once(how_kueue_manages)
    if how.why_not in _IGNORED_BY_WEBHOOKS or not subject.once(changes_fields_that_checks_read):
        return
    for validate in (
        job.validate_queue_name,
        job.validate_prebuilt_workload,
        job.validate_max_exec_time,
        job.validate_elastic_job,
        job.validate_admission_gates,
        job.validate_update,
        job_kinds.validate_partial_admission,
        job_kinds.validate_pod,
        job_kinds.validate_ray,
        job_kinds.validate_spark,
        job_serving.validate_serving,
    ):
        yield from validate(subject, how)
    if how.framework not in _NO_TOPOLOGY and is_gate_on(TOPOLOGY_GATE, subject):
        yield from job_topology.validate_topology(subject)


def _is_newly_queued(subject: Subject) -> bool:
    """Return whether a job is created or gets another queue.

    Other changes are not checked, because Kueue itself reports problems of queued jobs.
    """
    new, old = subject.typed(Object), subject.typed_old(Object)
    return not old or new.labels.get(QUEUE_NAME) != old.labels.get(QUEUE_NAME)


def check_never_admitted(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why a job can never be admitted."""
    yield from _problems_of_predicted_admission(subject, "kueue-never/")


def check_not_admitted_now(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why a job waits until another object changes."""
    from webhook.facts.kueue.not_now import check_queue_required

    if subject.once(_is_newly_queued):
        yield from check_queue_required(subject)
    yield from _problems_of_predicted_admission(subject, "kueue-not-now/")


def _problems_of_predicted_admission(subject: Subject, group: str) -> Iterator[Problem]:
    from webhook.facts.kueue.fact import predict_admission

    if subject.once(_is_newly_queued):
        yield from (problem for problem in subject.once(predict_admission).problems if problem.code.startswith(group))


def check_not_managed(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why Kueue does not manage a job that seems meant for a queue."""
    from webhook.facts.kueue.unmanaged import check_unmanaged

    if subject.once(_is_newly_queued):
        yield from check_unmanaged(subject)


def check_unintended_settings(subject: Subject) -> Iterator[Problem]:
    """Report settings that Kueue accepts and that are probably not intended."""
    from webhook.facts.kueue.advice import advise_flavors, advise_max_exec_time, advise_pods_without_quota_use

    if subject.once(_is_newly_queued):
        yield from advise_max_exec_time(subject)
        yield from advise_flavors(subject)
        yield from advise_pods_without_quota_use(subject)


def check_trainer_resumes_job(subject: Subject) -> Iterator[Problem]:
    """Report a queued TrainJob if Trainer never resumes it."""
    from webhook.facts.kueue.releases import check_resumed

    yield from check_resumed(subject)


def check_trainer_applies_flavor(subject: Subject) -> Iterator[Problem]:
    """Report a queued TrainJob if its pods start without the node labels of their flavor."""
    from webhook.facts.kueue.releases import check_flavor_of_pods

    yield from check_flavor_of_pods(subject)


CHECKS: Final = (
    Check(group="kueue-job", run=validate_job, lookups=LOOKUPS, when=may_concern_kueue),
    Check(group="kueue-never", run=check_never_admitted, lookups=LOOKUPS, when=may_concern_kueue),
    Check(
        group="kueue-never",
        run=check_trainer_resumes_job,
        kinds=frozenset((TRAIN_JOB,)),
        lookups=LOOKUPS,
        when=may_concern_kueue,
    ),
    Check(
        group="kueue-advice",
        run=check_trainer_applies_flavor,
        kinds=frozenset((TRAIN_JOB,)),
        lookups=LOOKUPS,
        when=may_concern_kueue,
    ),
    Check(group="kueue-not-now", run=check_not_admitted_now, lookups=LOOKUPS, when=may_concern_kueue),
    Check(group="kueue-unmanaged", run=check_not_managed, lookups=LOOKUPS, when=may_concern_kueue),
    Check(group="kueue-advice", run=check_unintended_settings, lookups=LOOKUPS, when=may_concern_kueue),
)
