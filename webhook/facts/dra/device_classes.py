"""Kubernetes' rules for DeviceClasses and DeviceTaintRules (group device-classes).

Source: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go. tests/data/dra/verdicts.tsv has the
verdicts of kube-apiserver 1.36.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.dra.breaches import (
    describe_feature_gate,
    describe_refusal,
    is_version_declared,
    parameter_breaches,
    problems_of_breaches,
    shape_breaches,
)
from webhook.facts.dra.requests import read_selectors
from webhook.facts.dra.types import DEVICE_CLASSES, DeviceClass, DeviceTaintRule, check_api_version
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem

SERVED_VERSION: Final = DEVICE_CLASSES.rule(
    "device-classes/served-version",
    title="The DeviceClass uses an API version that the cluster does not serve",
    why="The API server refuses an object in a version that it does not serve.",
    source="k8s.io/api v0.36.1 resource/*/zz_generated.prerelease-lifecycle.go",
    refused_on_updates="resource/*/zz_generated.prerelease-lifecycle.go, an API server has no path of this version",
)
SELECTOR: Final = DEVICE_CLASSES.rule(
    "device-classes/selector",
    title="A CEL selector of the DeviceClass is invalid or too expensive",
    why="The API server refuses an expression that does not compile or that may cost too much.",
    function="validateCELSelector",
)
PARAMETERS: Final = DEVICE_CLASSES.rule(
    "device-classes/parameters",
    title="The driver parameters in the DeviceClass are not an object",
    why="The API server refuses parameters that are not a JSON object.",
    function="validateRawExtension",
)
REQUIRED: Final = DEVICE_CLASSES.rule(
    "device-classes/required",
    title="A required field of the DeviceClass or DeviceTaintRule is missing",
    why="The API server refuses an object without this field.",
)
NAME_FORMAT: Final = DEVICE_CLASSES.rule(
    "device-classes/name-format",
    title="A name or key in the DeviceClass or DeviceTaintRule has an invalid format",
    why="The API server refuses the object, because nothing can have this name.",
)
UNSUPPORTED_VALUE: Final = DEVICE_CLASSES.rule(
    "device-classes/unsupported-value",
    title="A field of the DeviceClass or DeviceTaintRule has an unsupported value",
    why="The API server refuses a value that it does not know.",
)
TOO_LARGE: Final = DEVICE_CLASSES.rule(
    "device-classes/too-large",
    title="A list or the parameters of the DeviceClass are too long",
    why="The API server refuses longer lists and parameters.",
)
DEPRECATED_VERSION: Final = DEVICE_CLASSES.rule(
    "device-classes/deprecated-version",
    title="The DeviceClass uses a deprecated API version",
    why="A later release of Kubernetes does not serve this version. Rewrite the object before the cluster is upgraded.",
    refused_by="the API server of a later release",
    source="k8s.io/api v0.36.1 resource/*/zz_generated.prerelease-lifecycle.go",
    level="warn",
    level_in_tests="advice",
    severity="low",
)
UNKNOWN_FIELD: Final = DEVICE_CLASSES.rule(
    "device-classes/unknown-field",
    title="The DeviceClass or DeviceTaintRule has a field that does not exist in its API version",
    why="The API server drops the field. kubectl refuses it unless validation is off.",
    refused_by="",
    level="warn",
    severity="low",
    fails="silent",
)
SELECTOR_FEATURE_GATE: Final = DEVICE_CLASSES.rule(
    "device-classes/selector-feature-gate",
    title="A selector of the DeviceClass needs a feature gate that is off",
    why=(
        "The API server accepts attributes that are lists only if the feature gate DRAListTypeAttributes is on. The "
        "gate is off by default."
    ),
    source="k8s.io/dynamic-resource-allocation v0.36.1 cel/compile.go",
    level="warn",
    severity="low",
)
EVERY_DEVICE: Final = DEVICE_CLASSES.rule(
    "device-classes/every-device",
    title="The taint rule selects every device",
    why="Without a selector, the rule taints the devices of all drivers on all nodes.",
    refused_by="",
    source="k8s.io/api v0.36.1 resource/v1beta2 DeviceTaintRuleSpec",
    level="warn",
    severity="low",
    fails="disruption",
)


def validate_device_class(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateDeviceClass would report."""
    device_class = subject.typed(DeviceClass)
    yield from check_api_version(device_class, subject, SERVED_VERSION, DEPRECATED_VERSION)
    if is_version_declared(device_class.version):
        yield from problems_of_breaches(shape_breaches(device_class), _RULES_OF_BREACHES)
        parameters = parameter_breaches(config.opaque for config in device_class.spec.config)
        yield from problems_of_breaches(parameters, _RULES_OF_BREACHES)
    yield from _check_selectors(device_class)


def validate_device_taint_rule(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateDeviceTaintRule would report. Also report a DeviceTaintRule that taints every
    device.
    """
    rule = subject.typed(DeviceTaintRule)
    if is_version_declared(rule.version):
        yield from problems_of_breaches(shape_breaches(rule), _RULES_OF_BREACHES)
    yield from _check_taint_on_every_device(rule)


_RULES_OF_BREACHES: Final = {
    "missing": REQUIRED,
    "tooMany": TOO_LARGE,
    "tooLong": TOO_LARGE,
    "badName": NAME_FORMAT,
    "notOneOf": UNSUPPORTED_VALUE,
    "parameters": PARAMETERS,
    "unknownField": UNKNOWN_FIELD,
}


def _check_selectors(device_class: DeviceClass) -> Iterator[Problem]:
    """Yield the problems that validateCELSelector would report: rules selector and selector-feature-gate."""
    for selector in read_selectors(device_class.spec.selectors):
        if selector.errors.problem:
            yield SELECTOR.problem(selector.at, *describe_refusal(selector))
        elif selector.errors.gated:
            yield SELECTOR_FEATURE_GATE.problem(selector.at, *describe_feature_gate(), is_conditional=True)


def _check_taint_on_every_device(rule: DeviceTaintRule) -> Iterator[Problem]:
    """Report a DeviceTaintRule that taints every device (k8s.io/api v0.36.1 resource/v1beta2 DeviceTaintRuleSpec)."""
    effect, selector = rule.spec.taint.effect, rule.spec.device_selector
    selects_all_devices = not any(selector.has(field) for field in ("driver", "pool", "device"))
    if selects_all_devices and effect not in ("", "None"):
        evicts = " and evicts every pod that uses a device" if effect == "NoExecute" else ""
        state = "has no driver, pool or device" if selector.json else "is empty"
        if not rule.spec.has("deviceSelector"):
            state = "is not set"
        message = f"{state}, so the taint is put on every device of the cluster{evicts}"
        yield EVERY_DEVICE.problem(selector.at, message, "set driver, pool or device, or try effect None first")
