"""The checks of Kueue: jobs in its queues, and the queues themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.kueue import (
    batch_job,
    cluster_queue,
    cluster_queue_quota,
    cohorts,
    concurrent_admission,
    job_validation,
    local_queue,
    pod_labels,
    ray_jobs,
    resource_flavor,
    resource_groups,
    serving,
    spark_application,
    topology_annotations,
    topology_levels,
    workload_validation,
)
from webhook.facts.kueue.advice import advise_flavors, advise_max_exec_time, advise_quota
from webhook.facts.kueue.feature_gates import TOPOLOGY, is_on
from webhook.facts.kueue.managed import concerns_kueue, managed
from webhook.facts.kueue.not_now import queue_required
from webhook.facts.kueue.objects import CONFIGURATIONS, GROUP, LOOKUPS, QUEUE_NAME, QUEUES
from webhook.facts.kueue.preflight import preflight
from webhook.facts.kueue.unmanaged import unmanaged
from webhook.facts.read_changes import changes_what_is_read
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.problem import Problem
from webhook.typed.objects import Object

_RULES: Final = (
    job_validation.validate_queue_name,
    job_validation.validate_prebuilt_workload,
    job_validation.validate_max_exec_time,
    job_validation.validate_elastic_job,
    job_validation.validate_admission_gates,
    job_validation.validate_update,
    batch_job.validate_partial_admission,
    pod_labels.validate_pod,
    ray_jobs.validate_ray,
    spark_application.validate_spark,
    serving.validate_serving,
)
_NO_TOPOLOGY: Final = ("deployment", "statefulset")
_UNASKED: Final = ("owner", "kind", "framework", "namespace")
"""Why objects are not managed whose webhook is off."""


def job(subject: Subject) -> Iterator[Problem]:
    """What Kueue's webhooks refuse of a job."""
    how = subject.once(managed)
    if how.why_not in _UNASKED or not subject.once(changes_what_is_read):
        return
    for validate in _RULES:
        yield from validate(subject, how)
    if how.framework not in _NO_TOPOLOGY and is_on(TOPOLOGY, subject):
        yield from topology_annotations.validate_topology(subject)


def _is_queued_now(subject: Subject) -> bool:
    """Whether a job is created, or gets another queue: what is queued already is Kueue's to tell."""
    new, old = subject.typed(Object), subject.typed_old(Object)
    return not old or new.labels.get(QUEUE_NAME) != old.labels.get(QUEUE_NAME)


def never(subject: Subject) -> Iterator[Problem]:
    """Why a job can never be admitted."""
    yield from _preflight(subject, "kueue-never/")


def not_now(subject: Subject) -> Iterator[Problem]:
    """Why a job has to wait."""
    if subject.once(_is_queued_now):
        yield from queue_required(subject)
    yield from _preflight(subject, "kueue-not-now/")


def _preflight(subject: Subject, group: str) -> Iterator[Problem]:
    if subject.once(_is_queued_now):
        yield from (problem for problem in subject.once(preflight).problems if problem.code.startswith(group))


def not_managed(subject: Subject) -> Iterator[Problem]:
    """Why Kueue leaves a job alone."""
    if subject.once(_is_queued_now):
        yield from unmanaged(subject)


def advice(subject: Subject) -> Iterator[Problem]:
    """What is probably not meant."""
    if subject.once(_is_queued_now):
        yield from advise_max_exec_time(subject)
        yield from advise_flavors(subject)
        yield from advise_quota(subject)


def _queue_check(kind: str, *rules: Callable[[Subject], Iterator[Problem]]) -> Check:
    def run(subject: Subject) -> Iterator[Problem]:
        for rule in rules if subject.once(changes_what_is_read) else ():
            yield from rule(subject)

    lookups = (*QUEUES, NAMESPACES, CONFIGURATIONS)
    return Check(group="kueue-queue", run=run, kinds=frozenset(((GROUP, kind),)), lookups=lookups)


CHECKS: Final = (
    Check(group="kueue-job", run=job, lookups=LOOKUPS, when=concerns_kueue),
    Check(group="kueue-never", run=never, lookups=LOOKUPS, when=concerns_kueue),
    Check(group="kueue-not-now", run=not_now, lookups=LOOKUPS, when=concerns_kueue),
    Check(group="kueue-unmanaged", run=not_managed, lookups=LOOKUPS, when=concerns_kueue),
    Check(group="kueue-advice", run=advice, lookups=LOOKUPS, when=concerns_kueue),
    _queue_check(
        "ClusterQueue",
        resource_groups.validate_resource_groups,
        cluster_queue_quota.validate_quotas,
        cluster_queue.validate_choices,
        cluster_queue.validate_preemption,
        cluster_queue.validate_namespace_selector,
        cluster_queue.validate_fair_sharing,
        cluster_queue.validate_admission_checks,
        concurrent_admission.validate_concurrent_admission,
        cluster_queue.advise_cluster_queue,
        cluster_queue.advise_fair_sharing,
    ),
    _queue_check(
        "Cohort",
        resource_groups.validate_resource_groups,
        cluster_queue_quota.validate_quotas,
        cluster_queue.validate_fair_sharing,
        cohorts.advise_cohort,
        cluster_queue.advise_fair_sharing,
    ),
    _queue_check("LocalQueue", local_queue.validate_local_queue, local_queue.advise_local_queue),
    _queue_check("ResourceFlavor", resource_flavor.validate_resource_flavor, resource_flavor.advise_flavor),
    _queue_check("Topology", topology_levels.validate_topology),
    _queue_check("AdmissionCheck", resource_flavor.validate_admission_check),
    _queue_check(
        "Workload",
        workload_validation.validate_workload,
        workload_validation.validate_priority_boost,
        workload_validation.validate_workload_update,
    ),
)
