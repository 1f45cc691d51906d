"""The checks of Kueue: jobs in its queues, and the queues themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.kueue import (
    job,
    job_kinds,
    job_serving,
    job_topology,
    queue,
    queue_flavors,
    queue_inactive,
    queue_nodes,
    queue_quota,
    queue_workloads,
)
from webhook.facts.kueue.advice import advise_flavors, advise_max_exec_time, advise_pods_without_quota_use
from webhook.facts.kueue.configuration import TOPOLOGY_GATE, is_gate_on
from webhook.facts.kueue.fact import predict_admission
from webhook.facts.kueue.managed import how_kueue_manages, may_concern_kueue
from webhook.facts.kueue.not_now import check_queue_required
from webhook.facts.kueue.objects import CHECK_PARAMETERS, CONFIGURATIONS, GROUP, LOOKUPS, QUEUE_NAME, QUEUES
from webhook.facts.kueue.trainer_releases import check_flavor_of_pods, check_resumed
from webhook.facts.kueue.unmanaged import check_unmanaged
from webhook.facts.read_changes import changes_fields_that_checks_read
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.typed.objects import Object

_RULES: Final = (
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
)
_NO_TOPOLOGY: Final = ("deployment", "statefulset")
_UNASKED: Final = ("owner", "kind", "framework", "namespace")
"""The reasons for which an object is not managed and Kueue's webhooks ignore it."""


def validate_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that Kueue's webhooks would report of a job."""
    how = subject.once(how_kueue_manages)
    if how.why_not in _UNASKED or not subject.once(changes_fields_that_checks_read):
        return
    for validate in _RULES:
        yield from validate(subject, how)
    if how.framework not in _NO_TOPOLOGY and is_gate_on(TOPOLOGY_GATE, subject):
        yield from job_topology.validate_topology(subject)


def _is_newly_queued(subject: Subject) -> bool:
    """Return whether a job is created or gets another queue; Kueue itself reports on a job that is queued already."""
    new, old = subject.typed(Object), subject.typed_old(Object)
    return not old or new.labels.get(QUEUE_NAME) != old.labels.get(QUEUE_NAME)


def check_never_admitted(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why a job can never be admitted."""
    yield from _problems_of_predicted_admission(subject, "kueue-never/")


def check_not_admitted_now(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why a job waits until another object changes."""
    if subject.once(_is_newly_queued):
        yield from check_queue_required(subject)
    yield from _problems_of_predicted_admission(subject, "kueue-not-now/")


def _problems_of_predicted_admission(subject: Subject, group: str) -> Iterator[Problem]:
    if subject.once(_is_newly_queued):
        yield from (problem for problem in subject.once(predict_admission).problems if problem.code.startswith(group))


def check_not_managed(subject: Subject) -> Iterator[Problem]:
    """Yield the reasons why Kueue does not manage a job that seems meant for it."""
    if subject.once(_is_newly_queued):
        yield from check_unmanaged(subject)


def check_unintended_settings(subject: Subject) -> Iterator[Problem]:
    """Yield settings that Kueue accepts and that are probably not intended."""
    if subject.once(_is_newly_queued):
        yield from advise_max_exec_time(subject)
        yield from advise_flavors(subject)
        yield from advise_pods_without_quota_use(subject)


def _build_check_of_queue_rules(kind: str, *rules: Callable[[Subject], Iterator[Problem]]) -> Check:
    def run_queue_rules(subject: Subject) -> Iterator[Problem]:
        for rule in rules if subject.once(changes_fields_that_checks_read) else ():
            yield from rule(subject)

    lookups = (*QUEUES, *CHECK_PARAMETERS, NAMESPACES, CONFIGURATIONS)
    return Check(group="kueue-queue", run=run_queue_rules, kinds=frozenset(((GROUP, kind),)), lookups=lookups)


CHECKS: Final = (
    Check(group="kueue-job", run=validate_job, lookups=LOOKUPS, when=may_concern_kueue),
    Check(group="kueue-never", run=check_never_admitted, lookups=LOOKUPS, when=may_concern_kueue),
    Check(
        group="kueue-never", run=check_resumed, kinds=frozenset((TRAIN_JOB,)), lookups=LOOKUPS, when=may_concern_kueue
    ),
    Check(
        group="kueue-advice",
        run=check_flavor_of_pods,
        kinds=frozenset((TRAIN_JOB,)),
        lookups=LOOKUPS,
        when=may_concern_kueue,
    ),
    Check(group="kueue-not-now", run=check_not_admitted_now, lookups=LOOKUPS, when=may_concern_kueue),
    Check(group="kueue-unmanaged", run=check_not_managed, lookups=LOOKUPS, when=may_concern_kueue),
    Check(group="kueue-advice", run=check_unintended_settings, lookups=LOOKUPS, when=may_concern_kueue),
    _build_check_of_queue_rules(
        "ClusterQueue",
        queue_flavors.validate_resource_groups,
        queue_quota.validate_quotas,
        queue.validate_enum_fields,
        queue.validate_preemption,
        queue.validate_namespace_selector,
        queue_quota.validate_fair_sharing,
        queue.validate_admission_checks,
        queue.validate_concurrent_admission,
        queue.advise_cluster_queue,
        queue_inactive.check_inactive_queue,
        queue_inactive.advise_preemption,
        queue_quota.advise_zero_fair_sharing_weight,
    ),
    _build_check_of_queue_rules(
        "Cohort",
        queue_flavors.validate_resource_groups,
        queue_quota.validate_quotas,
        queue_quota.validate_fair_sharing,
        queue_quota.advise_cohort_cycle,
        queue_quota.advise_zero_fair_sharing_weight,
    ),
    _build_check_of_queue_rules("LocalQueue", queue.validate_local_queue, queue.advise_local_queue),
    _build_check_of_queue_rules(
        "ResourceFlavor",
        queue_nodes.validate_resource_flavor,
        queue_flavors.advise_unused_flavor,
        queue_inactive.check_flavor_topology,
    ),
    _build_check_of_queue_rules("Topology", queue_nodes.validate_topology),
    _build_check_of_queue_rules(
        "AdmissionCheck", queue.validate_controller_name_unchanged, queue_inactive.check_check_parameters
    ),
    _build_check_of_queue_rules(
        "Workload",
        queue_workloads.validate_workload,
        queue_workloads.validate_priority_boost,
        queue_workloads.validate_workload_update,
    ),
)
