"""Whether the pod sets of a job fit into a ClusterQueue: their number, the namespace, LimitRanges, flavors, quota.

Sources: kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go, flavorassigner.go and pkg/workload/resources.go. A
bound that says never is Kueue's own: what all lenders together could give if nothing were in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from webhook.facts.kueue.assignment import Wanted, together
from webhook.facts.kueue.fitting import Fitting, no_matching_flavor
from webhook.facts.kueue.groups import KUEUE_NEVER
from webhook.facts.kueue.managed import Managed, takes_namespace
from webhook.facts.kueue.node_room import unplaced, unplaced_together
from webhook.facts.kueue.place import Place
from webhook.facts.kueue.releases import most_pod_sets
from webhook.facts.kueue.waiting import waiting
from webhook.facts.kueue.workload import PodSetRequests, workload
from webhook.facts.pods.pod_requests import OutOfRange, units
from webhook.facts.resource_units import of_resource
from webhook.facts.subject import Subject
from webhook.problem import MissingObject, Problem
from webhook.releases import shown

POD_SET_COUNT: Final = KUEUE_NEVER.rule(
    "kueue-never/pod-set-count",
    title="A job has no more pod sets than a Workload can have.",
    why="The API server refuses the Workload, and only the log of Kueue tells.",
    source="kubernetes-sigs/kueue#12818, config/components/crd/bases/kueue.x-k8s.io_workloads.yaml",
    issues=(
        "https://github.com/kubernetes-sigs/jobset/issues/597",
        "https://github.com/kubernetes-sigs/kueue/issues/12818",
        "https://github.com/kubernetes-sigs/kueue/pull/12819",
        "https://github.com/kubernetes-sigs/kueue/issues/11379",
    ),
)
NAMESPACE: Final = KUEUE_NEVER.rule(
    "kueue-never/namespace",
    title="The ClusterQueue takes jobs of the namespace.",
    why="Its namespaceSelector selects namespaces by their labels; without one it takes none.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go",
    function="nominate",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/301",),
)
LIMIT_RANGE: Final = KUEUE_NEVER.rule(
    "kueue-never/limit-range",
    title="Requests are within the LimitRanges of the namespace.",
    why="Kueue admits no job whose pods could not be created.",
    source="kubernetes-sigs/kueue@ff69552e pkg/workload/resources.go",
    function="ValidateLimitRange",
)

_REPEATED: Final = {
    ("jobset.x-k8s.io", "JobSet"): "replicatedJobs",
    ("workload.codeflare.dev", "AppWrapper"): "components",
}
"""What kinds have several of, each with a pod template."""


def validate_pod_set_count(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """The CustomResourceDefinition of Workloads bounds their pod sets; no event tells a job of it."""
    count, most = len(subject.once(workload).pod_sets), most_pod_sets(subject.assumptions.kueue)
    if count > most:
        release = f"a Workload of Kueue {shown(subject.assumptions.kueue)}"
        message = (
            f"has {count} pod templates, but {release} has at most {most} pod sets, one for each template, so Kueue "
            "creates no Workload and the job waits"
        )
        what = _REPEATED.get(subject.group_kind, "pod templates")
        fix = f"use at most {most} {what}, and more replicas of those that are alike"
        yield POD_SET_COUNT.problem("spec", message, fix)


def validate_namespace(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """The ClusterQueue takes jobs of the namespaces that it selects; without a selector, of none."""
    if place.queue is None:
        return
    selector = place.queue.namespace_selector
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
    yield NAMESPACE.problem(place.at, f"leads to ClusterQueue `{place.queue.name}`, which {message} ({reason})", fix)


def validate_limit_ranges(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Kueue refuses what a LimitRange would refuse of the pods later."""
    for pod_set in subject.once(workload).pod_sets:
        for outside in pod_set.outside:
            yield _limit_range(pod_set, outside)


def _limit_range(pod_set: PodSetRequests, outside: OutOfRange) -> Problem:
    name = outside.resource
    value, bound = (of_resource(name, units(name, milli)) for milli in (outside.value, outside.bound))
    side, allowed = ("more", "most") if outside.is_above else ("less", "least")
    message = f"asks for {value}, {side} than the {bound} that a LimitRange of the namespace allows"
    path = pod_set.at(outside.path)
    return LIMIT_RANGE.problem(path, f"{message}, so Kueue never admits the job", f"request at {allowed} {bound}")


def validate_flavors_and_quota(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Every pod set gets flavors with enough quota: ever, and now."""
    if place.queue is None or place.tree is None or place.node is None or subject.once(workload).missing:
        return
    yield from _problems(Fitting(subject, place, place.queue, place.tree, place.node))


def _problems(fitting: Fitting) -> Iterator[Problem]:
    """What is in the way, the first kind of it alone."""
    pod_sets = [pod_set for pod_set in fitting.subject.once(workload).pod_sets if pod_set.least > 0]
    if not fitting.queue.groups and pod_sets:
        message = f"leads to ClusterQueue `{fitting.queue.name}`, which has no resource group and admits nothing"
        yield no_matching_flavor(fitting.place.at, message, "add a resource group to the ClusterQueue")
        return
    wanted: list[Wanted] = []
    for pod_set in pod_sets:
        uncovered = fitting.uncovered(pod_set)
        if uncovered is not None:
            yield uncovered
            return
        wanted.extend(fitting.wanted(pod_set))
    if not fitting.place.view.missing():
        yield from _judged(fitting, wanted)


def _judged(fitting: Fitting, wanted: Sequence[Wanted]) -> Iterator[Problem]:
    ever = partial(fitting.tree.potential, fitting.node)
    hopeless = [pods for pods in wanted if not pods.fitting(ever)]
    if hopeless:
        yield from (fitting.hopeless(pods, ever) for pods in hopeless)
        return
    short = together(wanted, ever)
    if short:
        yield fitting.too_much_together(short, ever)
        return
    lacking = [lack for pods in wanted if (lack := unplaced(fitting, pods, ever))]
    if not lacking:
        lacking = [*unplaced_together(fitting, wanted, ever)]
    if lacking or fitting.place.view.missing():
        yield from lacking
        return
    yield from waiting(fitting, wanted)
