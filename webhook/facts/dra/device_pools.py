"""The devices that ResourceSlices publish, by pool, each pool in its newest generation.

A pool is complete when all of its slices are there; the scheduler allocates from no other. Source:
k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/pools_experimental.go GatherPools.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from webhook import quantity
from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.slice_types import CounterValue, DeviceFields, ResourceSlice, ResourceSliceSpec
from webhook.facts.view import ClusterView
from webhook.typed.collections import Entries

SLICE: Final = ResourceSlice.gvk
LOOKUP: Final = interest_in_fields(
    SLICE,
    *(f"spec.{name}" for name in ("driver", "pool", "nodeName", "perDeviceNodeSelection", "sharedCounters", "devices")),
)
DeviceID: TypeAlias = tuple[str, str, str]
"""The driver, the pool and the name of a device."""


@dataclass(slots=True)
class DevicePool:
    """The slices of one pool and one generation."""

    driver: str
    name: str
    generation: int
    slices: list[ResourceSliceSpec] = field(default_factory=list)
    _counters: dict[str, dict[str, int]] | None = None

    def is_complete(self) -> bool:
        """Return whether all slices of the pool are there."""
        return self.slices[0].pool.resource_slice_count == len(self.slices)

    def devices(self) -> Iterator[PooledDevice]:
        """Yield all devices of the pool's ResourceSlices."""
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


@dataclass(frozen=True, slots=True)
class PooledDevice:
    """A device of a pool: its name, the only node that can use it or "", and its fields."""

    pool: DevicePool
    name: str
    node: str
    fields: DeviceFields

    @property
    def id(self) -> DeviceID:
        """Return driver, pool and name, which identify the device."""
        return self.pool.driver, self.pool.name, self.name

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
