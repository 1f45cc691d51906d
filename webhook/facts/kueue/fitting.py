"""One job that is to fit into one ClusterQueue: what its pod sets need of which flavors, and how that is told.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/flavorassigner.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from webhook.facts.kueue import flavors as of_flavors
from webhook.facts.kueue import topology
from webhook.facts.kueue.assignment import Capacity, Rejected, Wanted
from webhook.facts.kueue.blocked import NEVER, Place
from webhook.facts.kueue.configuration import configuration
from webhook.facts.kueue.flavors import Flavor
from webhook.facts.kueue.queues import Declared, Group
from webhook.facts.kueue.quota import FlavorResource, Node, Tree
from webhook.facts.kueue.releases import OWN_KEYS
from webhook.facts.kueue.topology import Wish
from webhook.facts.kueue.workload import PodSetRequests
from webhook.facts.resource_units import amount_text, of_resource
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.wording import counted

PODS: Final = "pods"
MOST_TOLD: Final = 6
_RAISE: Final = "ask the administrator to raise the quota"
"""Flavors whose reasons are told; a resource group has up to 64."""


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

    def _requests(self, pod_set: PodSetRequests) -> dict[str, int]:
        asked = {name: value for name, value in pod_set.requests.items() if value > 0}
        if self.queue.group_of(PODS):
            asked[PODS] = pod_set.least
        return asked

    def uncovered(self, pod_set: PodSetRequests) -> Problem | None:
        """A resource that no group of the queue covers."""
        known = self.subject.once(configuration)
        if known.ignores_undeclared:
            return None
        for name, value in self._requests(pod_set).items():
            if self.queue.group_of(name) is None:
                message = f"asks for {of_resource(name, value)}, which ClusterQueue `{self.queue.name}` does not cover"
                if not known.is_known:
                    message += " and which Kueue counts unless its Configuration says otherwise"
                reason = f"Kueue: resource {name} unavailable in ClusterQueue"
                fix = (
                    f"remove the request, use a queue with {name}, or ask the administrator to add {name} to "
                    "coveredResources of the ClusterQueue"
                )
                return NEVER("resource-uncovered", pod_set.at(("spec",)), f"{message} ({reason})", fix)
        return None

    def wanted(self, pod_set: PodSetRequests) -> Iterator[Wanted]:
        """What it needs of each resource group."""
        asked: dict[Group, dict[str, int]] = {}
        for name, value in self._requests(pod_set).items():
            group = self.queue.group_of(name)
            if group is not None:
                asked.setdefault(group, {})[name] = value
        wish = topology.wish(pod_set.template)
        for group, requests in asked.items():
            is_of_nodes = not pod_set.per_pod.keys().isdisjoint(group.resources)
            known = [(name, of_flavors.flavor(name, self.place.view)) for name in group.flavors]
            pairs = self.subject.deadline.paced(known)
            rejected = tuple(
                made
                for _, each in pairs
                if each is not None and (made := self._rejected(each, group, pod_set, wish, is_of_nodes=is_of_nodes))
            )
            refused = {each.flavor for each in rejected}
            fits = tuple(name for name in group.flavors if name not in refused)
            yield Wanted(pod_set, group, requests, fits, rejected)

    def _rejected(
        self, flavor: Flavor, group: Group, pod_set: PodSetRequests, wish: Wish, *, is_of_nodes: bool
    ) -> Rejected | None:
        """Why pods cannot have a flavor whatever its quota is."""
        view = self.place.view
        reason = topology.mismatch(wish, flavor, view, is_implied=self.is_implied, is_of_nodes=is_of_nodes)
        if reason:
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

    def hopeless(self, wanted: Wanted, ever: Capacity) -> Problem:
        """What a pod set is told that fits no flavor, or none with enough quota."""
        reasons = [*wanted.reasons(ever)]
        is_quota = any(each.resource for each in reasons)
        told = "; ".join(self._told(each) for each in reasons[:MOST_TOLD])
        left = len(reasons) - MOST_TOLD
        if left > 0:
            told = f"{told}; and {counted(left, 'other flavor')} do not fit"
        at = wanted.pod_set.at(("spec",))
        if is_quota:
            message = f"{self.asks(wanted, reasons)}, but {told} (Kueue: ExceedsMaxQuota)"
            return NEVER("exceeds-max-quota", at, message, self._fix(reasons))
        message = f"{told}, so ClusterQueue `{self.queue.name}` never admits the job (Kueue: NoMatchingFlavor)"
        fix = f"{', '.join(dict.fromkeys(_change(each.reason) for each in reasons))}, or use another queue"
        if all(each.is_topology for each in reasons):
            is_asked = topology.wish(wanted.pod_set.template).is_explicit
            fix = (
                "use a queue with such a topology, or do not ask for a topology"
                if is_asked
                else "use a queue without a topology"
            )
        return NEVER("no-matching-flavor", at, message, fix)

    def asks(self, wanted: Wanted, reasons: Sequence[Rejected]) -> str:
        """`the 3 pods together ask for 24 nvidia.com/gpu`: the amounts that are short."""
        names = dict.fromkeys(each.resource for each in reasons if each.resource)
        amounts = " and ".join(of_resource(name, wanted.requests[name]) for name in names)
        count = wanted.pod_set.least
        return (
            f"asks for {amounts}"
            if count == 1 or [*names] == [PODS]
            else f"the {count} pods together ask for {amounts}"
        )

    def _told(self, rejected: Rejected) -> str:
        if not rejected.resource:
            return f"flavor `{rejected.flavor}` does not fit because {rejected.reason}"
        pair = (rejected.flavor, rejected.resource)
        return f"flavor `{rejected.flavor}` can give at most {self.explained(pair, rejected.most)}"

    def explained(self, pair: FlavorResource, most: int) -> str:
        """`16 nvidia.com/gpu, 8 of its own and 8 borrowed from cohort research`."""
        name, own = pair[1], self.node.quota(pair).nominal
        amount = of_resource(name, most)
        if self.node.parent is None or most <= own:
            return amount
        borrowed = f"{amount_text(name, most - own)} borrowed from cohort `{self.node.parent.name}`"
        return f"{amount}, {amount_text(name, own)} of its own and {borrowed}"

    def _fix(self, reasons: Sequence[Rejected]) -> str:
        most: dict[str, int] = {}
        for each in reasons:
            if each.resource:
                most[each.resource] = max(most.get(each.resource, 0), each.most)
        positive = [of_resource(name, value) for name, value in most.items() if value > 0]
        if len(positive) < len(most) or not positive:
            return f"use another queue, or {_RAISE}"
        return f"ask for at most {' and '.join(positive)}, use another queue, or {_RAISE}"

    def too_much_together(self, short: Sequence[Wanted], ever: Capacity) -> Problem:
        """What pod sets are told that fit one by one, and not together."""
        totals: dict[str, int] = {}
        for each in short:
            for name, value in each.requests.items():
                totals[name] = totals.get(name, 0) + value
        names = ", ".join(each.pod_set.name for each in short)
        asked = " and ".join(of_resource(name, value) for name, value in totals.items())
        flavors = dict.fromkeys(flavor for each in short for flavor in each.flavors)
        told = []
        for flavor in [*flavors][:MOST_TOLD]:
            amounts = [self.explained((flavor, name), ever((flavor, name))) for name in totals]
            told.append(f"flavor `{flavor}` can give at most {' and '.join(amounts)}")
        given = "; ".join(told)
        message = (
            f"asks for {asked} in pod sets {names}, which Kueue admits together, but {given} (Kueue: ExceedsMaxQuota)"
        )
        return NEVER("exceeds-max-quota", "spec", message, f"ask for less, use another queue, or {_RAISE}")


def _change(reason: str) -> str:
    """What to do about a reason why pods cannot have a flavor."""
    if reason.startswith(of_flavors.TAINTED):
        return "tolerate the taint"
    if reason.startswith(of_flavors.UNMATCHED):
        return f"change the {reason.removeprefix(of_flavors.UNMATCHED).removesuffix('of the pods').strip()}"
    return "change what the pods ask of a topology"
