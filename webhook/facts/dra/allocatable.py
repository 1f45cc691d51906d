"""Counts how many of the devices that a request selects one node can give, when nothing is allocated yet.

All devices of a claim must be within reach of one node. A device whose taint is not tolerated, or whose capacity is too
small, is not given, and those that share counters only as far as the counters go. Always a bound from above: devices
that several nodes may reach count for every node, and of what several counters limit, each is looked at alone. Source:
k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/allocator_experimental.go allocateDevice,
checkAvailableCounters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from webhook.attributes import JSON
from webhook.facts.dra.device_capacity import consumed_capacity, rounded_up_units
from webhook.facts.dra.device_pools import PooledDevice
from webhook.facts.dra.device_taints import TaintRules, untolerated_taint
from webhook.typed.collections import Items
from webhook.typed.fields import Amount


@dataclass(slots=True, kw_only=True)
class AllocatableDevices:
    """The devices that remain for a request, and the numbers of those that were ruled out.

    Args:
        devices: those that are neither tainted nor small.
        most: the most that any one node can give.
        tainted: how many have a taint that the request does not tolerate, and the first `taint`.
        small: how many have less capacity than the request asks for.
        is_counted: whether shared counters suffice for fewer devices than there are.
    """

    devices: Sequence[PooledDevice] = ()
    most: int = 0
    tainted: int = 0
    taint: str = ""
    small: int = 0
    is_counted: bool = False


def devices_remaining_for_request(
    selected: Items[PooledDevice], capacities: Mapping[str, Amount], tolerations: Sequence[JSON], rules: TaintRules
) -> AllocatableDevices:
    """Return the devices that remain for a request with some capacities and tolerations."""
    left, fit = AllocatableDevices(), []
    for device in selected:
        if taint := untolerated_taint(device, tolerations, rules):
            left.tainted += 1
            left.taint = left.taint or taint
        elif capacities and not _has_requested_capacities(device, capacities):
            left.small += 1
        else:
            fit.append(device)
    left.devices = selected.of(fit)
    by_node = Counter[str]()
    for (node, *_), sharing in _devices_by_shared_counters(left.devices).items():
        within = _count_devices_within_counters(selected.of(sharing))
        left.is_counted |= within < len(sharing)
        by_node[node] += within
    anywhere = by_node.pop("", 0)
    left.most = anywhere + max(by_node.values(), default=0)
    return left


def _has_requested_capacities(device: PooledDevice, asks: Mapping[str, Amount]) -> bool:
    """Return whether an unused device has the capacities that a request needs (CmpRequestOverCapacity)."""
    capacities = device.fields.capacity
    for name, amount in asks.items():
        if name not in capacities:
            return False
        needs, has = (
            consumed_capacity(capacities[name], rounded_up_units(amount)),
            rounded_up_units(capacities[name].value),
        )
        if needs is None or (has is not None and needs > has):
            return False
    return True


def _devices_by_shared_counters(devices: Sequence[PooledDevice]) -> Mapping[tuple[str, int, str], list[PooledDevice]]:
    """Return the devices grouped by node, pool and the first set of counters that they use."""
    listed: dict[tuple[str, int, str], list[PooledDevice]] = {}
    for device in devices:
        listed.setdefault((device.node, id(device.pool), next(iter(device.consumed_counters()), "")), []).append(device)
    return listed


def _count_devices_within_counters(devices: Items[PooledDevice]) -> int:
    """Return how many devices of one pool fit into its shared counters; devices with unknown counters always fit."""
    taken: dict[tuple[str, str], list[int]] = {}
    for device in devices:
        for name, counters in device.consumed_counters().items():
            for counter, amount in counters.items():
                taken.setdefault((name, counter), []).append(amount)
    most, shared = len(devices), devices[0].pool.counters() if taken else {}
    for name, counter in devices.of([*taken]):
        amounts = taken[name, counter]
        if (has := shared.get(name, {}).get(counter)) is not None:
            fit = sum(total <= has for total in accumulate(sorted(amounts)))
            most = min(most, len(devices) - len(amounts) + fit)
    return most
