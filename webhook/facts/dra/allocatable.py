"""How many of the devices that a request selects one node can give, when nothing is allocated yet.

All devices of a claim must be within reach of one node. A device whose taint is not tolerated, or whose capacity is too
small, is not given, and those that share counters only as far as the counters go. Always a bound from above: devices
that several nodes may reach count for every node, and of what several counters limit, each is looked at alone. Source:
k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental allocator_experimental.go allocateDevice,
checkAvailableCounters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.dra.device_capacity import used, whole
from webhook.facts.dra.device_pools import Device
from webhook.facts.dra.device_taints import Rules, untolerated_taint
from webhook.facts.values import items, mapping
from webhook.paths import get


@dataclass(slots=True)
class Allocatable:
    """What is left of the devices that a request selects.

    Args:
        most: the most that any one node can give.
        tainted: how many have a taint that the request does not tolerate, and the first `taint`.
        small: how many have less capacity than the request asks for.
        is_counted: whether shared counters suffice for fewer devices than there are.
        devices: those that are neither tainted nor small.
    """

    most: int = 0
    tainted: int = 0
    taint: str = ""
    small: int = 0
    is_counted: bool = False
    devices: list[Device] = field(default_factory=list)


def allocatable(
    selected: Iterable[Device], written: Mapping[str, JSON], rules: Rules, deadline: Deadline
) -> Allocatable:
    """What is left for a request, as it is written in a claim."""
    made = Allocatable()
    asks, tolerations = mapping(get(written, ("capacity", "requests"))), items(written.get("tolerations"))
    for each in deadline.paced(selected):
        if taint := untolerated_taint(each, tolerations, rules, deadline):
            made.tainted += 1
            made.taint = made.taint or taint
        elif asks and not _has_capacity(each, asks):
            made.small += 1
        else:
            made.devices.append(each)
    by_node = Counter[str]()
    for (node, *_), listed in _sharing(made.devices).items():
        within = _within_counters(listed, deadline)
        made.is_counted |= within < len(listed)
        by_node[node] += within
    anywhere = by_node.pop("", 0)
    made.most = anywhere + max(by_node.values(), default=0)
    return made


def _has_capacity(device: Device, asks: Mapping[str, JSON]) -> bool:
    """As CmpRequestOverCapacity, of a device that nobody uses."""
    capacity = mapping(device.fields.get("capacity"))
    for name, value in asks.items():
        held = mapping(capacity.get(name))
        needs, has = used(held, whole(value)), whole(held.get("value"))
        if name not in capacity or needs is None or (has is not None and needs > has):
            return False
    return True


def _sharing(devices: Iterable[Device]) -> Mapping[tuple[str, int, str], list[Device]]:
    """Devices by node, pool and the first set of counters that they take from."""
    made: dict[tuple[str, int, str], list[Device]] = {}
    for each in devices:
        made.setdefault((each.node, id(each.pool), next(iter(each.consumed()), "")), []).append(each)
    return made


def _within_counters(devices: Sequence[Device], deadline: Deadline) -> int:
    """How many of the devices of one pool its shared counters suffice for, at the most; those of unknown sets fit."""
    taken: dict[tuple[str, str], list[int]] = {}
    for each in deadline.paced(devices):
        for name, counters in each.consumed().items():
            for counter, amount in counters.items():
                taken.setdefault((name, counter), []).append(amount)
    most, held = len(devices), devices[0].pool.counters() if taken else {}
    for (name, counter), amounts in deadline.paced(taken.items()):
        if (has := held.get(name, {}).get(counter)) is not None:
            fit = sum(total <= has for total in accumulate(sorted(amounts)))
            most = min(most, len(devices) - len(amounts) + fit)
    return most
