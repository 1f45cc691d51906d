"""The checks of the queues of Kueue, and of the objects that queues refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from webhook.facts.check import changes_fields_that_checks_read
from webhook.facts.kueue import queue, queue_flavors, queue_nodes, queue_quota, queue_workloads
from webhook.facts.kueue.objects import CHECK_PARAMETERS, CONFIGURATIONS, GROUP, QUEUES
from webhook.facts.subject import Check, Subject
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem


def _build_check_of_queue_rules(kind: str, *rules: Callable[[Subject], Iterator[Problem]]) -> Check:
    def run_queue_rules(subject: Subject) -> Iterator[Problem]:
        for rule in rules if subject.once(changes_fields_that_checks_read) else ():
            yield from rule(subject)

    lookups = (*QUEUES, *CHECK_PARAMETERS, NAMESPACES, CONFIGURATIONS)
    return Check(group="kueue-queue", run=run_queue_rules, kinds=frozenset(((GROUP, kind),)), lookups=lookups)


CHECKS: Final = (
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
        queue.check_inactive_queue,
        queue.advise_preemption,
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
        queue.check_flavor_topology,
    ),
    _build_check_of_queue_rules("Topology", queue_nodes.validate_topology),
    _build_check_of_queue_rules(
        "AdmissionCheck", queue.validate_controller_name_unchanged, queue.check_check_parameters
    ),
    _build_check_of_queue_rules(
        "Workload",
        queue_workloads.validate_workload,
        queue_workloads.validate_priority_boost,
        queue_workloads.validate_workload_update,
    ),
)
