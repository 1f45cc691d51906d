"""Configurations for NVIDIA's driver: what its optional webhook says of them is said here too, and what its plugin adds.

The first rows are those of kubernetes-sigs/dra-driver-nvidia-gpu@95932046 cmd/webhook/main_test.go.
"""

from __future__ import annotations

import pytest

from webhook.facts.dra.configs import configs
from webhook.facts.dra.requests import requests


def sharing(strategy: str, **more: object) -> dict:
    return {"sharing": {"strategy": strategy, **more}}


def noted(kind: str, driver: str = "gpu.nvidia.com", **parameters: object) -> list[tuple[str, str]]:
    held = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **parameters}
    (found,) = configs({"config": [{"opaque": {"driver": driver, "parameters": held}}]}, ("spec",))
    assert (found["kind"], found["driver"], found["path"]) == (kind, driver, "spec.config[0]")
    start = "spec.config[0].opaque.parameters."
    return [(each["what"], each["path"].removeprefix(start)) for each in found["notes"]]


GATED = ("gated", "sharing.strategy")


@pytest.mark.parametrize(
    ("kind", "parameters", "notes"),
    [
        ("GpuConfig", sharing("TimeSlicing", timeSlicingConfig={"interval": "Default"}), [GATED]),
        (
            "GpuConfig",
            sharing("TimeSlicing", timeSlicingConfig={"interval": "Invalid Interval"}),
            [("notOneOf", "sharing.timeSlicingConfig.interval"), GATED],
        ),
        (
            "GpuConfig",
            sharing("MPS", mpsConfig={"defaultActiveThreadPercentage": -1}),
            [("outOfRange", "sharing.mpsConfig.defaultActiveThreadPercentage"), GATED],
        ),
        ("GpuConfig", sharing("MPS", mpsConfig={"defaultActiveThreadPercentage": 50}), [GATED]),
        ("GpuConfig", {}, []),
        ("GpuConfig", {"sharing": {}}, [("missing", "sharing.strategy")]),
        ("MigDeviceConfig", sharing("TimeSlicing"), [GATED]),
        ("MigDeviceConfig", sharing("TimeSlicing", mpsConfig={}), [GATED]),
        ("VfioDeviceConfig", {}, [("gated", "kind")]),
        ("NoConfig", {}, [("unknownKind", "kind")]),
        ("GpuConfig", {"apiVersion": "resource.nvidia.com/v1"}, [("unknownKind", "apiVersion")]),
    ],
)
def test_parameters_are_read_as_the_driver_reads_them(kind: str, parameters: dict, notes: list) -> None:
    assert noted(kind, **parameters) == notes


def test_a_kind_belongs_to_one_driver() -> None:
    assert noted("ComputeDomainChannelConfig", domainID="x") == [("otherDriver", "kind")]
    assert noted("ComputeDomainChannelConfig", "compute-domain.nvidia.com", domainID="x", allocationMode="All") == []


@pytest.mark.parametrize(
    "holder",
    [None, [], {"config": None}, {"config": {}}, {"config": [None, "x", {}, {"opaque": None}, {"opaque": "x"}]}],
)
def test_odd_shapes_have_no_configurations(holder: object) -> None:
    assert configs(holder, ("spec",)) == []


@pytest.mark.parametrize("parameters", [None, [], "x", 1])
def test_parameters_that_are_no_object_are_not_read(parameters: object) -> None:
    (found,) = configs({"config": [{"opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}]}, ())
    assert found["notes"] == []


ASKED = requests(
    {
        "devices": {
            "requests": [
                {"name": "full", "exactly": {"deviceClassName": "gpu.nvidia.com"}},
                {"name": "mine", "exactly": {"deviceClassName": "gpus.example.com"}},
                {
                    "name": "any",
                    "firstAvailable": [
                        {"name": "a", "deviceClassName": "gpu.nvidia.com"},
                        {"name": "b", "deviceClassName": "mig.nvidia.com"},
                    ],
                },
            ]
        }
    },
    (),
)


@pytest.mark.parametrize(
    ("kind", "names", "notes"),
    [
        ("GpuConfig", ["full", "mine", "any/a", "gone", 1, None], []),
        ("GpuConfig", ["any/b"], [("otherDevice", "mig.nvidia.com")]),
        ("MigDeviceConfig", ["full", "any"], [("otherDevice", "gpu.nvidia.com"), ("alternatives", "any")]),
        ("MigDeviceConfig", "full", []),
    ],
)
def test_a_configuration_reaches_the_requests_that_it_names(kind: str, names: object, notes: list) -> None:
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind}
    held = {"requests": names, "opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}
    (found,) = configs({"config": [held]}, ("spec", "devices"), ASKED)
    assert [(each["what"], each["found"]) for each in found["notes"]] == notes
