"""The devices that one node can allocate, compared with a search over every choice of devices."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.facts.dra.published_devices import RESOURCE_SLICE, PooledDevice, read_pools
from webhook.facts.dra.resource_slices import devices_remaining_for_request
from webhook.facts.view import ClusterView
from webhook.typed.collections import Items

NODES = ("", "a", "b")
SETS = ("x", "y")
COUNTERS = ("memory", "slices")


def amounts(most: int) -> st.SearchStrategy[dict[str, Any]]:
    values = st.fixed_dictionaries({}, optional={name: st.integers(0, most) for name in COUNTERS})
    return values.map(lambda held: {name: {"value": str(value)} for name, value in held.items()})


TAINTS = st.lists(st.sampled_from(["NoSchedule", "NoExecute", "None"]), max_size=1)
DEVICES = st.fixed_dictionaries(
    {
        "nodeName": st.sampled_from(NODES),
        "taints": TAINTS.map(lambda effects: [{"key": "k", "effect": effect} for effect in effects]),
        "consumesCounters": st.dictionaries(st.sampled_from(SETS), amounts(3)).map(
            lambda held: [{"counterSet": name, "counters": counters} for name, counters in held.items()]
        ),
    }
)
SLICES = st.fixed_dictionaries(
    {
        "devices": st.lists(DEVICES, max_size=5),
        "sharedCounters": st.dictionaries(st.sampled_from(SETS), amounts(6)).map(
            lambda held: [{"name": name, "counters": counters} for name, counters in held.items()]
        ),
    }
)


def published(held: list[dict[str, Any]]) -> list[PooledDevice]:
    """Return the devices of slices. Each slice is a separate pool."""
    shared = {"driver": "d", "perDeviceNodeSelection": True}
    specs = [each | shared | {"pool": {"name": str(number)}} for number, each in enumerate(held)]
    slices = [
        {
            "apiVersion": RESOURCE_SLICE.api_version,
            "kind": RESOURCE_SLICE.kind,
            "metadata": {"name": str(number)},
            "spec": spec,
        }
        for number, spec in enumerate(specs)
    ]
    return [device for pool in read_pools(ClusterView(FilesCluster(slices), "")) for device in pool.devices()]


def given_by(devices: list[PooledDevice]) -> int:
    return devices_remaining_for_request(Items(devices, Deadline()), {}, (), {}).most


def fit(devices: tuple[PooledDevice, ...]) -> bool:
    """Return whether the counters of the pools suffice for all these devices. A counter that no slice publishes has no
    limit.
    """
    used: dict[tuple[str, str, str], int] = {}
    for each in devices:
        for name, counters in each.consumed_counters().items():
            for counter, amount in counters.items():
                key = (each.pool.name, name, counter)
                used[key] = used.get(key, 0) + amount
                if used[key] > each.pool.counters().get(name, {}).get(counter, used[key]):
                    return False
    return True


def most(devices: list[PooledDevice]) -> int:
    """Return the largest number of devices without taints that one node can allocate."""
    free = [each for each in devices if all(taint["effect"] == "None" for taint in each.fields.taints)]
    best = 0
    for node in NODES:
        near = [each for each in free if each.node in ("", node)]
        best = max(best, *(size for size in range(len(near) + 1) if any(map(fit, combinations(near, size)))))
    return best


@given(st.lists(SLICES, max_size=2))
def test_no_choice_of_devices_is_larger(held: list[dict[str, Any]]) -> None:
    devices = published(held)
    assert most(devices) <= given_by(devices)


@given(st.lists(DEVICES.map(lambda device: device | {"consumesCounters": []}), max_size=6))
def test_without_counters_all_devices_can_be_allocated(held: list[dict[str, Any]]) -> None:
    devices = published([{"devices": held}])
    assert most(devices) == given_by(devices)


@given(st.lists(st.integers(0, 5), max_size=8), st.integers(0, 12))
def test_devices_that_share_one_counter_are_counted_exactly(needs: list[int], has: int) -> None:
    listed = [
        {"taints": [], "consumesCounters": [{"counterSet": "x", "counters": {"memory": {"value": str(need)}}}]}
        for need in needs
    ]
    shared = [{"name": "x", "counters": {"memory": {"value": str(has)}}}]
    devices = published([{"devices": listed, "sharedCounters": shared}])
    assert most(devices) == given_by(devices)
