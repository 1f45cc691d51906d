"""The devices that ResourceSlices publish: their pools, taints, capacities and models.

Only the newest generation of a pool is read. The scheduler allocates devices only from pools with all slices. Taints
come from drivers and from DeviceTaintRules. Drivers publish the model of a device as an attribute:
`productName` for NVIDIA and AMD, `model` for Intel and the example driver of Kubernetes. On a node with several
models, a request for several devices may get devices of different models.

Source: k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/pools_experimental.go GatherPools,
structured/internal/experimental/consumable_capacity.go calculateConsumedCapacity and violatesPolicy, and
resourceslice/tracker/tracker.go applyPatches; kubernetes-sigs/kueue@ff69552e pkg/dra/capacity.go, which computes
capacities in the same way; kubernetes-sigs/dra-driver-nvidia-gpu@95932046 deviceinfo.go for `productName`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.types import (
    CounterValue,
    DeviceCapacity,
    DeviceFields,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSliceSpec,
)
from webhook.facts.pods.node_selection import first_untolerated_taint
from webhook.facts.view import ClusterView
from webhook.typed.collections import Entries

RESOURCE_SLICE: Final = ResourceSlice.gvk
RESOURCE_SLICE_LOOKUP: Final = interest_in_fields(
    RESOURCE_SLICE,
    *(f"spec.{name}" for name in ("driver", "pool", "nodeName", "perDeviceNodeSelection", "sharedCounters", "devices")),
)
DeviceID: TypeAlias = tuple[str, str, str]
"""The driver, the pool and the name of a device."""
TAINT_RULE_LOOKUP: Final = interest_in_fields(DeviceTaintRule.gvk, "spec")
TaintRules: TypeAlias = Mapping[tuple[str, str, str], Sequence[JSON]]
"""Taints of DeviceTaintRules by driver, pool and name of the devices; "" means all drivers, pools or names."""
_PARTS: Final = frozenset(("driver", "pool", "device"))
_MODEL: Final = ("productName", "model")


class DevicePool(Struct):
    """The slices of one generation of a pool."""

    driver: str
    name: str
    generation: int
    slices: list[ResourceSliceSpec] = field(default_factory=list)
    _counters: dict[str, dict[str, int]] | None = None

    def is_complete(self) -> bool:
        """Return whether all slices of the pool exist."""
        return self.slices[0].pool.resource_slice_count == len(self.slices)

    def devices(self) -> Iterator[PooledDevice]:
        for spec in self.slices:
            for device in spec.devices:
                if device:
                    fields = device.fields
                    node = fields.node_name if spec.per_device_node_selection else spec.node_name
                    yield PooledDevice(self, device.name, node, fields)

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the amounts of the pool's shared counters by set, in thousandths."""
        if self._counters is None:
            sets = [counters for spec in self.slices for counters in spec.shared_counters]
            self._counters = {counters.name: counter_values_in_thousandths(counters.counters) for counters in sets}
        return self._counters


class PooledDevice(Struct, frozen=True):
    """A device of a pool. `node` is the only node that can use the device; "" if several nodes can use the device."""

    pool: DevicePool
    name: str
    node: str
    fields: DeviceFields

    @property
    def id(self) -> DeviceID:
        return self.pool.driver, self.pool.name, self.name

    def attribute_as_text(self, name: str) -> str:
        """Return the type and the value of an attribute that a constraint names; "" if the device lacks the attribute.

        If the domain of the name is the driver, the device may have the attribute without a domain (lookupAttribute of
        k8s.io/dynamic-resource-allocation v0.36.1).
        """
        attributes = self.fields.attributes.json
        domain, _, short_name = name.partition("/")
        value = attributes.get(name)
        if value is None and domain == self.pool.driver:
            value = attributes.get(short_name)
        return json.dumps(value, sort_keys=True) if isinstance(value, dict) and value else ""

    def consumed_counters(self) -> dict[str, dict[str, int]]:
        """Return how much the device uses of each shared counter of its pool, in thousandths."""
        if not self.pool.counters():
            return {}
        return {
            taken.counter_set: counter_values_in_thousandths(taken.counters) for taken in self.fields.consumes_counters
        }


def counter_values_in_thousandths(counters: Entries[CounterValue]) -> dict[str, int]:
    """Return the values of counters by name, in thousandths; invalid quantities are left out."""
    read = {name: quantity.read_quantity_or_none(counter.value) for name, counter in counters.items()}
    return {name: max(0, value.milli_value()) for name, value in read.items() if value is not None}


def read_pools(view: ClusterView) -> list[DevicePool]:
    """Return the pools of a view, each in its newest generation."""
    newest: dict[tuple[str, str], DevicePool] = {}
    for spec in [published.spec for published in view.list_visible(ResourceSlice) if published.spec]:
        pool = DevicePool(spec.driver, spec.pool.name, spec.pool.generation)
        known = newest.setdefault((pool.driver, pool.name), pool)
        if pool.generation > known.generation:
            known = newest[pool.driver, pool.name] = pool
        if pool.generation == known.generation:
            known.slices.append(spec)
    return [*newest.values()]


def read_taint_rules(view: ClusterView) -> TaintRules:
    """Return the taints of DeviceTaintRules, without v1alpha3 rules that select devices by class or expression."""
    taints: dict[tuple[str, str, str], list[JSON]] = {}
    for rule in view.list_visible(DeviceTaintRule):
        selector = rule.spec.device_selector
        if selector.json.keys() <= _PARTS:
            taints.setdefault((selector.driver, selector.pool, selector.device), []).append(rule.spec.taint.json)
    return taints


def untolerated_taint(device: PooledDevice, tolerations: Sequence[JSON], rules: TaintRules) -> str:
    """Return the first taint of a device that is not tolerated, as `key=value:effect`; "" if all are tolerated."""
    fields, taints = device.fields, [*device.fields.taints]
    if rules:
        named = product((device.pool.driver, ""), (device.pool.name, ""), (device.name, ""))
        taints += (taint for key in dict.fromkeys(named) for taint in rules.get(key, ()))
    first = first_untolerated_taint(taints, tolerations, fields.reading.deadline) if taints else None
    if first is None:
        return ""
    taint = DeviceTaint(first, (), fields.reading)
    return f"{taint.key}{taint.value and f'={taint.value}'}:{taint.effect}"


def consumed_capacity(capacity: DeviceCapacity, requested: int | None) -> int | None:
    """Return how much of a capacity a request uses; None if the capacity's request policy does not allow the amount.

    The used amount is the requested amount, else the default, else the whole capacity. The request policy rounds the
    amount up.

    Args:
        capacity: `capacity.<name>` of a device.
        requested: the requested amount in whole units; None if the request names no amount.
    """
    policy = capacity.request_policy
    given = (requested, rounded_up_units(policy.default), rounded_up_units(capacity.value))
    value = next((amount for amount in given if amount is not None), 0)
    valid = [rounded_up_units(amount) for amount in policy.valid_values]
    if valid:
        return next((amount for amount in valid if amount is not None and amount >= value), None)
    bounds = policy.valid_range
    least, most, step = rounded_up_units(bounds.min), rounded_up_units(bounds.max), rounded_up_units(bounds.step)
    if least is not None:
        value = max(value, least)
        if step is not None and step > 0:
            value = least + -(-(value - least) // step) * step
    return None if most is not None and value > most else value


def limits_of_capacity(capacity: DeviceCapacity) -> Iterator[JSON]:
    """Yield the amounts of a capacity above which its request policy allows no request."""
    yield from capacity.request_policy.valid_values
    if (most := capacity.request_policy.valid_range.max) is not None:
        yield most


def rounded_up_units(amount: JSON) -> int | None:
    """Return a quantity in whole units, rounded up; None for a quantity that is invalid or not set."""
    read = quantity.read_quantity_or_none(amount)
    return None if read is None else read.value()


class DeviceModels(Struct, frozen=True):
    """The models of a node's devices, and the attribute that names the models."""

    node: str
    attribute: str
    models: tuple[str, ...]


def models_of_mixed_node(devices: Iterable[PooledDevice]) -> DeviceModels | None:
    """Return the models of the first node on which one driver has devices of several models; None if no node has
    several models of one driver.
    """
    models: dict[tuple[str, str], dict[str, None]] = {}
    for device in devices:
        name, model = _model_attribute(device)
        if device.node and model:
            attribute = f"{device.pool.driver}/{name}"
            known = models.setdefault((device.node, attribute), {})
            known[model] = None
            if len(known) > 1:
                return DeviceModels(device.node, attribute, tuple(known))
    return None


def _model_attribute(device: PooledDevice) -> tuple[str, str]:
    """Return the name and the value of the attribute that names a device's model; two empty texts without the
    attribute.
    """
    attributes = device.fields.attributes
    for name in _MODEL:
        for written in (name, f"{device.pool.driver}/{name}"):
            if model := attributes.string(written):
                return name, model
    return "", ""
