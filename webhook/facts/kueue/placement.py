"""Whether the pod sets of a job fit into a ClusterQueue: their number, the namespace, LimitRanges, flavors, quota.

Sources: kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go, flavorassigner.go and pkg/workload/resources.go. A
bound that says never is Kueue's own: what all lenders together could give if nothing were in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from webhook.facts.kueue import flavors as of_flavors
from webhook.facts.kueue import topology
from webhook.facts.kueue.amounts import amount_text, of_resource
from webhook.facts.kueue.assignment import Capacity, Rejected, Wanted, together
from webhook.facts.kueue.blocked import NEVER, NOT_NOW, Place
from webhook.facts.kueue.configuration import configuration
from webhook.facts.kueue.flavors import Flavor
from webhook.facts.kueue.managed import Managed, namespace_labels
from webhook.facts.kueue.pod_requests import OutOfRange, units
from webhook.facts.kueue.queues import Declared, Group
from webhook.facts.kueue.quota import FlavorResource, Node, Tree
from webhook.facts.kueue.releases import MORE_POD_SETS, MOST_POD_SETS, OWN_KEYS
from webhook.facts.kueue.reservations import waiting_before
from webhook.facts.kueue.workload import PodSetRequests, workload
from webhook.facts.scheduling.node_selection import selects
from webhook.facts.subject import Subject
from webhook.problem import MissingObject, Problem
from webhook.releases import Release, shown
from webhook.wording import counted

PODS: Final = "pods"
_MOST_TOLD: Final = 6
"""Flavors whose reasons are told; a resource group has up to 64."""


def most_pod_sets(release: Release) -> int:
    """How many pod sets a Workload of a release has at most."""
    return 18 if release >= MOST_POD_SETS else 10 if release >= MORE_POD_SETS else 8


def pod_set_count(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """The CustomResourceDefinition of Workloads bounds their pod sets; no event tells a job of it."""
    count, release = len(subject.once(workload).pod_sets), subject.assumptions.kueue
    if count > most_pod_sets(release):
        message = f"has {count} pod sets, but a Workload of Kueue {shown(release)} has at most {most_pod_sets(release)}"
        yield NEVER("pod-set-count", "spec", f"{message}, so that none is created and the job waits", "join some")


def namespace(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """The ClusterQueue takes jobs of the namespaces that it selects; without a selector, of none."""
    if place.queue is None:
        return
    selector, labels = place.queue.spec.get("namespaceSelector"), namespace_labels(subject)
    if selector is None:
        message = "has no namespaceSelector, which means that it takes jobs of no namespace"
        fix = "set spec.namespaceSelector: {} there, which means every namespace, or use another queue"
    elif labels is None:
        place.view.note(MissingObject(kind="Namespace", name=subject.namespace))
        return
    elif not selects(selector, labels, subject.deadline):
        message = f"does not take jobs of namespace {subject.namespace} because its namespaceSelector selects others"
        fix = "use another queue, or ask the owner of the ClusterQueue to add the namespace"
    else:
        return
    reason = "Kueue: workload namespace doesn't match ClusterQueue selector"
    yield NEVER("namespace", place.at, f"leads to ClusterQueue {place.queue.name}, which {message} ({reason})", fix)


def limit_ranges(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Kueue refuses what a LimitRange would refuse of the pods later."""
    for pod_set in subject.once(workload).pod_sets:
        for each in subject.deadline.paced(pod_set.outside):
            yield _outside(pod_set, each)


def _outside(pod_set: PodSetRequests, each: OutOfRange) -> Problem:
    value, bound = (of_resource(each.resource, units(each.resource, milli)) for milli in (each.value, each.bound))
    side = f"more than the {bound} that" if each.is_above else f"less than the {bound} that"
    message = f"asks for {value}, {side} a LimitRange of the namespace allows, so that Kueue never admits the job"
    return NEVER("limit-range", pod_set.at(each.path), message, "change the request")


def flavors_and_quota(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """Every pod set gets flavors with enough quota: ever, and now."""
    if place.queue is None or place.tree is None or place.node is None or subject.once(workload).missing:
        return
    fitting = Fitting(subject, place, place.queue, place.tree, place.node)
    yield from fitting.problems()


@dataclass(slots=True)
class Fitting:
    """One job that is to fit into one ClusterQueue."""

    subject: Subject
    place: Place
    queue: Declared
    tree: Tree
    node: Node
    is_implied: bool = field(init=False)
    """Whether pods that ask for no topology are placed by one, because every flavor has one."""

    def __post_init__(self) -> None:
        view = self.place.view
        flavors = (of_flavors.flavor(name, view) for group in self.queue.groups for name in group.flavors)
        self.is_implied = all(each is not None and each.topology for each in flavors)

    def problems(self) -> Iterator[Problem]:
        """What is in the way, the first kind of it alone."""
        pod_sets = [each for each in self.subject.once(workload).pod_sets if each.least > 0]
        if not self.queue.groups and pod_sets:
            message = f"leads to ClusterQueue {self.queue.name}, which has no resource group and admits nothing"
            yield NEVER("no-matching-flavor", self.place.at, message, "add a resource group to it")
            return
        wanted: list[Wanted] = []
        for each in self.subject.deadline.paced(pod_sets):
            problem = self._uncovered(each)
            if problem is not None:
                yield problem
                return
            wanted.extend(self.wanted(each))
        if not self.place.view.missing():
            yield from self._judged(wanted)

    def _judged(self, wanted: Sequence[Wanted]) -> Iterator[Problem]:
        ever = partial(self.tree.potential, self.node)
        hopeless = [each for each in wanted if not each.fitting(ever)]
        if hopeless:
            yield from (self._hopeless(each, ever) for each in hopeless)
            return
        short = together(wanted, ever, self.subject.deadline)
        if short:
            yield self._too_much_together(short, ever)
            return
        unplaced = [problem for each in wanted if (problem := self._unplaced(each, ever))]
        if unplaced or self.place.view.missing():
            yield from unplaced
            return
        yield from self._waiting(wanted)

    def _requests(self, pod_set: PodSetRequests) -> dict[str, int]:
        asked = {name: value for name, value in pod_set.requests.items() if value > 0}
        if self.queue.group_of(PODS):
            asked[PODS] = pod_set.least
        return asked

    def _uncovered(self, pod_set: PodSetRequests) -> Problem | None:
        if self.subject.once(configuration).ignores_undeclared:
            return None
        for name, value in self._requests(pod_set).items():
            if self.queue.group_of(name) is None:
                message = f"asks for {of_resource(name, value)}, which ClusterQueue {self.queue.name} does not cover"
                reason = f"Kueue: resource {name} unavailable in ClusterQueue"
                fix = f"remove it, use a queue with {name}, or add it to coveredResources"
                return NEVER("resource-uncovered", pod_set.at(("spec",)), f"{message} ({reason})", fix)
        return None

    def wanted(self, pod_set: PodSetRequests) -> Iterator[Wanted]:
        """What it needs of each resource group."""
        asked: dict[Group, dict[str, int]] = {}
        for name, value in self._requests(pod_set).items():
            group = self.queue.group_of(name)
            if group is not None:
                asked.setdefault(group, {})[name] = value
        for group, requests in asked.items():
            known = [(name, of_flavors.flavor(name, self.place.view)) for name in group.flavors]
            pairs = self.subject.deadline.paced(known)
            rejected = tuple(
                made for _, each in pairs if each is not None and (made := self._rejected(each, group, pod_set))
            )
            refused = {each.flavor for each in rejected}
            fits = tuple(name for name in group.flavors if name not in refused)
            yield Wanted(pod_set, group, requests, fits, rejected)

    def _rejected(self, flavor: Flavor, group: Group, pod_set: PodSetRequests) -> Rejected | None:
        """Why pods cannot have a flavor whatever its quota is."""
        wish = topology.wish(pod_set.template)
        if reason := topology.mismatch(wish, flavor, self.place.view, is_implied=self.is_implied):
            return Rejected(flavor.name, reason, is_topology=True)
        keys = self._keys(flavor, group)
        reason = of_flavors.mismatch(flavor, pod_set.template, keys, self.subject.deadline)
        return Rejected(flavor.name, reason) if reason else None

    def _keys(self, flavor: Flavor, group: Group) -> frozenset[str]:
        """The labels that selectors are asked about: the flavor's own, before 0.17 those of the whole group."""
        if self.subject.assumptions.kueue >= OWN_KEYS:
            return frozenset(flavor.labels)
        listed = (of_flavors.flavor(name, self.place.view) for name in group.flavors)
        return frozenset(key for each in listed if each is not None for key in each.labels)

    def _hopeless(self, wanted: Wanted, ever: Capacity) -> Problem:
        reasons = [*wanted.reasons(ever)]
        is_quota = any(each.resource for each in reasons)
        told = "; ".join(self._told(each) for each in reasons[:_MOST_TOLD])
        left = len(reasons) - _MOST_TOLD
        if left > 0:
            told = f"{told}; and {counted(left, 'other flavor')}"
        at = wanted.pod_set.at(("spec",))
        if is_quota:
            message = f"{self._asks(wanted, reasons)}; {told} (Kueue: ExceedsMaxQuota)"
            return NEVER("exceeds-max-quota", at, message, self._fix(reasons))
        message = f"fits no flavor of ClusterQueue {self.queue.name}: {told} (Kueue: NoMatchingFlavor)"
        fix = "change the selector, the tolerations or the queue"
        if all(each.is_topology for each in reasons):
            is_asked = topology.wish(wanted.pod_set.template).is_explicit
            fix = "use a queue with such a topology, or ask for none" if is_asked else "use a queue without a topology"
        return NEVER("no-matching-flavor", at, message, fix)

    def _asks(self, wanted: Wanted, reasons: Sequence[Rejected]) -> str:
        names = dict.fromkeys(each.resource for each in reasons if each.resource)
        amounts = " and ".join(of_resource(name, wanted.requests[name]) for name in names)
        count = wanted.pod_set.least
        return (
            f"asks for {amounts}"
            if count == 1 or [*names] == [PODS]
            else f"asks for {amounts} in {counted(count, 'pod')}"
        )

    def _told(self, rejected: Rejected) -> str:
        if not rejected.resource:
            return f"flavor {rejected.flavor} does not fit because {rejected.reason}"
        pair = (rejected.flavor, rejected.resource)
        return f"flavor {rejected.flavor} can give at most {self._explained(pair, rejected.most)}"

    def _explained(self, pair: FlavorResource, most: int) -> str:
        """`16 (8 nominal + 8 borrowed from cohort research)`."""
        name, own = pair[1], self.node.quota(pair).nominal
        amount = of_resource(name, most)
        if self.node.parent is None or most <= own:
            return amount
        borrowed = f"{amount_text(name, most - own)} borrowed from cohort {self.node.parent.name}"
        return f"{amount} ({amount_text(name, own)} nominal + {borrowed})"

    def _fix(self, reasons: Sequence[Rejected]) -> str:
        most: dict[str, int] = {}
        for each in reasons:
            if each.resource:
                most[each.resource] = max(most.get(each.resource, 0), each.most)
        positive = [of_resource(name, value) for name, value in most.items() if value > 0]
        if len(positive) < len(most) or not positive:
            return "use another queue, or raise the quota"
        return f"ask for at most {' and '.join(positive)}, use another queue, or raise the quota"

    def _too_much_together(self, short: Sequence[Wanted], ever: Capacity) -> Problem:
        totals: dict[str, int] = {}
        for each in short:
            for name, value in each.requests.items():
                totals[name] = totals.get(name, 0) + value
        names = ", ".join(each.pod_set.name for each in short)
        asked = " and ".join(of_resource(name, value) for name, value in totals.items())
        flavors = dict.fromkeys(flavor for each in short for flavor in each.flavors)
        told = []
        for flavor in [*flavors][:_MOST_TOLD]:
            amounts = [self._explained((flavor, name), ever((flavor, name))) for name in totals]
            told.append(f"flavor {flavor} can give at most {' and '.join(amounts)}")
        given = "; ".join(told)
        message = f"asks for {asked} in pod sets {names}, which are admitted together; {given} (Kueue: ExceedsMaxQuota)"
        return NEVER("exceeds-max-quota", "spec", message, "ask for less, use another queue, or raise the quota")

    def _unplaced(self, wanted: Wanted, ever: Capacity) -> Problem | None:
        """What no nodes of a topology could hold."""
        told, pod_set = [], wanted.pod_set
        for name in wanted.fitting(ever):
            flavor = of_flavors.flavor(name, self.place.view)
            if flavor is None or not flavor.topology:
                return None
            wish = topology.wish(pod_set.template)
            placed = topology.Placement(
                wish=wish,
                flavor=flavor,
                template=pod_set.template,
                count=pod_set.least,
                requests=pod_set.per_pod,
            )
            most = topology.fits(placed, self.place.view)
            if most is None or most >= pod_set.least:
                return None
            where = f"one domain of level {wish.required}" if wish.required else "all nodes"
            told.append(f"in topology {flavor.topology} of flavor {name}, {where} can hold {most}")
        message = f"asks for {counted(pod_set.least, 'pod')} to be placed by topology; {'; '.join(told)}"
        fix = "ask for a higher level, for fewer or smaller pods, or add nodes"
        return NEVER("topology-placement", pod_set.at(("spec",)), f"{message} (Kueue: TopologyPlacementFailed)", fix)

    def _waiting(self, wanted: Sequence[Wanted]) -> Iterator[Problem]:
        """What is free now, and whether preemption could free the rest."""
        before = self._before() if self.queue.spec.get("queueingStrategy") == "StrictFIFO" else 0
        if before > 0:
            waiting = counted(before, "workload")
            message = f"leads to ClusterQueue {self.queue.name}, whose StrictFIFO order puts it behind {waiting}"
            fix = "wait, use a higher priority, or use a queue with BestEffortFIFO"
            yield NOT_NOW("queue-order", self.place.at, f"{message}, unless its priority is higher", fix)
            return
        now = partial(self.tree.available, self.node)
        if all(each.fitting(now) for each in wanted) and not together(wanted, now, self.subject.deadline):
            return
        if self._may_preempt(wanted):
            return
        short = [each for each in wanted if not each.fitting(now)] or [*wanted]
        reasons = [each for one in short for each in one.reasons(now) if each.resource]
        told = "; ".join(map(self._left, reasons[:_MOST_TOLD]))
        message = f"{self._asks(short[0], reasons)}; {told}" if told else "fits only one pod set at a time"
        message = f"{message} ({self._source()}), and the preemption settings of the queue cannot free more"
        at = short[0].pod_set.at(("spec",))
        yield NOT_NOW("waiting-for-quota", at, f"{message} (Kueue: WaitingForQuota)", "wait, or use another queue")

    def _source(self) -> str:
        """Who says what is in use."""
        reserved = self.place.queues.reserved
        if reserved is None:
            return "by the status of the ClusterQueues"
        return f"by {counted(reserved.holding, 'Workload')} with reserved quota"

    def _before(self) -> int:
        """How many other workloads wait in the same queue."""
        count = waiting_before(self.subject, self.queue.name, self.place.view)
        return _pending(self.queue) if count is None else count

    def _left(self, rejected: Rejected) -> str:
        pair = (rejected.flavor, rejected.resource)
        ever = self._explained(pair, self.tree.potential(self.node, pair))
        free = amount_text(rejected.resource, max(0, rejected.most))
        return f"flavor {rejected.flavor} has {free} of {ever} free now"

    def _may_preempt(self, wanted: Sequence[Wanted]) -> bool:
        """Whether preempting others could free enough, if they are of lower priority, or borrow."""
        settings = self.queue.spec.get("preemption", {})
        own = settings.get("withinClusterQueue", "Never") != "Never"
        reclaims = settings.get("reclaimWithinCohort", "Never") != "Never"
        if reclaims and settings.get("borrowWithinCohort", {}).get("policy", "Never") != "Never":
            return True

        def freed(pair: FlavorResource) -> int:
            used = self.tree.usage(self.node, pair)
            left = self.tree.available(self.node, pair, less_usage=used if own else 0)
            nominal = self.node.quota(pair).nominal - (0 if own else used)
            return max(left, nominal) if reclaims else left

        return (own or reclaims) and not together(wanted, freed, self.subject.deadline)


def _pending(queue: Declared) -> int:
    count = queue.status.get("pendingWorkloads")
    return count if isinstance(count, int) else 0
