"""Finds the reasons why a ClusterQueue never admits a job: the job's namespace, LimitRanges, flavors and quota.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go, flavorassigner/flavorassigner.go and
pkg/workload/resources.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.devices import UNKNOWN, device_of_resource_name
from webhook.facts.kueue import flavors as of_flavors
from webhook.facts.kueue import topology
from webhook.facts.kueue.assignment import Capacity, PodSetQuotaRequest, RejectedFlavor
from webhook.facts.kueue.configuration import read_kueue_configuration
from webhook.facts.kueue.flavors import FlavorFields
from webhook.facts.kueue.groups import KUEUE_NEVER
from webhook.facts.kueue.managed import KueueManagement, QueuePlace, selects_namespace
from webhook.facts.kueue.quota import FlavorResource, QuotaNode, QuotaTree
from webhook.facts.kueue.quota_tree import QueueFields, QuotaGroup
from webhook.facts.kueue.releases import OWN_KEYS, find_kueue_release
from webhook.facts.kueue.topology import TopologyRequest
from webhook.facts.kueue.workload import PodSetRequests, build_workload
from webhook.facts.pods.pod_requests import OutOfRangeAmount, format_thousandths_with_resource_name
from webhook.facts.resource_units import format_amount_in_kueue_units, format_amount_with_resource_name
from webhook.facts.subject import Subject
from webhook.rules.problem import MissingObject, Problem
from webhook.text.wording import counted
from webhook.typed.collections import Items
from webhook.typed.kueue import ClusterQueue, Cohort, ResourceFlavor

EXCEEDS_MAX_QUOTA: Final = KUEUE_NEVER.rule(
    "kueue-never/exceeds-max-quota",
    title="The job asks for more than its queue can ever give",
    why=(
        "Nominal quota, the lending of the cohort and the borrowing limit restrict what a ClusterQueue can give. In a "
        "StrictFIFO queue, the job also blocks all later jobs."
    ),
    function="fitsResourceQuota",
    issues=("https://github.com/opendatahub-io/odh-dashboard/pull/9053",),
)
NO_MATCHING_FLAVOR: Final = KUEUE_NEVER.rule(
    "kueue-never/no-matching-flavor",
    title="Selectors, tolerations or topology of the pods rule out every flavor of the queue",
    why=(
        "Node selectors, node affinity, missing tolerations or the topology request of the pods rule out every flavor, "
        "so the job can use no quota."
    ),
    function="findFlavorForPodSets",
)
RESOURCE_UNCOVERED: Final = KUEUE_NEVER.rule(
    "kueue-never/resource-uncovered",
    title="The ClusterQueue has no quota for a requested resource",
    why=(
        "No resource group of the queue covers the resource, so there is no quota for the resource. Often the status "
        "of the Workload does not say so."
    ),
    function="findFlavorForPodSets",
    issues=("https://github.com/AI-Hypercomputer/xpk/issues/603",),
)
NAMESPACE: Final = KUEUE_NEVER.rule(
    "kueue-never/namespace",
    title="The ClusterQueue does not accept jobs of this namespace",
    why="The namespaceSelector selects namespaces by their labels. A queue without a selector accepts no namespace.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go",
    function="nominate",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/301",),
)
LIMIT_RANGE: Final = KUEUE_NEVER.rule(
    "kueue-never/limit-range",
    title="The requests violate a LimitRange of the namespace",
    why="Kueue admits no job with pods that the LimitRange would refuse.",
    source="kubernetes-sigs/kueue@ff69552e pkg/workload/resources.go",
    function="ValidateLimitRange",
)

PODS: Final = "pods"
MOST_EXPLAINED_FLAVORS: Final = 6
"""The largest number of flavors for which a message gives reasons. A resource group has up to 64 flavors."""
_RAISE: Final = "ask the administrator to raise the quota"


@dataclass(slots=True)
class JobInClusterQueue:
    """A job that is compared with a ClusterQueue."""

    subject: Subject
    place: QueuePlace
    queue: QueueFields
    tree: QuotaTree
    node: QuotaNode
    is_implied: bool = field(init=False)
    """Whether pods without a topology request get a topology, because every flavor has a topology."""

    def __post_init__(self) -> None:
        view = self.place.view
        flavors = (of_flavors.find_flavor(name, view) for group in self.queue.groups for name in group.flavors)
        self.is_implied = all(flavor is not None and flavor.topology for flavor in flavors)

    def queue_as_text(self) -> str:
        """Return the name of the ClusterQueue for messages."""
        return self.place.view.name_with_file(ClusterQueue.gvk, self.queue.name)

    def are_all_lenders_known(self) -> bool:
        """Return whether the view has all ClusterQueues and Cohorts that could lend quota."""
        view = self.place.view
        return self.node.parent is None or (view.is_whole(ClusterQueue.gvk) and view.is_whole(Cohort.gvk))

    def _quota_requests(self, pod_set: PodSetRequests) -> dict[str, int]:
        asked = {name: value for name, value in pod_set.requests.items() if value > 0}
        if self.queue.group_of(PODS):
            asked[PODS] = pod_set.least
        return asked

    def uncovered_resource_problem(self, pod_set: PodSetRequests) -> Problem | None:
        """Return the problem of a resource that no group of the queue covers; None if all resources are covered."""
        if self.subject.once(read_kueue_configuration).ignores_undeclared:
            return None
        for name, value in self._quota_requests(pod_set).items():
            if self.queue.group_of(name) is None and not self._is_probably_transformed(name):
                return self._resource_uncovered_problem(pod_set, name, value)
        return None

    def _is_probably_transformed(self, name: str) -> bool:
        """Return whether Kueue probably counts an amount of a device, such as nvidia.com/gpucores, under another name.

        The sign is that the queue covers a resource of the same domain that no device plugin offers, such as
        nvidia.com/total-gpucores. Only a transformation in Kueue's Configuration makes this resource.
        """
        if device_of_resource_name(name).kind != "amount" or self.subject.once(read_kueue_configuration).is_known:
            return False
        domain = name.partition("/")[0]
        covered = (each for group in self.queue.groups for each in group.resources if each.startswith(f"{domain}/"))
        return any(device_of_resource_name(each) == UNKNOWN for each in covered)

    def _resource_uncovered_problem(self, pod_set: PodSetRequests, name: str, value: int) -> Problem:
        message = (
            f"asks for {format_amount_with_resource_name(name, value)}, which {self.queue_as_text()} does not cover"
        )
        if not self.subject.once(read_kueue_configuration).is_known:
            message += " and which Kueue counts unless its Configuration says otherwise"
        reason = f"Kueue: resource {name} unavailable in ClusterQueue"
        fix = (
            f"remove the request, use a queue with {name}, or ask the administrator to add {name} to "
            "coveredResources of the ClusterQueue"
        )
        return RESOURCE_UNCOVERED.problem(pod_set.path_in_object(("spec",)), f"{message} ({reason})", fix)

    def quota_requests_of_groups(self, pod_set: PodSetRequests) -> Iterator[PodSetQuotaRequest]:
        """Yield the requests of a pod set in each resource group."""
        asked: dict[QuotaGroup, dict[str, int]] = {}
        for name, value in self._quota_requests(pod_set).items():
            group = self.queue.group_of(name)
            if group is not None:
                asked.setdefault(group, {})[name] = value
        topology_request = topology.read_topology_request(pod_set.template)
        for group, requests in asked.items():
            is_of_nodes = not pod_set.per_pod.keys().isdisjoint(group.resources)
            reasons = [
                self._rejected_flavor(flavor, group, pod_set, topology_request, is_of_nodes=is_of_nodes)
                for flavor in of_flavors.existing_flavors(group.flavors, self.place.view)
            ]
            rejected = tuple(reason for reason in reasons if reason is not None)
            excluded = {reason.flavor for reason in rejected}
            fitting_flavors = [name for name in group.flavors if name not in excluded]
            yield PodSetQuotaRequest(pod_set, group, requests, Items(fitting_flavors, self.subject.deadline), rejected)

    def _rejected_flavor(
        self,
        flavor: FlavorFields,
        group: QuotaGroup,
        pod_set: PodSetRequests,
        topology_request: TopologyRequest,
        *,
        is_of_nodes: bool,
    ) -> RejectedFlavor | None:
        """Return why a flavor does not fit pods; None if the flavor fits. The quota of the flavor is not compared."""
        view = self.place.view
        reason = topology.why_topology_does_not_fit(
            topology_request, flavor, view, is_implied=self.is_implied, is_of_nodes=is_of_nodes
        )
        if reason:
            return RejectedFlavor(flavor.name, reason, is_topology=True)
        keys = self._compared_label_keys(flavor, group)
        reason = of_flavors.why_flavor_does_not_fit(flavor, pod_set.template, keys)
        return RejectedFlavor(flavor.name, reason) if reason else None

    def _compared_label_keys(self, flavor: FlavorFields, group: QuotaGroup) -> frozenset[str]:
        """Return the label keys for which Kueue compares selectors with the flavor: the keys of the flavor, and before
        Kueue 0.17 the keys of all flavors of the resource group.
        """
        if find_kueue_release(self.subject) >= OWN_KEYS:
            return frozenset(flavor.labels)
        flavors = of_flavors.existing_flavors(group.flavors, self.place.view)
        return frozenset(key for other in flavors for key in other.labels)

    def no_fitting_flavor_problem(self, wanted: PodSetQuotaRequest, potential: Capacity) -> Problem:
        """Return the problem of a pod set that fits no flavor, or no flavor with enough quota."""
        reasons = [*wanted.rejected_flavors(potential)]
        explanation = "; ".join(self._reason_as_text(reason) for reason in reasons[:MOST_EXPLAINED_FLAVORS])
        left = len(reasons) - MOST_EXPLAINED_FLAVORS
        if left > 0:
            explanation = f"{explanation} (and {counted(left, 'other flavor')} do not fit)"
        at = wanted.pod_set.path_in_object(("spec",))
        if any(reason.resource for reason in reasons):
            explanation = f"{self.describe_request(wanted, reasons)}, but {explanation}{self._origin_of_quota()}"
            return exceeds_max_quota_problem(at, explanation, self._fix_for_reasons(reasons))
        return no_matching_flavor_problem(
            at, self.queue_as_text(), explanation, _fix_for_rejected_flavors(wanted, reasons)
        )

    def describe_request(self, wanted: PodSetQuotaRequest, reasons: Sequence[RejectedFlavor]) -> str:
        """Return `the 3 pods together ask for 24 nvidia.com/gpu`, with the resources for which quota is short."""
        names = dict.fromkeys(reason.resource for reason in reasons if reason.resource)
        amounts = " and ".join(format_amount_with_resource_name(name, wanted.requests[name]) for name in names)
        count = wanted.pod_set.least
        if count == 1 or [*names] == [PODS]:
            return f"asks for {amounts}"
        return f"the {count} pods together ask for {amounts}"

    def _reason_as_text(self, rejected: RejectedFlavor) -> str:
        if not rejected.resource:
            flavor = self.place.view.get_without_noting(ResourceFlavor.gvk, "", rejected.flavor)
            flavor_name = f"flavor `{rejected.flavor}`{self.place.view.file_of_object_as_text(flavor)}"
            return f"{flavor_name} does not fit because {rejected.reason}"
        pair = (rejected.flavor, rejected.resource)
        return f"flavor `{rejected.flavor}` can give at most {self.describe_quota_sources(pair, rejected.most)}"

    def describe_quota_sources(self, pair: FlavorResource, most: int) -> str:
        """Return `16 nvidia.com/gpu (8 of its own and 8 borrowed from cohort research)`."""
        name, own = pair[1], self.node.quota(pair).nominal
        amount = format_amount_with_resource_name(name, most)
        if self.node.parent is None or most <= own:
            return amount
        borrowed = f"{format_amount_in_kueue_units(name, most - own)} borrowed from cohort `{self.node.parent.name}`"
        return f"{amount} ({format_amount_in_kueue_units(name, own)} of its own and {borrowed})"

    def _origin_of_quota(self) -> str:
        """Return the file with the quota, if there is one: "; see ClusterQueue `q` in queues.yaml"."""
        queue = self.queue_as_text()
        return "" if queue.endswith("`") else f"; see {queue}"

    def _fix_for_reasons(self, reasons: Sequence[RejectedFlavor]) -> str:
        most: dict[str, int] = {}
        for reason in reasons:
            if reason.resource:
                most[reason.resource] = max(most.get(reason.resource, 0), reason.most)
        positive = [format_amount_with_resource_name(name, value) for name, value in most.items() if value > 0]
        if len(positive) < len(most) or not positive:
            return f"use another queue, or {_RAISE}"
        return f"ask for at most {' and '.join(positive)}, use another queue, or {_RAISE}"

    def not_fitting_together_problem(self, short: Sequence[PodSetQuotaRequest], potential: Capacity) -> Problem:
        """Return the problem of pod sets that fit separately, but not together."""
        totals: Counter[str] = Counter()
        for wanted in short:
            totals.update(wanted.requests)
        names = ", ".join(wanted.pod_set.name for wanted in short)
        asked = " and ".join(format_amount_with_resource_name(name, value) for name, value in totals.items())
        flavors = dict.fromkeys(flavor for wanted in short for flavor in wanted.flavors)
        limits = []
        for flavor in [*flavors][:MOST_EXPLAINED_FLAVORS]:
            amounts = [self.describe_quota_sources((flavor, name), potential((flavor, name))) for name in totals]
            limits.append(f"flavor `{flavor}` can give at most {' and '.join(amounts)}")
        most = f"{'; '.join(limits)}{self._origin_of_quota()}"
        message = f"asks for {asked} in pod sets {names}, which Kueue admits together, but {most}"
        return exceeds_max_quota_problem(("spec",), message, f"ask for less, use another queue, or {_RAISE}")


def exceeds_max_quota_problem(
    path: FieldPath | str, message: str = "", fix: str = "", missing: tuple[MissingObject, ...] = ()
) -> Problem:
    """Return the problem of a request for more quota than a ClusterQueue can ever have.

    With missing objects, it is not known whether the problem exists.
    """
    reason = f"{message} (Kueue: ExceedsMaxQuota)" if message else ""
    return EXCEEDS_MAX_QUOTA.problem(path, reason, fix, missing=missing)


def no_matching_flavor_problem(path: FieldPath | str, queue: str, explanation: str = "", fix: str = "") -> Problem:
    """Return the problem of a pod set that fits no flavor, or of a queue without flavors."""
    message = f"{explanation}, so {queue} never admits the job (Kueue: NoMatchingFlavor)"
    if not explanation:
        message = f"leads to {queue}, which has no resource group and admits nothing"
        fix = "add a resource group to the ClusterQueue"
    return NO_MATCHING_FLAVOR.problem(path, message, fix)


def _fix_for_rejected_flavors(wanted: PodSetQuotaRequest, reasons: Sequence[RejectedFlavor]) -> str:
    if not all(reason.is_topology for reason in reasons):
        fixes = dict.fromkeys(_fix_for_rejected_flavor(rejected.reason) for rejected in reasons)
        return f"{', '.join(fixes)}, or use another queue"
    if topology.read_topology_request(wanted.pod_set.template).is_explicit:
        return "use a queue with such a topology, or do not ask for a topology"
    return "use a queue without a topology"


def _fix_for_rejected_flavor(reason: str) -> str:
    """Return the fix for a reason why a flavor does not fit pods."""
    if reason.startswith(of_flavors.TAINTED):
        return "tolerate the taint"
    if reason.startswith(of_flavors.UNMATCHED):
        return f"change the {reason.removeprefix(of_flavors.UNMATCHED).partition(' of the pods')[0].strip()}"
    return "change what the pods ask of a topology"


def validate_namespace_is_selected(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problem of a ClusterQueue that has no namespaceSelector or does not select the job's namespace."""
    if place.queue is None:
        return
    selector = place.queue.namespace_selector
    is_selected = selects_namespace(selector, subject.namespace, place.view)
    if selector is None:
        message = "has no namespaceSelector, so it accepts no job of any namespace"
        fix = "set spec.namespaceSelector of the ClusterQueue to {}, which means every namespace, or use another queue"
    elif is_selected is None:
        place.view.note_missing(MissingObject(kind="Namespace", name=subject.namespace))
        return
    elif not is_selected:
        message = (
            f"accepts no jobs of namespace `{subject.namespace}` because its namespaceSelector does not match the "
            "namespace"
        )
        fix = "use another queue, or ask the owner of the ClusterQueue to add the namespace"
    else:
        return
    reason = "Kueue: workload namespace doesn't match ClusterQueue selector"
    queue = place.view.name_with_file(ClusterQueue.gvk, place.queue.name)
    yield NAMESPACE.problem(place.at, f"leads to {queue}, which {message} ({reason})", fix)


def validate_limit_ranges(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Report requests that a LimitRange forbids. Kueue does not admit pods with such requests."""
    for pod_set in subject.once(build_workload).pod_sets:
        for outside in pod_set.outside:
            yield _limit_range_problem(pod_set, outside)


def _limit_range_problem(pod_set: PodSetRequests, outside: OutOfRangeAmount) -> Problem:
    name = outside.resource
    value = format_thousandths_with_resource_name(name, outside.value)
    bound = format_thousandths_with_resource_name(name, outside.bound)
    side, allowed = ("more than the maximum", "most") if outside.is_above else ("less than the minimum", "least")
    message = f"asks for {value}, {side} of {bound} in a LimitRange of the namespace"
    path = pod_set.path_in_object(outside.path)
    return LIMIT_RANGE.problem(path, f"{message}, so Kueue never admits the job", f"request at {allowed} {bound}")
