"""Assigns flavors to the pod sets of a Workload, and explains why no flavor fits.

Every pod set gets one flavor for all resources of a resource group. All pod sets are admitted at once. Kueue tries
flavors in their order, and the next attempt continues where the last attempt stopped. So sooner or later, Kueue may
find any possible assignment.

Source: kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/flavorassigner.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from webhook.facts.kueue.quota import FlavorResource
from webhook.facts.kueue.quota_tree import QuotaGroup
from webhook.facts.kueue.workload import PodSetRequests

Capacity: TypeAlias = Callable[[FlavorResource], int]
"""Returns the available amount of a flavor's resource."""
_MOST_TRIED: Final = 20_000
"""The largest number of assignments of flavors that are tried. If all these fail, the job still counts as possible."""


class RejectedFlavor(Struct, frozen=True):
    """A flavor that does not fit pods. Either `reason` says why, or the pods need the amount `asked` of `resource` and
    the flavor can give at most `most`.
    """

    flavor: str
    reason: str = ""
    is_topology: bool = False
    resource: str = ""
    asked: int = 0
    most: int = 0


class PodSetQuotaRequest(Struct, frozen=True):
    """The requests of one pod set in one resource group, the flavors that fit, and the flavors that do not fit."""

    pod_set: PodSetRequests
    group: QuotaGroup
    requests: Mapping[str, int]
    flavors: Sequence[str]
    rejected: tuple[RejectedFlavor, ...]

    def flavors_with_capacity(self, capacity: Capacity) -> tuple[str, ...]:
        """Return the flavors that have enough quota for this pod set alone."""
        return tuple(flavor for flavor in self.flavors if self.shortage(flavor, capacity) is None)

    def shortage(self, flavor: str, capacity: Capacity) -> RejectedFlavor | None:
        """Return the resource that the flavor lacks most, None if the flavor has enough of every resource."""
        short = [
            RejectedFlavor(flavor, resource=name, asked=value, most=most)
            for name, value in self.requests.items()
            if value > (most := capacity((flavor, name)))
        ]
        return min(short, key=lambda lack: (lack.most / lack.asked, lack.resource), default=None)

    def rejected_flavors(self, capacity: Capacity) -> Iterator[RejectedFlavor]:
        """Yield the reasons why flavors do not fit, in the order of the flavors."""
        reasons = {rejected.flavor: rejected for rejected in self.rejected}
        for flavor in self.group.flavors:
            rejected = reasons.get(flavor) or self.shortage(flavor, capacity)
            if rejected is not None:
                yield rejected


class _FlavorSearch(Struct):
    """A search for a flavor for each of several pod sets in one resource group."""

    wanted: Sequence[PodSetQuotaRequest]
    capacity: Capacity
    used: dict[FlavorResource, int] = field(default_factory=dict)
    tried: int = 0

    def finds_flavors_for_all(self) -> bool:
        """Return whether all pod sets can have flavors at the same time."""
        choices = [iter(self.wanted[0].flavors)]
        chosen: list[str] = []
        while choices:
            index = len(choices) - 1
            flavor = next((name for name in choices[-1] if self._fits_in_flavor(index, name)), None)
            if flavor is None:
                choices.pop()
                if chosen:
                    self._change_usage(len(choices) - 1, chosen.pop(), -1)
                continue
            if len(choices) == len(self.wanted):
                return True
            self._change_usage(index, flavor, 1)
            chosen.append(flavor)
            choices.append(iter(self.wanted[index + 1].flavors))
            if self.tried > _MOST_TRIED:
                return True
        return False

    def _fits_in_flavor(self, index: int, flavor: str) -> bool:
        self.tried += 1
        requests = self.wanted[index].requests
        return all(
            self.used.get((flavor, name), 0) + value <= self.capacity((flavor, name))
            for name, value in requests.items()
        )

    def _change_usage(self, index: int, flavor: str, times: int) -> None:
        for name, value in self.wanted[index].requests.items():
            self.used[flavor, name] = self.used.get((flavor, name), 0) + value * times


def fit_capacity(wanted: Sequence[PodSetQuotaRequest], capacity: Capacity) -> bool:
    """Return whether there is enough quota for each pod set, and for all pod sets together."""
    is_enough_for_each = all(pods.flavors_with_capacity(capacity) for pods in wanted)
    return is_enough_for_each and not pod_sets_not_fitting_together(wanted, capacity)


def pod_sets_not_fitting_together(
    wanted: Sequence[PodSetQuotaRequest], capacity: Capacity
) -> Sequence[PodSetQuotaRequest]:
    """Return the pod sets of the first resource group that does not have enough quota for its pod sets together; () if
    every resource group has enough.
    """
    groups: dict[QuotaGroup, list[PodSetQuotaRequest]] = {}
    for pods in wanted:
        groups.setdefault(pods.group, []).append(pods)
    for members in groups.values():
        if not _FlavorSearch(members, capacity).finds_flavors_for_all():
            return members
    return ()
