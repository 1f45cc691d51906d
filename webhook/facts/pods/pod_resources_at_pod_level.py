"""Compares resources of a pod as a whole with those of its containers.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go validatePodResourceConsistency, after
defaultPodRequests and defaultHugePagePodLimits of pkg/apis/core/v1/defaults.go, which the API server applies to pods
and not to templates; sums as k8s.io/component-helpers v0.36 resource/helpers.go AggregateContainerRequests has them:
the larger of two sums: containers and sidecars, or one init container and the sidecars before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.pods import amounts
from webhook.facts.pods.amounts import HUGE
from webhook.facts.pods.groups import POD_RESOURCES
from webhook.facts.pods.pod_resources import ResourcesOfPart
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.pods import PodSpec

POD_LEVEL_WINDOWS: Final = POD_RESOURCES.rule(
    "pod-resources/pod-level-windows",
    title="A Windows pod sets resources for the pod as a whole",
    why="Resources for the pod as a whole need Linux control groups.",
    function="validateWindows",
)
POD_LEVEL_SUM: Final = POD_RESOURCES.rule(
    "pod-resources/pod-level-sum",
    title="The containers request more than the pod as a whole",
    why="The pod must have at least as much as its containers together request.",
    function="validatePodResourceConsistency",
)
ABOVE_POD_LEVEL: Final = POD_RESOURCES.rule(
    "pod-resources/above-pod-level",
    title="The container's limit is above the limit of the pod as a whole",
    why="The container can never use more than the limit of its pod.",
    function="validatePodResourceConsistency",
)

Side: TypeAlias = Literal["limits", "requests"]
SIDES: Final[tuple[Side, ...]] = ("limits", "requests")


def validate_pod_resource_consistency(places: Items[ResourcesOfPart]) -> Iterator[Problem]:
    """Yield the problems of the containers together, and of each limit, compared with the pod as a whole."""
    pod = next((place for place in places if place.part == "pod"), None)
    if pod is None:
        return
    containers = places.of([place for place in places if place.part in ("containers", "initContainers")])
    names = {name for name in (*pod.limits, *pod.requests) if name in ("cpu", "memory") or name.startswith(HUGE)}
    sums = {side: requested_sums(containers, names, side) for side in SIDES}
    for name in dict.fromkeys((*pod.requests, *pod.limits)):
        if name in names:
            yield from _validate_sums(pod, name, sums)
    for place in containers:
        if place.part == "containers":
            yield from _validate_limits(pod, place)


def _validate_sums(pod: ResourcesOfPart, name: str, sums: Mapping[Side, Mapping[str, int]]) -> Iterator[Problem]:
    """Yield requests of containers above the pod's, and for hugepages limits above the pod's limits."""
    limit, request = _amount_in_thousandths(pod.limits, name), _amount_in_thousandths(pod.requests, name)
    is_huge = name.startswith(HUGE)
    pairs: list[tuple[Side, int | None, Side]] = [("requests", request, "requests")]
    if request is None and not is_huge:
        pairs.append(("limits", limit, "requests"))
    if is_huge:
        pairs.append(("limits", limit, "limits"))
    for at, has, side in pairs:
        if has is not None and sums[side].get(name, 0) > has:
            message = f"must not be less than the {side} of the containers together"
            fix = f"raise this amount, or lower the {side} of the containers"
            yield POD_LEVEL_SUM.problem(("spec", "resources", at, name), message, fix)


def _validate_limits(pod: ResourcesOfPart, place: ResourcesOfPart) -> Iterator[Problem]:
    for name in place.limits:
        limit = _amount_in_thousandths(pod.limits, name)
        if limit is not None and (_amount_in_thousandths(place.limits, name) or 0) > limit:
            message = "must not be above the limit of the pod as a whole"
            yield ABOVE_POD_LEVEL.problem(
                (*place.path, "limits", name),
                message,
                "lower this limit, or raise the limit of the pod as a whole",
            )


def requested_sums(containers: Iterable[ResourcesOfPart], names: Collection[str], side: Side) -> Mapping[str, int]:
    """Return what containers request together, in thousandths."""
    running: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    peak: dict[str, int] = {}
    for place in containers:
        for name in {**place.limits, **place.requests}:
            amount = _limit_or_request(place, name, side) if name in names else 0
            if place.part == "containers":
                running[name] += amount
                continue
            peak[name] = max(peak.get(name, 0), sidecars[name] + amount)
            sidecars[name] += amount if place.is_of_sidecar else 0
    running.update(sidecars)
    return {name: max(running[name], peak.get(name, 0)) for name in names}


def sum_requests_of_containers(
    containers: Sequence[ResourcesOfPart], names: Collection[str], side: Side, deadline: Deadline
) -> Mapping[str, int]:
    """Return what containers request together, charged to a deadline."""
    return requested_sums(Items(containers, deadline), names, side)


def _limit_or_request(place: ResourcesOfPart, name: str, side: Side) -> int:
    """Return the limit of a container, or its request, which is the limit by default."""
    amount = _amount_in_thousandths(place.requests, name) if side == "requests" else None
    return (_amount_in_thousandths(place.limits, name) or 0) if amount is None else amount


def _amount_in_thousandths(given: Mapping[str, JSON], name: str) -> int | None:
    """Return an amount in thousandths; None if it is not set, invalid or negative."""
    value = given.get(name)
    amount = (
        None if value is None or isinstance(value, bool) else amounts.read_quantity(amounts.amount_as_string(value))
    )
    return None if amount is None or amount.sign() < 0 else amount.milli_value()


def check_no_pod_resources_on_windows(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that validateWindows would report: no resources of the pod as a whole."""
    if pod.resources and pod.os.name == "windows":
        message = "must not be set because Windows pods do not support resources for the pod as a whole"
        yield POD_LEVEL_WINDOWS.problem(("spec", "resources"), message, "request the resources in the containers")
