"""Checks whether the pod sets of a job fit into a ClusterQueue: flavors and quota, ever and now.

Sources: kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go and flavorassigner.go. A bound that says never is
Kueue's own: what all lenders together could give if nothing were in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from webhook.facts.kueue.assignment import Capacity, PodSetQuotaRequest, pod_sets_not_fitting_together
from webhook.facts.kueue.managed import KueueManagement, QueuePlace
from webhook.facts.kueue.never import JobInClusterQueue, no_matching_flavor_problem
from webhook.facts.kueue.never_topology_placement import advise_unplaceable_pods, check_placement_together
from webhook.facts.kueue.not_now import advise_waiting_for_quota
from webhook.facts.kueue.workload import build_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import MissingObject, Problem


def validate_flavors_and_quota(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problems of pod sets without a flavor that has enough quota, first ever, then now."""
    if place.queue is None or place.tree is None or place.node is None or subject.once(build_workload).missing:
        return
    yield from _first_kind_of_problems(JobInClusterQueue(subject, place, place.queue, place.tree, place.node))


def _first_kind_of_problems(fitting: JobInClusterQueue) -> Iterator[Problem]:
    """Yield the problems of the first kind that is found."""
    pod_sets = [pod_set for pod_set in fitting.subject.once(build_workload).pod_sets if pod_set.least > 0]
    if not fitting.queue.groups and pod_sets:
        yield no_matching_flavor_problem(fitting.place.at, fitting.queue_as_text())
        return
    wanted: list[PodSetQuotaRequest] = []
    for pod_set in pod_sets:
        uncovered = fitting.uncovered_resource_problem(pod_set)
        if uncovered is not None:
            yield uncovered
            return
        wanted.extend(fitting.quota_requests_of_groups(pod_set))
    if not fitting.place.view.missing_objects_by_field():
        yield from _problems_of_wanted_quota(fitting, wanted)


def _fits_capacity(wanted: Sequence[PodSetQuotaRequest], capacity: Capacity) -> bool:
    return all(pods.flavors_with_capacity(capacity) for pods in wanted) and not pod_sets_not_fitting_together(
        wanted, capacity
    )


def _problems_independent_of_lending(
    fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest], ever: Capacity
) -> Iterator[Problem]:
    """Yield problems that do not depend on lenders in the cohort; if there are none, note that lenders are unknown."""
    hopeless = [pods for pods in wanted if not pods.flavors]
    if not hopeless:
        fitting.place.view.note_missing(
            MissingObject(kind="ClusterQueue", name=f"others of cohort {fitting.queue.cohort}")
        )
    yield from (fitting.no_fitting_flavor_problem(pods, ever) for pods in hopeless)


def _problems_of_wanted_quota(fitting: JobInClusterQueue, wanted: Sequence[PodSetQuotaRequest]) -> Iterator[Problem]:
    ever = partial(fitting.tree.potential_available_quota, fitting.node)
    if not fitting.are_all_lenders_known() and not _fits_capacity(wanted, ever):
        yield from _problems_independent_of_lending(fitting, wanted, ever)
        return
    hopeless = [pods for pods in wanted if not pods.flavors_with_capacity(ever)]
    if hopeless:
        yield from (fitting.no_fitting_flavor_problem(pods, ever) for pods in hopeless)
        return
    short = pod_sets_not_fitting_together(wanted, ever)
    if short:
        yield fitting.not_fitting_together_problem(short, ever)
        return
    lacking = [lack for pods in wanted if (lack := advise_unplaceable_pods(fitting, pods, ever))]
    if not lacking:
        lacking = [*check_placement_together(fitting, wanted, ever)]
    if lacking or fitting.place.view.missing_objects_by_field():
        yield from lacking
        return
    yield from advise_waiting_for_quota(fitting, wanted)
