"""Configurations for NVIDIA's driver: the rules of its optional webhook and of its plugin.

The first rows are those of kubernetes-sigs/dra-driver-nvidia-gpu@95932046 cmd/webhook/main_test.go.
"""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.facts.check import problems_of_group


def sharing(strategy: str, **more: object) -> dict:
    return {"sharing": {"strategy": strategy, **more}}


def problems(config: object, *requests: dict) -> list[tuple[str, str, str]]:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [*requests], "config": config}},
    }
    said = problems_of_group("nvidia-device-config", subject(claim)).problems
    start = "spec.devices.config[0]."
    return [
        (each.code.removeprefix("nvidia-device-config/"), each.path.removeprefix(start), each.found_and_message)
        for each in said
    ]


def broken(kind: str, driver: str = "gpu.nvidia.com", **parameters: object) -> list[tuple[str, str]]:
    held = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **parameters}
    found = problems([{"opaque": {"driver": driver, "parameters": held}}])
    return [(rule, path.removeprefix("opaque.parameters.")) for rule, path, _ in found]


GATED = ("feature-gate", "sharing.strategy")


@pytest.mark.parametrize(
    ("kind", "parameters", "rules"),
    [
        ("GpuConfig", sharing("TimeSlicing", timeSlicingConfig={"interval": "Default"}), [GATED]),
        (
            "GpuConfig",
            sharing("TimeSlicing", timeSlicingConfig={"interval": "Invalid Interval"}),
            [("unsupported-value", "sharing.timeSlicingConfig.interval"), GATED],
        ),
        (
            "GpuConfig",
            sharing("MPS", mpsConfig={"defaultActiveThreadPercentage": -1}),
            [("out-of-range", "sharing.mpsConfig.defaultActiveThreadPercentage"), GATED],
        ),
        ("GpuConfig", sharing("MPS", mpsConfig={"defaultActiveThreadPercentage": 50}), [GATED]),
        ("GpuConfig", {}, []),
        ("GpuConfig", {"sharing": {}}, [("required", "sharing.strategy")]),
        ("MigDeviceConfig", sharing("TimeSlicing"), [GATED]),
        ("MigDeviceConfig", sharing("TimeSlicing", mpsConfig={}), [GATED]),
        ("VfioDeviceConfig", {}, [("feature-gate", "kind")]),
        ("NoConfig", {}, [("unknown-kind", "kind")]),
        ("GpuConfig", {"apiVersion": "resource.nvidia.com/v1"}, [("unknown-kind", "apiVersion")]),
    ],
)
def test_parameters_are_read_as_the_driver_reads_them(kind: str, parameters: dict, rules: list) -> None:
    assert broken(kind, **parameters) == rules


def test_a_kind_belongs_to_one_driver() -> None:
    domain = {"domainID": "0f4b3c5e-6d1a-4c55-9a4e-3f0f3f0a1b2c"}
    assert broken("ComputeDomainChannelConfig", **domain) == [("other-driver", "kind")]
    assert broken("ComputeDomainChannelConfig", "compute-domain.nvidia.com", **domain, allocationMode="All") == []


@pytest.mark.parametrize("config", [None, {}, [None, "x", {}, {"opaque": None}, {"opaque": "x"}]])
def test_unusual_shapes_have_no_configurations(config: object) -> None:
    assert problems(config) == []


@pytest.mark.parametrize("parameters", [None, [], "x", 1])
def test_parameters_that_are_no_object_are_not_read(parameters: object) -> None:
    assert problems([{"opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}]) == []


REQUESTS = (
    {"name": "full", "exactly": {"deviceClassName": "gpu.nvidia.com"}},
    {"name": "mine", "exactly": {"deviceClassName": "gpus.example.com"}},
    {
        "name": "any",
        "firstAvailable": [
            {"name": "a", "deviceClassName": "gpu.nvidia.com"},
            {"name": "b", "deviceClassName": "mig.nvidia.com"},
        ],
    },
)


@pytest.mark.parametrize(
    ("kind", "names", "rules"),
    [
        ("GpuConfig", ["full", "mine", "any/a", "gone", 1, None], []),
        ("GpuConfig", ["any/b"], [("other-device", "requests[0]", "mig.nvidia.com")]),
        (
            "MigDeviceConfig",
            ["full", "any"],
            [("other-device", "requests[0]", "gpu.nvidia.com"), ("alternatives", "requests[1]", "any")],
        ),
        ("MigDeviceConfig", "full", []),
    ],
)
def test_a_configuration_reaches_the_requests_that_it_names(kind: str, names: object, rules: list) -> None:
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind}
    config = {"requests": names, "opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}
    found = problems([config], *REQUESTS)
    assert [(rule, path) for rule, path, _ in found] == [(rule, path) for rule, path, _ in rules]
    assert all(f"`{name}`" in message for (_, _, name), (_, _, message) in zip(rules, found, strict=True))
