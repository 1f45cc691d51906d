"""Counts devices by their counters or capacities, for partitionable and shared devices.

Every device of the driver that the source, the class and the request select may be allocated to a pod, so the largest
amount counts. Source: kubernetes-sigs/kueue@ff69552e pkg/dra/counters.go and capacity.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.cel import CostMeter
from webhook.deadline import Deadline
from webhook.errors import CompileError, EvaluationError
from webhook.facts.dra.published_devices import (
    RESOURCE_SLICE,
    PooledDevice,
    consumed_capacity,
    read_pools,
    rounded_up_units,
)
from webhook.facts.dra.selectors import MOST_COST, selector_matches_device
from webhook.facts.dra.types import DeviceClass
from webhook.facts.kueue.configuration import CountedSource
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject
from webhook.text.wording import counted

_WORK: Final = 10
"""The cost of evaluating one device, in units of the deadline."""
_MOST: Final = 20_000
"""How many devices are evaluated for one request; with more the result is unknown."""


class ChargedAmount(Struct, frozen=True):
    """The amount that a request counts for, or the reason why Kueue cannot count it: for ever, or with the present
    devices.

    Args:
        amount: what all of its devices count for.
        never: what is wrong with the request.
        waits: what the devices of the cluster lack.
    """

    amount: int = 0
    never: str = ""
    waits: str = ""


class RequestedDevices(Struct, frozen=True):
    """One request of a claim: a number of devices of a class, with selectors and amounts of capacities."""

    device_class: str
    count: int
    selectors: tuple[str, ...]
    capacities: Mapping[str, JSON]


def charge_of_request(asked: RequestedDevices, source: CountedSource, view: ClusterView) -> ChargedAmount | None:
    """Return the amount of a request by one source; None if it is not known, which the view then explains."""
    known = devices_matching_request(asked, view, source)
    if known is None:
        return None
    if len(known) < asked.count:
        has = f"only {counted(len(known), 'device')} of driver {source.driver} match the request"
        return ChargedAmount(waits=f"asks for {counted(asked.count, 'device')}, but {has}")
    return _charge_of_counter(asked, source, known) if source.counter else _charge_of_capacity(asked, source, known)


def devices_matching_request(
    asked: RequestedDevices, view: ClusterView, source: CountedSource | None = None
) -> list[PooledDevice] | None:
    """Return the devices that a request selects: from the complete pools of a source's driver, or from all pools.

    None if a selector fails, or if there are no ResourceSlices, no class or too many devices.
    """
    device_class = view.find(DeviceClass, asked.device_class, namespaced=False)
    if not device_class:
        return None
    if not view.is_whole(RESOURCE_SLICE):
        view.note_missing(MissingObject(kind=RESOURCE_SLICE.kind, name=asked.device_class))
        return None
    written = (source.selector if source else "", *device_class.expressions, *asked.selectors)
    selectors = [*filter(None, written)]
    deadline = view.deadline
    devices = [
        device
        for pool in view.once(read_pools, lambda: read_pools(view))
        if source is None or (pool.driver == source.driver and pool.is_complete())
        for device in pool.devices()
    ]
    try:
        if len(devices) <= _MOST:
            return [each for each in devices if _is_device_selected(each, selectors, deadline)]
    except (CompileError, EvaluationError) as error:
        deadline.check_clock()  # a timeout is not a failure of the selector
        why = f"not looked up: a selector fails: {error}".partition("\n")[0]
        view.note_missing(MissingObject(kind=RESOURCE_SLICE.kind, name="", why=why))
        return None
    view.note_missing(MissingObject(kind=RESOURCE_SLICE.kind, name="", why="not looked up: there are too many devices"))
    return None


def _is_device_selected(device: PooledDevice, selectors: Sequence[str], deadline: Deadline) -> bool:
    deadline.spend(_WORK * len(selectors) + 1)
    driver, json = device.pool.driver, device.fields.json
    return all(
        selector_matches_device(each, driver, json, CostMeter(limit=MOST_COST, deadline=deadline)) for each in selectors
    )


def _charge_of_counter(
    asked: RequestedDevices, source: CountedSource, matched: Sequence[PooledDevice]
) -> ChargedAmount:
    """Return the largest value of the counter among the devices, for each requested device (computeCounterCharges)."""
    values = [
        value
        for device in matched
        for taken in device.fields.consumes_counters
        if source.counter in taken.counters
        and (value := rounded_up_units(taken.counters[source.counter].value)) is not None
    ]
    if not values:
        return ChargedAmount(
            waits=f"asks for devices of driver {source.driver}, none of which has counter {source.counter}"
        )
    return ChargedAmount(amount=max(0, *values) * max(1, asked.count))


def _charge_of_capacity(
    asked: RequestedDevices, source: CountedSource, matched: Sequence[PooledDevice]
) -> ChargedAmount:
    """Return the most of the capacity that the request would use of any device (computeCapacityCharge)."""
    known = [capacities[source.capacity] for each in matched if source.capacity in (capacities := each.fields.capacity)]
    if not known:
        return ChargedAmount(
            waits=f"asks for devices of driver {source.driver}, none of which has capacity {source.capacity}"
        )
    asks = rounded_up_units(asked.capacities.get(source.capacity))
    values = [value for each in known if (value := consumed_capacity(each, asks)) is not None]
    if not values:
        return ChargedAmount(never=f"asks for more of capacity {source.capacity} than any device gives to one request")
    return ChargedAmount(amount=max(0, *values) * max(1, asked.count))
