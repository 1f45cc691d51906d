"""Checks `opaque.parameters` for NVIDIA's driver in claims and classes (group nvidia-device-config).

nvidia.yaml lists what the driver accepts. The checks report configurations that the driver's plugin refuses: an unknown
kind, an invalid value, or a setting with a feature gate that is off. The checks also report configurations that the
plugin does not apply. The reasons are a kind that another driver of NVIDIA applies, a request for devices of another
type, and alternatives of a request that the configuration does not name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.breaches import message_and_fix
from webhook.facts.dra.requests import DeviceRequestOfClaim, requests_of_reviewed_claim, reviewed_claim
from webhook.facts.dra.types import (
    NVIDIA_DEVICE_CONFIG,
    Application,
    DeviceClass,
    DeviceConfiguration,
    HelmRelease,
    NvidiaParameters,
    OpaqueConfiguration,
)
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.schema.values import Breach, declarations_of_file, read_data_file
from webhook.text.similar_names import nearest_name
from webhook.text.wording import either, shown
from webhook.typed.collections import Items
from webhook.yamltext.placeholders import is_placeholder

TYPE: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/type",
    title="The parameter has the wrong type",
    why="The driver cannot read the configuration, and the pods stay in ContainerCreating.",
)
QUANTITY: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/quantity",
    title="The MPS memory limit of a GPU is not a quantity",
    why="The driver cannot read the configuration, and the pods stay in ContainerCreating.",
)
REQUIRED: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/required",
    title="A required parameter is missing",
    why="The driver does not apply the configuration, and the pods stay in ContainerCreating.",
)
NAME_FORMAT: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/name-format",
    title="The device is neither an index nor a UUID",
    why="The driver finds a device only by its index or its UUID.",
)
UNSUPPORTED_VALUE: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/unsupported-value",
    title="NVIDIA's driver does not support this value",
    why="The driver refuses a value that it does not know, and the pods stay in ContainerCreating.",
)
OUT_OF_RANGE: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/out-of-range",
    title="A number in the configuration of NVIDIA's driver is out of range",
    why="The driver refuses numbers outside the range, and the pods stay in ContainerCreating.",
)
FORBIDDEN: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/forbidden",
    title="timeSlicingConfig is set for a MIG device",
    why="A MIG device has no time slice of its own, so the driver knows no such field and refuses the configuration.",
)
EXCLUDED: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/excluded",
    title="The setting belongs to another sharing strategy",
    why="The driver refuses the settings of a strategy that is not selected.",
)
UNKNOWN_FIELD: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/unknown-field",
    title="The driver does not know this field",
    why="The driver, as of 0.5, refuses the whole configuration, and the pods stay in ContainerCreating.",
    level="warn",
)
UNKNOWN_KIND: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/unknown-kind",
    title="The driver does not know this kind",
    why="The driver, as of 0.5, refuses the configuration, and the pods stay in ContainerCreating.",
    level="warn",
)
OTHER_DRIVER: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/other-driver",
    title="The kind of the configuration belongs to another driver",
    why="A driver ignores the kinds of another driver.",
    source="kubernetes-sigs/dra-driver-nvidia-gpu@95932046 (0.5) cmd/compute-domain-kubelet-plugin/device_state.go",
    level="warn",
    fails="silent",
)
OTHER_DEVICE: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/other-device",
    title="The configuration is for another type of device",
    why="The driver applies the configuration only to devices of one class.",
    source="kubernetes-sigs/dra-driver-nvidia-gpu@95932046 (0.5) cmd/gpu-kubelet-plugin/device_state.go",
    level="warn",
    fails="silent",
)
ALTERNATIVES: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/alternatives",
    title="The configuration leaves out alternatives of the request",
    why=(
        "The driver applies a configuration only to the listed names. The name of a request does not include the "
        "alternatives of the request."
    ),
    source="kubernetes-sigs/dra-driver-nvidia-gpu@95932046 (0.5) cmd/gpu-kubelet-plugin/device_state.go",
    level="warn",
    fails="silent",
)
FEATURE_GATE: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/feature-gate",
    title="The configuration needs a driver feature gate that is off",
    why="The driver refuses this setting until its feature gate is on.",
    source="kubernetes-sigs/dra-driver-nvidia-gpu@95932046 (0.5) pkg/featuregates",
    level="warn",
)
PASSTHROUGH: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/passthrough",
    title="The passthrough value is not known to the driver",
    why="VfioDeviceConfig is new, and a later release of the driver may accept more values.",
    level="warn",
)
DOMAIN_ID: Final = NVIDIA_DEVICE_CONFIG.rule(
    "nvidia-device-config/domain-id",
    title="domainID is not a UID",
    why="The driver finds no ComputeDomain with this text as its UID, and the pods stay in ContainerCreating.",
    source="kubernetes-sigs/dra-driver-nvidia-gpu@95932046 (0.5) cmd/compute-domain-kubelet-plugin/computedomain.go",
    function="AssertComputeDomainNamespace",
    issues=("https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1349",),
)

FILE: Final = Path(__file__).with_name("nvidia.yaml")
CHART_LOOKUPS: Final = (
    interest_in_fields(HelmRelease.gvk, "spec.values.featureGates"),
    interest_in_fields(
        Application.gvk,
        "spec.source.helm.valuesObject.featureGates",
        "spec.sources.helm.valuesObject.featureGates",
    ),
)
"""Objects with the values of Helm charts, such as the driver's chart. Only audits look up these objects."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_YOUNG: Final = "VfioDeviceConfig"
"""A kind that later releases of the driver will probably change."""


def validate_device_configs(subject: Subject) -> Iterator[Problem]:
    """Report parameters in a claim, a template or a class that the driver refuses or does not apply."""
    gates = subject.assumptions.feature_gates | subject.once(_gates_of_charts)
    claim = reviewed_claim(subject)
    if claim is None:
        for class_config in subject.typed(DeviceClass).spec.config:
            yield from _check_parameters(class_config.opaque, gates)
        return
    asked = {request.name: request for request in reversed(subject.once(requests_of_reviewed_claim))}
    for config in claim.claim_spec.devices.config:
        yield from _check_parameters(config.opaque, gates)
        if _is_for_nvidia(config.opaque):
            yield from _check_requests_of_configuration(config, asked)


def _gates_of_charts(subject: Subject) -> frozenset[str]:
    """Return the feature gates that HelmReleases and Applications of other files switch on in the values of their
    charts. One of the charts may be the chart of the driver.
    """
    view = subject.cluster.cluster
    releases = map(HelmRelease.of, Items([*view.objects_in_other_files(HelmRelease.gvk)], subject.deadline))
    applications = map(Application.of, Items([*view.objects_in_other_files(Application.gvk)], subject.deadline))
    values = [*(each.spec.values for each in releases), *chain(*(each.all_values for each in applications))]
    gates = (each.feature_gates for each in values)
    return frozenset(name for each in gates for name, is_on in each.items() if is_on)


def _nvidia_table() -> Mapping[str, Any]:
    return read_data_file(FILE)


def _is_for_nvidia(opaque: OpaqueConfiguration) -> bool:
    """Return whether the parameters are an object for a driver of NVIDIA."""
    return bool(opaque.nvidia) and opaque.driver in _nvidia_table()["drivers"]


def _check_parameters(opaque: OpaqueConfiguration, gates: frozenset[str]) -> Iterator[Problem]:
    """Yield the errors that the driver's plugin will report about the parameters."""
    parameters, table = opaque.nvidia, _nvidia_table()
    if not _is_for_nvidia(opaque):
        return
    if _is_of_other_vendor(parameters):
        return
    if parameters.api_version != table["apiVersion"]:
        yield _unknown_kind_problem(parameters.path("apiVersion"), parameters.api_version, table["apiVersion"])
    elif parameters.kind not in table["kinds"]:
        near = nearest_name(parameters.kind, table["kinds"])
        yield _unknown_kind_problem(
            parameters.path("kind"), parameters.kind, either(table["drivers"][opaque.driver]), near
        )
    else:
        yield from _check_kind_of_other_driver(opaque)
        for breach in declarations_of_file(FILE).breaches(
            parameters.json, parameters.kind, parameters.at, parameters.reading.deadline
        ):
            yield from _check_breach(breach, parameters.kind)
        yield from _check_feature_gate(parameters, gates)
        yield from _check_domain_id(parameters)


def _check_domain_id(parameters: NvidiaParameters) -> Iterator[Problem]:
    written = parameters.domain_id
    if written and not is_placeholder(written) and not _UUID.fullmatch(written):
        message = "must be the UID of a ComputeDomain, a UUID, because NVIDIA's driver otherwise finds no ComputeDomain"
        fix = "use the ResourceClaimTemplate that the ComputeDomain creates instead of writing this configuration"
        yield DOMAIN_ID.problem(parameters.path("domainID"), message, fix, shown=f"`{shown(written)}`")


def _is_of_other_vendor(parameters: NvidiaParameters) -> bool:
    """Return whether the API group of the parameters belongs to another vendor, although the driver is NVIDIA's."""
    group = parameters.api_version.partition("/")[0]
    return "/" in parameters.api_version and "nvidia" not in group.lower()


def _unknown_kind_problem(at: FieldPath, given: str, expected: str, near: str = "") -> Problem:
    message = f"must be {expected} because the driver, as of 0.5, accepts no other value"
    fix = f"write `{near}` if that is meant" if near else f"write {expected}"
    return UNKNOWN_KIND.problem(at, message, fix, shown=f"`{shown(given) if given else ''}`")


def _check_kind_of_other_driver(opaque: OpaqueConfiguration) -> Iterator[Problem]:
    kind, drivers = opaque.nvidia.kind, _nvidia_table()["drivers"]
    if kind not in drivers[opaque.driver]:
        other = next(driver for driver, kinds in drivers.items() if kind in kinds)
        message = f"is ignored because only driver `{other}` applies this kind"
        yield OTHER_DRIVER.problem(opaque.nvidia.path("kind"), message, f"set the driver to {other}", kind)


_GATES_OF_OLDER_SETTINGS: Final = ("TimeSlicingSettings", "MPSSupport")
"""The gates of settings that releases of NVIDIA's driver before 25.8 accept without a gate."""


def _check_feature_gate(parameters: NvidiaParameters, gates: frozenset[str]) -> Iterator[Problem]:
    chosen = {"kind": parameters.kind, "sharing.strategy": parameters.sharing.strategy}
    for place, needed in _nvidia_table()["kinds"][parameters.kind].get("gates", {}).items():
        gate = needed.get(chosen[place])
        if gate and gate not in gates:
            since = ", from release 25.8 on" if gate in _GATES_OF_OLDER_SETTINGS else ""
            message = f"needs the driver's feature gate {gate}, which is off by default{since}"
            fix = (
                "ask the administrator to turn the gate on and to tell claimgate (featureGates in ConfigMap "
                "nvidia-device-configs)"
            )
            path = parameters.path(*place.split("."))
            yield FEATURE_GATE.problem(path, message, fix, chosen[place], for_administrators=True)


_RULES_OF_BREACHES: Final = {
    "wrongType": TYPE,
    "notQuantity": QUANTITY,
    "missing": REQUIRED,
    "badName": NAME_FORMAT,
    "notOneOf": UNSUPPORTED_VALUE,
    "outOfRange": OUT_OF_RANGE,
    "forbidden": FORBIDDEN,
    "excluded": EXCLUDED,
}


def _check_breach(breach: Breach, kind: str) -> Iterator[Problem]:
    """Yield the problem of an invalid value. For the kind `_YOUNG`, only unknown fields, wrong types and unsupported
    values are reported.
    """
    message, fix, value = message_and_fix(breach)
    if breach.what == "unknownField":
        message = (
            "must not be set because the driver, as of 0.5, does not know this field and refuses the configuration"
        )
        yield UNKNOWN_FIELD.problem(breach.at, message, fix)
        return
    if kind == _YOUNG:
        if breach.what in ("wrongType", "notOneOf"):
            yield PASSTHROUGH.problem(breach.at, message, fix, shown=value)
        return
    if breach.what == "forbidden":
        fix = "remove only this field, because sharing.strategy may stay"
    yield _RULES_OF_BREACHES[breach.what].problem(breach.at, _add_refusal_reason(message), fix, shown=value)


def _add_refusal_reason(message: str) -> str:
    reason = "because NVIDIA's driver otherwise refuses the configuration, and the pods stay in ContainerCreating"
    return message if " because " in message else f"{message} {reason}"


def _check_requests_of_configuration(
    config: DeviceConfiguration, asked: Mapping[str, DeviceRequestOfClaim]
) -> Iterator[Problem]:
    """Report requests that a configuration names, if the plugin does not apply the configuration to these requests."""
    device_class = _nvidia_table()["kinds"].get(config.opaque.nvidia.kind, {}).get("class", "")
    alternatives: dict[str, Mapping[str, Items[DeviceRequestOfClaim]]] = {}
    for index, name in enumerate(config.requests):
        main, _, sub = name.partition("/")
        request = asked.get(main)
        if request is None:
            continue
        at = config.path("requests", index)
        if request.choices and not sub:
            yield _alternatives_problem(at, name, request, device_class)
        if main not in alternatives:
            alternatives[main] = _alternatives_by_name(request, config)
        for choice in alternatives[main].get(sub, ()) if request.choices else [request]:
            yield from _check_request_of_other_class(at, choice, config.opaque, asked)


def _alternatives_by_name(
    request: DeviceRequestOfClaim, config: DeviceConfiguration
) -> Mapping[str, Items[DeviceRequestOfClaim]]:
    """Return the alternatives of a request by name. Several alternatives may have the same name."""
    named: dict[str, list[DeviceRequestOfClaim]] = {}
    for choice in request.choices:
        named.setdefault(choice.name, []).append(choice)
    return {name: Items(choices, config.reading.deadline) for name, choices in named.items()}


def _alternatives_problem(at: FieldPath, name: str, request: DeviceRequestOfClaim, device_class: str) -> Problem:
    message = f"names request `{shown(name)}`, so the driver does not configure the alternatives of this request"
    fitting = [choice.name for choice in request.choices if choice.device_class == device_class]
    fix = f"name each alternative, such as {name}/{request.choices[0].name}"
    if fitting and len(fitting) < len(request.choices):
        fix = f"name each alternative of DeviceClass {device_class}, such as {name}/{fitting[0]}"
    return ALTERNATIVES.problem(at, message, fix)


def _check_request_of_other_class(
    at: FieldPath, request: DeviceRequestOfClaim, opaque: OpaqueConfiguration, asked: Mapping[str, DeviceRequestOfClaim]
) -> Iterator[Problem]:
    table = _nvidia_table()
    kinds = {described["class"]: kind for kind, described in table["kinds"].items()}
    device_class = table["kinds"].get(opaque.nvidia.kind, {}).get("class", "")
    if device_class and request.device_class in kinds.keys() - {device_class}:
        message = (
            f"names a request of DeviceClass `{request.device_class}`, but the configuration is only for DeviceClass "
            f"`{device_class}`"
        )
        choices = [choice for each in asked.values() for choice in each.self_and_alternatives]
        has_request = any(choice.device_class == device_class for choice in choices)
        kind, fix = kinds[request.device_class], f"name a request of DeviceClass {device_class}"
        if not has_request and kind in table["drivers"][opaque.driver]:
            fix = f"set opaque.parameters.kind to {kind}"
        yield OTHER_DEVICE.problem(at, message, fix)
