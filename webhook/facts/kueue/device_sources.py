"""What devices count for by what they consist of: counters of partitionable devices, and capacities of shared ones.

Every device of the driver that the source, the class and the request select may be the one that a pod gets: the largest
amount of them counts. Source: kubernetes-sigs/kueue@ff69552e pkg/dra/counters.go and capacity.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.errors import CompileError, EvaluationError
from webhook.facts.dra.device_matching import selects
from webhook.facts.dra.inventory import SLICE
from webhook.facts.dra.resolved import CLASS
from webhook.facts.kueue.configuration import Source
from webhook.facts.pods.containers import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.problem import MissingObject
from webhook.wording import counted

_WORK: Final = 10
"""What asking a device costs, in units of the deadline."""
_MOST: Final = 20_000
"""Devices that are asked for one request; of a larger cluster nobody knows."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What a request counts for, or why Kueue cannot count it: for ever, or until there are other devices.

    Args:
        amount: what all of its devices count for.
        never: what is wrong with the request.
        waits: what the devices of the cluster lack.
    """

    amount: int = 0
    never: str = ""
    waits: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a claim: for so many devices of a class, with selectors and amounts of capacities."""

    device_class: str
    count: int
    selectors: tuple[str, ...]
    capacities: Mapping[str, JSON]


def charge(asked: Asked, source: Source, view: View) -> Charge | None:
    """What a request counts for by one source; None where nobody knows, which the view then explains."""
    slices = view.objects(SLICE)
    device_class = view.get(CLASS, asked.device_class, namespaced=False)
    if device_class is None:
        return None
    if not slices and not view.is_whole():
        view.note(MissingObject(kind=SLICE.kind, name=asked.device_class))
        return None
    of_class = (text(get(each, ("cel", "expression"))) for each in items(get(device_class, ("spec", "selectors"))))
    selectors = (source.selector, *of_class, *asked.selectors)
    matched = _matching(slices, source.driver, tuple(filter(None, selectors)), view)
    if matched is None:
        return None
    if len(matched) < asked.count:
        has = f"ResourceSlices have only {len(matched)} of driver {source.driver} that it selects"
        return Charge(waits=f"asks for {counted(asked.count, 'device')}, but {has}")
    return _of_counter(asked, source, matched) if source.counter else _of_capacity(asked, source, matched)


def _matching(slices: Sequence[JSON], driver: str, selectors: Sequence[str], view: View) -> list[JSON] | None:
    """The devices of a driver that all selectors take; None where one of them fails, or the cluster is too large."""
    devices = [*_devices(slices, driver, view.deadline)]
    try:
        if len(devices) <= _MOST:
            return [each for each in devices if _is_selected(each, driver, selectors, view.deadline)]
    except (CompileError, EvaluationError) as error:
        view.deadline.look()  # what time stopped is no failure of the selector
        view.note(
            MissingObject(kind=SLICE.kind, name="", why=f"not looked up: a selector fails: {error}".partition("\n")[0])
        )
        return None
    view.note(MissingObject(kind=SLICE.kind, name="", why="not looked up: there are too many devices"))
    return None


def _is_selected(device: JSON, driver: str, selectors: Sequence[str], deadline: Deadline) -> bool:
    deadline.spend(_WORK * len(selectors) + 1)
    return all(selects(each, driver, device) for each in selectors)


def _devices(slices: Sequence[JSON], driver: str, deadline: Deadline) -> Iterator[JSON]:
    """The devices of the newest generation of each pool, where all of its slices are there."""
    pools: dict[str, list[JSON]] = {}
    for each in deadline.paced(slices):
        spec = mapping(mapping(each).get("spec"))
        if spec.get("driver") != driver:
            continue
        listed = pools.setdefault(text(get(spec, ("pool", "name"))), [])
        if listed and _generation(spec) > _generation(listed[0]):
            listed.clear()
        if not listed or _generation(spec) == _generation(listed[0]):
            listed.append(spec)
    for listed in pools.values():
        if get(listed[0], ("pool", "resourceSliceCount")) == len(listed):
            for spec in listed:
                yield from (each for each in deadline.paced(items(spec.get("devices"))) if isinstance(each, dict))


def _generation(spec: Mapping[str, JSON]) -> int:
    generation = get(spec, ("pool", "generation"))
    return generation if isinstance(generation, int) else 0


def _of_counter(asked: Asked, source: Source, matched: Sequence[JSON]) -> Charge:
    """As computeCounterCharges: the largest value of the counter among the devices, for each of them."""
    values = [
        value
        for device in matched
        for each in map(mapping, items(_flat(device).get("consumesCounters")))
        if (value := _amount(mapping(each.get("counters")).get(source.counter))) is not None
    ]
    if not values:
        return Charge(waits=f"asks for devices of driver {source.driver}, none of which has counter {source.counter}")
    return Charge(amount=max(0, *values) * max(1, asked.count))


def _of_capacity(asked: Asked, source: Source, matched: Sequence[JSON]) -> Charge:
    """As computeCapacityCharge: what a device would be used of for the request, the largest of all of them."""
    capacities = [mapping(_flat(each).get("capacity")).get(source.capacity) for each in matched]
    known = [mapping(each) for each in capacities if each is not None]
    if not known:
        return Charge(waits=f"asks for devices of driver {source.driver}, none of which has capacity {source.capacity}")
    asks = _value(asked.capacities.get(source.capacity))
    values = [value for each in known if (value := _used(each, asks)) is not None]
    if not values:
        return Charge(never=f"asks for more of capacity {source.capacity} than any device gives to one request")
    return Charge(amount=max(0, *values) * max(1, asked.count))


def _used(capacity: Mapping[str, JSON], asks: int | None) -> int | None:
    """As chargeForDevice and roundToPolicy: what is asked for, or the default, rounded up; None for too much."""
    policy = mapping(capacity.get("requestPolicy"))
    value = next(
        (each for each in (asks, _value(policy.get("default")), _value(capacity.get("value"))) if each is not None), 0
    )
    valid = [_value(each) for each in items(policy.get("validValues"))]
    if valid:
        return next((each for each in valid if each is not None and each >= value), None)
    bounds = mapping(policy.get("validRange"))
    least, most, step = (_value(bounds.get(name)) for name in ("min", "max", "step"))
    if least is not None:
        value = max(value, least)
        if step is not None and step > 0:
            value = least + -(-(value - least) // step) * step
    return None if most is not None and value > most else value


def _flat(device: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return mapping(device.get("basic")) or device  # v1beta1 has one level more


def _amount(counter: JSON) -> int | None:
    return _value(mapping(counter).get("value"))


def _value(given: JSON) -> int | None:
    """A quantity in whole units, rounded up; None for none."""
    read = quantity.read(given)
    return None if read is None else read.value()
