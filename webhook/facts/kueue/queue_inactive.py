"""Queues that are inactive because of their AdmissionChecks or a Topology, and preemption settings without effect.

Each is reported on the object with the author that can fix it.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go inactiveReason,
pkg/controller/admissionchecks, pkg/scheduler/preemption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.facts.kueue.admission_checks import why_checks_keep_queue_inactive
from webhook.facts.kueue.configuration import read_kueue_configuration
from webhook.facts.kueue.groups import KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.objects import GROUP, MULTI_KUEUE_CONFIG, PROVISIONING_CONFIG
from webhook.facts.kueue.quota_tree import read_cluster_queue
from webhook.facts.kueue.releases import find_kueue_release, is_kueue_release_known
from webhook.facts.kueue.types import AdmissionCheck, ClusterQueue, ResourceFlavor, Topology
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem

INACTIVE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/inactive-by-check",
    title="An AdmissionCheck keeps the ClusterQueue inactive",
    why="An inactive ClusterQueue admits no job, however long the job waits.",
    refused_by="nothing; the queue is inactive",
    function="inactiveReason",
)
PARAMETERS: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/check-parameters",
    title="The parameters of an AdmissionCheck do not exist",
    why="The check stays inactive, and so does each ClusterQueue that names it.",
    refused_by="nothing; the check is inactive",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/admissionchecks",
)
FLAVOR_TOPOLOGY: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/topology-missing",
    title="The Topology of a flavor does not exist",
    why="Each ClusterQueue with the flavor is inactive until the Topology exists.",
    refused_by="nothing; the queue is inactive",
    function="inactiveReason",
)
PREEMPTION: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/preemption-without-effect",
    title="A preemption setting of a ClusterQueue has no effect",
    why="Jobs that the setting should preempt keep their quota.",
    refused_by="nothing; nothing is preempted",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/preemption",
    level="advice",
    fails="silent",
)
_BOTH: Final = "MultiKueueWithProvisioningRequest"
_BOTH_FROM: Final = (0, 16)
_KINDS: Final[Mapping[str, GroupVersionKind]] = {
    f"{GROUP}/provisioning-request": PROVISIONING_CONFIG,
    f"{GROUP}/multikueue": MULTI_KUEUE_CONFIG,
}
"""The kinds of parameters, by the controller of the check."""


def check_inactive_queue(subject: Subject) -> Iterator[Problem]:
    """Yield the AdmissionChecks that keep a ClusterQueue inactive."""
    queue = subject.typed(ClusterQueue)
    for cause in why_checks_keep_queue_inactive(read_cluster_queue(queue), subject.cluster_view()):
        is_old = not is_kueue_release_known(subject) or find_kueue_release(subject) < _BOTH_FROM
        if cause.is_known and not (_BOTH in cause.text and is_old):
            message = f"the ClusterQueue is inactive: {cause.text}"
            fix = f"create {cause.missing}, or remove it" if cause.missing else "remove or correct the AdmissionCheck"
            yield INACTIVE.problem(queue.spec.path("admissionChecksStrategy"), message, fix)


def check_check_parameters(subject: Subject) -> Iterator[Problem]:
    """Yield parameters of an AdmissionCheck that do not exist."""
    spec, view = subject.typed(AdmissionCheck).spec, subject.cluster_view()
    kind, parameters = _KINDS.get(spec.controller_name), spec.parameters
    if kind is None or parameters.kind != kind.kind or not parameters.name:
        return
    version = subject.attributes.kind.version
    if view.lacks(kind._replace(version=version), parameters.name):
        message = f"is a {kind.kind} that does not exist, so the AdmissionCheck and its ClusterQueues are inactive"
        yield PARAMETERS.problem(parameters.path("name"), message, f"create the {kind.kind}", parameters.name)


def check_flavor_topology(subject: Subject) -> Iterator[Problem]:
    """Yield a Topology of a flavor that does not exist, unless other clusters run its jobs."""
    spec, view = subject.typed(ResourceFlavor).spec, subject.cluster_view()
    if spec.topology_name and view.lacks(Topology.gvk, spec.topology_name):
        message = "is a Topology that does not exist, so each ClusterQueue with the flavor is inactive"
        fix = "create the Topology, or remove topologyName"
        yield FLAVOR_TOPOLOGY.problem(spec.path("topologyName"), message, fix, spec.topology_name)


def advise_preemption(subject: Subject) -> Iterator[Problem]:
    """Yield preemption settings that have no effect."""
    spec = subject.typed(ClusterQueue).spec
    preemption, cohort = spec.preemption, spec.cohort_name or spec.cohort
    if preemption.reclaim_within_cohort != "Never" and not cohort:
        message = "has no effect without a cohort"
        yield _preemption_problem(preemption.path("reclaimWithinCohort"), message, "name a cohort, or remove it")
    borrowing = preemption.borrow_within_cohort
    configuration = subject.once(read_kueue_configuration)
    if not cohort or not (configuration.is_known or subject.cluster_view().is_whole()):
        return
    sharing = configuration.has_fair_sharing
    if sharing and borrowing.policy not in ("", "Never"):
        message = "borrowWithinCohort has no effect while Fair Sharing is on"
        yield _preemption_problem(borrowing.at, message, "remove it, or set preemptionStrategies of Fair Sharing")
    elif (
        not sharing and borrowing.policy == "Never" and borrowing.is_set and preemption.within_cluster_queue != "Never"
    ):
        message = (
            "has no effect for workloads above nominal quota while borrowWithinCohort is Never, so they preempt "
            "nothing in their own queue"
        )
        fix = "set borrowWithinCohort to LowerPriority, or lend quota"
        yield _preemption_problem(preemption.path("withinClusterQueue"), message, fix)


def _preemption_problem(path: tuple[str | int, ...], message: str, fix: str) -> Problem:
    return PREEMPTION.problem(path, message, fix)
