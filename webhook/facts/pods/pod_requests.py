"""Computes the requests of one pod, as Kueue counts them, or as nodes and quotas count them. Amounts are in
thousandths.

The request of a pod is the larger of two sums: all containers and sidecars, or one init container and the sidecars
before it. Requests of the pod as a whole replace this sum. Overhead is added. Defaults of LimitRanges apply. If
a request is missing, the limit counts.

Source: kubernetes-sigs/kueue@ff69552e pkg/workload/resources.go AdjustResources and pkg/util/limitrange, and
k8s.io/component-helpers v0.36 resource/helpers.go PodRequests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.pods.amounts import HUGE
from webhook.facts.resource_units import format_amount_with_resource_name
from webhook.facts.view import ClusterView
from webhook.typed.cluster_objects import LimitRange, LimitRangeItem
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodSpec, Resources

Amounts: TypeAlias = dict[str, int]
"""Amounts of resources in thousandths."""
_MILLI: Final = 1000


class NamespaceLimits(Struct, frozen=True):
    """The defaults and bounds in the LimitRanges of a namespace, for containers and for pods."""

    default: Amounts = field(default_factory=dict)
    default_request: Amounts = field(default_factory=dict)
    most: Mapping[str, Amounts] = field(default_factory=lambda: {"Container": {}, "Pod": {}})
    least: Mapping[str, Amounts] = field(default_factory=lambda: {"Container": {}, "Pod": {}})

    @property
    def forbids_amounts(self) -> bool:
        """Return whether any amount has a bound, or a default limit, which a request must not exceed."""
        return bool(self.default) or any(self.most.values()) or any(self.least.values())


LIMIT_RANGE_LOOKUPS: Final = (interest_in_fields(LimitRange.gvk, "spec.limits"),)


def limits_of_namespace(view: ClusterView) -> NamespaceLimits:
    """Return the defaults and bounds in the known LimitRanges of the view's namespace."""
    return view.once(limits_of_namespace, lambda: _limits_of_namespace(view))


def _limits_of_namespace(view: ClusterView) -> NamespaceLimits:
    if not view.namespace or not view.has_any(LimitRange.gvk, view.namespace):
        return NamespaceLimits()
    return combine_limit_ranges(view.list_typed(LimitRange, view.namespace))


def combine_limit_ranges(ranges: Iterable[LimitRange]) -> NamespaceLimits:
    """Combine the LimitRanges of a namespace: the strictest bounds, and the first default of each resource."""
    together = NamespaceLimits()
    for limit_range in ranges:
        for limit in limit_range.spec.limits:
            if limit.type in together.most:
                _add_bounds(limit, together)
            if limit.type == "Container":
                _add_defaults(limit, together)
    return together


def _add_bounds(limit: LimitRangeItem, together: NamespaceLimits) -> None:
    highest, lowest = together.most[limit.type], together.least[limit.type]
    for name, value in amounts_in_thousandths(limit.max).items():
        highest[name] = min(value, highest.get(name, value))
    for name, value in amounts_in_thousandths(limit.min).items():
        lowest[name] = max(value, lowest.get(name, value))


def _add_defaults(limit: LimitRangeItem, together: NamespaceLimits) -> None:
    """Add the defaults of one item of a LimitRange. If the default is missing, the API server uses `max`."""
    default = {**amounts_in_thousandths(limit.max), **amounts_in_thousandths(limit.default)}
    request = {**amounts_in_thousandths(limit.min), **default, **amounts_in_thousandths(limit.default_request)}
    together.default.update({**default, **together.default})
    together.default_request.update({**request, **together.default_request})


def amounts_in_thousandths(given: Mapping[str, JSON]) -> Amounts:
    """Return amounts in thousandths; invalid quantities are left out."""
    read = {name: quantity.read_quantity_or_none(value) for name, value in given.items()}
    return {name: value.milli_value() for name, value in read.items() if value is not None}


class RequestsOfContainer(Struct, frozen=True):
    """The requests and limits of a container with the defaults of the namespace. A request with neither a value nor a
    default equals the limit.
    """

    container: Container
    requests: Amounts
    limits: Amounts


def requests_of_containers(pod: PodSpec, defaults: NamespaceLimits) -> Items[RequestsOfContainer]:
    """Return the requests of each container as Kueue counts them: a default request replaces a missing request, even if
    the container has a limit.
    """
    return pod.containers.of([_requests_of_container(each, defaults, {}) for each in pod.all_containers()])


def requests_of_created_containers(pod: PodSpec, defaults: NamespaceLimits) -> Items[RequestsOfContainer]:
    """Return the requests of each container of a pod that the API server creates. The limit replaces a missing request.
    If the limit is missing too, the default request replaces the request. SetDefaults_Pod runs before the admission
    plugin LimitRanger.
    """
    containers = pod.all_containers()
    return pod.containers.of(
        [_requests_of_container(each, defaults, amounts_in_thousandths(each.resources.limits)) for each in containers]
    )


def _requests_of_container(
    container: Container, defaults: NamespaceLimits, first: Mapping[str, int]
) -> RequestsOfContainer:
    """Return the requests and limits of a container. The amounts in `first` replace the default requests."""
    limit = {**defaults.default, **amounts_in_thousandths(container.resources.limits)}
    requests = {**first, **amounts_in_thousandths(container.resources.requests)}
    return RequestsOfContainer(container, {**limit, **defaults.default_request, **requests}, limit)


def quota_requests_of_pod(pod: PodSpec, of_containers: Iterable[RequestsOfContainer], overhead: Amounts) -> Amounts:
    """Return the amounts of one pod that count in a quota."""
    running: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    peak: Amounts = {}
    for listed in of_containers:
        if not listed.container.is_init:
            running.update(listed.requests)
            continue
        # for resources that only earlier sidecars request, `running` has the sum after the loop
        for name, value in listed.requests.items():
            peak[name] = max(peak.get(name, 0), sidecars[name] + value)
        if listed.container.is_sidecar:
            sidecars.update(listed.requests)
    running.update(sidecars)
    total = {name: max(running[name], peak.get(name, 0)) for name in dict.fromkeys((*running, *peak))}
    total.update(_pod_level_amounts(pod.resources))
    for name, value in overhead.items():
        total[name] = total.get(name, 0) + value
    return total


def _pod_level_amounts(resources: Resources) -> Amounts:
    """Return the amounts of the pod as a whole, which replace the amounts of its containers."""
    both = (
        {**amounts_in_thousandths(resources.limits), **amounts_in_thousandths(resources.requests)} if resources else {}
    )
    return {name: value for name, value in both.items() if name in ("cpu", "memory") or name.startswith(HUGE)}


def thousandths_to_kueue_units(name: str, milli: int) -> int:
    """Return thousandths in Kueue's units: thousandths of cpu, whole units of other resources, rounded up."""
    return milli if name == "cpu" else -(-milli // _MILLI)


def format_thousandths_with_resource_name(name: str, milli: int) -> str:
    """Return thousandths as a text with the name of the resource: `24 nvidia.com/gpu`."""
    return format_amount_with_resource_name(name, thousandths_to_kueue_units(name, milli))


class OutOfRangeAmount(Struct, frozen=True):
    """An amount of a container or a pod that a LimitRange does not allow."""

    path: FieldPath
    resource: str
    is_above: bool
    value: int
    bound: int


def find_amounts_out_of_range(
    of_containers: Iterable[RequestsOfContainer], total: Amounts, ranges: NamespaceLimits
) -> Iterator[OutOfRangeAmount]:
    """Yield the amounts of containers and of the pod that LimitRanges do not allow (ValidateLimitRange)."""
    for listed in of_containers:
        both = listed.requests.keys() | listed.limits.keys()
        pairs = {name: [side[name] for side in (listed.requests, listed.limits) if name in side] for name in both}
        most = {name: max(pair) for name, pair in pairs.items()}
        least = {name: min(pair) for name, pair in pairs.items()}
        yield from _amounts_out_of_range(
            listed.container.at, most, least, (ranges.most["Container"], ranges.least["Container"])
        )
    yield from _amounts_out_of_range(("spec",), total, total, (ranges.most["Pod"], ranges.least["Pod"]))


def _amounts_out_of_range(
    path: FieldPath, most: Amounts, least: Amounts, bounds: tuple[Amounts, Amounts]
) -> Iterator[OutOfRangeAmount]:
    for name, bound in bounds[0].items():
        if most.get(name, 0) > bound:
            yield OutOfRangeAmount(path, name, True, most[name], bound)
    for name, bound in bounds[1].items():
        if name in least and least[name] < bound:
            yield OutOfRangeAmount(path, name, False, least[name], bound)
