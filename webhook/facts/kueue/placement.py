"""Whether the pod sets of a job fit into a ClusterQueue: their number, the namespace, LimitRanges, flavors, quota.

Sources: kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go, flavorassigner.go and pkg/workload/resources.go. A
bound that says never is Kueue's own: what all lenders together could give if nothing were in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from webhook.facts.kueue.assignment import Wanted, together
from webhook.facts.kueue.blocked import NEVER, Place
from webhook.facts.kueue.fitting import Fitting
from webhook.facts.kueue.managed import Managed, takes_namespace
from webhook.facts.kueue.node_room import unplaced, unplaced_together
from webhook.facts.kueue.releases import most_pod_sets
from webhook.facts.kueue.waiting import waiting
from webhook.facts.kueue.workload import PodSetRequests, workload
from webhook.facts.pods.pod_requests import OutOfRange, units
from webhook.facts.resource_units import of_resource
from webhook.facts.subject import Subject
from webhook.problem import MissingObject, Problem
from webhook.releases import shown

_REPEATED: Final = {
    ("jobset.x-k8s.io", "JobSet"): "replicatedJobs",
    ("workload.codeflare.dev", "AppWrapper"): "components",
}
"""What kinds have several of, each with a pod template."""


def pod_set_count(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """The CustomResourceDefinition of Workloads bounds their pod sets; no event tells a job of it."""
    count, release = len(subject.once(workload).pod_sets), subject.assumptions.kueue
    if count > most_pod_sets(release):
        most = most_pod_sets(release)
        message = (
            f"has {count} pod templates, but a Workload of Kueue {shown(release)} has at most {most} pod sets, one"
        )
        message = f"{message} for each template, so Kueue creates no Workload and the job waits"
        what = _REPEATED.get(subject.group_kind, "pod templates")
        fix = f"use at most {most} {what}, and more replicas of those that are alike"
        yield NEVER("pod-set-count", "spec", message, fix)


def namespace(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """The ClusterQueue takes jobs of the namespaces that it selects; without a selector, of none."""
    if place.queue is None:
        return
    selector = place.queue.spec.get("namespaceSelector")
    is_taken = takes_namespace(selector, subject.namespace, place.view)
    if selector is None:
        message = "has no namespaceSelector, so it takes jobs of no namespace"
        fix = "set spec.namespaceSelector of the ClusterQueue to {}, which means every namespace, or use another queue"
    elif is_taken is None:
        place.view.note(MissingObject(kind="Namespace", name=subject.namespace))
        return
    elif not is_taken:
        message = (
            f"takes no jobs of namespace `{subject.namespace}` because its namespaceSelector does not match the "
            "namespace"
        )
        fix = "use another queue, or ask the owner of the ClusterQueue to add the namespace"
    else:
        return
    reason = "Kueue: workload namespace doesn't match ClusterQueue selector"
    yield NEVER("namespace", place.at, f"leads to ClusterQueue `{place.queue.name}`, which {message} ({reason})", fix)


def limit_ranges(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Kueue refuses what a LimitRange would refuse of the pods later."""
    for pod_set in subject.once(workload).pod_sets:
        for each in subject.deadline.paced(pod_set.outside):
            yield _outside(pod_set, each)


def _outside(pod_set: PodSetRequests, each: OutOfRange) -> Problem:
    value, bound = (of_resource(each.resource, units(each.resource, milli)) for milli in (each.value, each.bound))
    side = f"more than the {bound} that" if each.is_above else f"less than the {bound} that"
    message = f"asks for {value}, {side} a LimitRange of the namespace allows, so Kueue never admits the job"
    return NEVER(
        "limit-range", pod_set.at(each.path), message, f"request at {'most' if each.is_above else 'least'} {bound}"
    )


def flavors_and_quota(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Every pod set gets flavors with enough quota: ever, and now."""
    if place.queue is None or place.tree is None or place.node is None or subject.once(workload).missing:
        return
    yield from _problems(Fitting(subject, place, place.queue, place.tree, place.node))


def _problems(fitting: Fitting) -> Iterator[Problem]:
    """What is in the way, the first kind of it alone."""
    pod_sets = [each for each in fitting.subject.once(workload).pod_sets if each.least > 0]
    if not fitting.queue.groups and pod_sets:
        message = f"leads to ClusterQueue `{fitting.queue.name}`, which has no resource group and admits nothing"
        yield NEVER("no-matching-flavor", fitting.place.at, message, "add a resource group to the ClusterQueue")
        return
    wanted: list[Wanted] = []
    for each in fitting.subject.deadline.paced(pod_sets):
        problem = fitting.uncovered(each)
        if problem is not None:
            yield problem
            return
        wanted.extend(fitting.wanted(each))
    if not fitting.place.view.missing():
        yield from _judged(fitting, wanted)


def _judged(fitting: Fitting, wanted: Sequence[Wanted]) -> Iterator[Problem]:
    ever = partial(fitting.tree.potential, fitting.node)
    hopeless = [each for each in wanted if not each.fitting(ever)]
    if hopeless:
        yield from (fitting.hopeless(each, ever) for each in hopeless)
        return
    short = together(wanted, ever, fitting.subject.deadline)
    if short:
        yield fitting.too_much_together(short, ever)
        return
    told = [problem for each in wanted if (problem := unplaced(fitting, each, ever))]
    if not told:
        told = [*unplaced_together(fitting, wanted, ever)]
    if told or fitting.place.view.missing():
        yield from told
        return
    yield from waiting(fitting, wanted)
