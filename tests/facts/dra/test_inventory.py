"""claimgate reads the devices of slices as the scheduler does, for any content of the slices."""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.facts.dra import resource_slices as module
from webhook.facts.dra.resource_slices import find_matching_devices


def slice_(*devices: object, name: str = "s", driver: object = "d.example.com", **pool: object) -> dict:
    spec = {"driver": driver, "pool": {"name": "p", "generation": 1, **pool}, "devices": [*devices]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def device_class(*expressions: object) -> dict:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "d"}, "spec": {"selectors": selectors}}  # fmt: skip


def claim(*expressions: object, **more: object) -> dict:
    asked = {"deviceClassName": "d", "selectors": [{"cel": {"expression": each}} for each in expressions], **more}
    spec = {"devices": {"requests": [{"name": "r", "exactly": asked}]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}


def found(obj: dict, *context: dict) -> dict:
    (selection,) = find_matching_devices(subject(obj, *context, is_whole=True)).selections
    return {"of_class": selection.of_class, "count": selection.count, "failures": [*selection.failures]}


GPU = {"name": "gpu", "attributes": {"model": {"string": "a"}, "size": {"int": 4}}, "capacity": {"memory": "4Gi"}}
MODEL = "device.attributes['d.example.com'].model == 'a'"


@pytest.mark.parametrize(
    ("claimed", "classed", "selected"),
    [
        (claim(MODEL), 1, 1),
        (claim(MODEL.replace("'a'", "'b'")), 1, 0),
        (claim(), 1, 1),
        (claim("device.capacity['d.example.com'].memory.isGreaterThan(quantity('1Gi'))"), 1, 1),
        (claim("device.nothing"), None, None),
        (claim(deviceClassName="other"), None, None),
    ],
)
def test_a_claim_finds_devices_of_its_class(claimed: dict, classed: object, selected: object) -> None:
    held = found(claimed, slice_(GPU), device_class("device.driver == 'd.example.com'"))
    assert held == {"of_class": classed, "count": selected, "failures": []}


def test_devices_of_v1beta1_have_one_level_more() -> None:
    held = found(claim(MODEL), slice_({"name": "gpu", "basic": {**GPU, "name": None}}), device_class())
    assert held["count"] == 1


def test_an_error_of_the_class_is_reported_first() -> None:
    held = found(claim("device.attributes['x'].other"), slice_(GPU), device_class("device.attributes['x'].nothing"))
    failure = ("no such key: nothing", "`gpu` of driver `d.example.com`")
    assert held == {"of_class": 0, "count": 0, "failures": [failure]}


def test_the_newest_generation_of_a_pool_counts() -> None:
    old, new = slice_(GPU, GPU, name="old"), slice_(GPU, name="new", generation=2)
    assert found(claim(), old, new, device_class())["count"] == 1


@pytest.mark.parametrize(
    "odd",
    [
        slice_(None, "gpu", {"name": None}, {"attributes": []}, {"capacity": "x"}),
        slice_({"attributes": {"a": {"version": 1}}}, {"attributes": {"a": None}}, {"capacity": {"m": "lots"}}),
        slice_(driver=1, generation="2"),
        slice_(
            {"consumesCounters": [1, {"counterSet": 2, "counters": {"a": 3}}], "taints": [None, "x"]}, {"taints": 4}
        ),
        {
            **slice_(),
            "spec": {"sharedCounters": [1, {"name": 2, "counters": "x"}], "nodeName": 3, "perDeviceNodeSelection": 4},
        },
        {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "spec": {"deviceSelector": 1, "taint": [2]},
        },
        {**slice_(), "spec": None},
        {**slice_(), "spec": {"devices": {"a": 1}, "pool": []}},
    ],
)
def test_slices_of_odd_shapes_are_read_as_far_as_they_can_be(odd: dict) -> None:
    assert found(claim(MODEL), {**odd, "metadata": {"name": "odd"}}, slice_(GPU, name="good", x=1), device_class())["count"] == 1  # fmt: skip


def test_a_cluster_may_be_too_large_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_EVALUATIONS", 1)
    assert found(claim(MODEL, MODEL), slice_(GPU), device_class())["count"] is None


def test_a_view_without_slices_has_no_inventory() -> None:
    found = find_matching_devices(subject(claim(), device_class()))
    assert (found.devices, found.selections) == (0, [])
