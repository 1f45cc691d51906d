"""The devices that ResourceSlices publish, by pool: those of its newest generation.

A pool is complete when all of its slices are there; the scheduler allocates from no other. Source:
k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/pools_experimental.go GatherPools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from webhook import quantity
from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.facts.values import items, mapping, text
from webhook.paths import get

SLICE: Final = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")
LOOKUP: Final = reading(
    SLICE,
    *(f"spec.{name}" for name in ("driver", "pool", "nodeName", "perDeviceNodeSelection", "sharedCounters", "devices")),
)
DeviceID: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""


@dataclass(slots=True)
class Pool:
    """Slices of one pool and one generation, each as its spec."""

    driver: str
    name: str
    generation: int
    slices: list[Mapping[str, JSON]] = field(default_factory=list)
    _counters: dict[str, dict[str, int]] | None = None

    def is_complete(self) -> bool:
        """Whether all of its slices are there."""
        return bool(get(self.slices[0], ("pool", "resourceSliceCount")) == len(self.slices))

    def devices(self, deadline: Deadline) -> Iterator[Device]:
        """What its slices hold."""
        for spec in self.slices:
            for each in deadline.paced(items(spec.get("devices"))):
                if isinstance(each, dict):
                    flat = mapping(each.get("basic")) or each  # v1beta1 has one level more
                    node = flat if spec.get("perDeviceNodeSelection") is True else spec
                    yield Device(self, text(each.get("name")), text(node.get("nodeName")), flat)

    def counters(self) -> dict[str, dict[str, int]]:
        """How much each set of shared counters has, in thousandths."""
        if self._counters is None:
            sets = (mapping(each) for spec in self.slices for each in items(spec.get("sharedCounters")))
            self._counters = {text(each.get("name")): amounts(each.get("counters")) for each in sets}
        return self._counters


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a pool: its name, the node that alone reaches it or "", and its fields."""

    pool: Pool
    name: str
    node: str
    fields: Mapping[str, JSON]

    @property
    def id(self) -> DeviceID:
        """What tells it from every other device."""
        return self.pool.driver, self.pool.name, self.name

    def consumed(self) -> dict[str, dict[str, int]]:
        """How much it takes of sets of shared counters, in thousandths."""
        sets = map(mapping, items(self.fields.get("consumesCounters")))
        return {text(each.get("counterSet")): amounts(each.get("counters")) for each in sets}


def amounts(counters: JSON) -> dict[str, int]:
    """The values of counters by name, in thousandths; what is no quantity is left out."""
    read = {name: quantity.read(mapping(each).get("value")) for name, each in mapping(counters).items()}
    return {name: max(0, value.milli_value()) for name, value in read.items() if value is not None}


def pools(slices: Iterable[JSON], deadline: Deadline) -> list[Pool]:
    """The pools that slices make, each of its newest generation."""
    made: dict[tuple[str, str], Pool] = {}
    for each in deadline.paced(slices):
        spec = get(each, ("spec",))
        if not isinstance(spec, dict):
            continue
        of = Pool(text(spec.get("driver")), text(get(spec, ("pool", "name"))), _generation(spec))
        pool = made.setdefault((of.driver, of.name), of)
        if of.generation > pool.generation:
            pool = made[of.driver, of.name] = of
        if of.generation == pool.generation:
            pool.slices.append(spec)
    return [*made.values()]


def _generation(spec: Mapping[str, JSON]) -> int:
    generation = get(spec, ("pool", "generation"))
    return generation if type(generation) is int else 0
