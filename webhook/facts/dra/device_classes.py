"""What Kubernetes refuses of device classes, and of rules that taint devices: device-classes.

Source: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go. tests/data/dra/verdicts.tsv holds the
rules to kube-apiserver 1.36.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.dra.api_versions import version_fault
from webhook.facts.dra.breach_words import words_of
from webhook.facts.dra.claim_values import is_declared, shape_breaches
from webhook.facts.dra.parameter_values import parameter_breaches
from webhook.facts.dra.requests import selectors
from webhook.facts.dra.selector_words import feature_gate_words, refusal_words
from webhook.facts.dra.slice_types import DeviceTaintRule
from webhook.facts.dra.types import DeviceClass
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.schema.values import Breach

problem: Final = Group("device-classes").problem


def validate_device_class(subject: Subject) -> Iterator[Problem]:
    """As ValidateDeviceClass."""
    device_class = subject.typed(DeviceClass)
    yield from _api_version(device_class, subject)
    if is_declared(device_class.version):
        yield from _values(shape_breaches(device_class))
        yield from _values(parameter_breaches(config.opaque for config in device_class.spec.config))
    yield from _selectors(device_class)


def validate_device_taint_rule(subject: Subject) -> Iterator[Problem]:
    """As ValidateDeviceTaintRule, and rules that put a taint on every device."""
    rule = subject.typed(DeviceTaintRule)
    if is_declared(rule.version):
        yield from _values(shape_breaches(rule))
    yield from _every_device(rule)


def _api_version(device_class: DeviceClass, subject: Subject) -> Iterator[Problem]:
    """Rules served-version and deprecated-version."""
    fault = version_fault(device_class.version, subject.assumptions.kubernetes[1])
    if fault and fault.is_deprecated:
        yield problem("deprecated-version", "apiVersion", fault.message, fault.fix, device_class.api_version)
    elif fault:
        yield problem("served-version", "apiVersion", fault.message, fault.fix, device_class.api_version)


def _values(breaches: Iterable[Breach]) -> Iterator[Problem]:
    """The rules about values, with what to say."""
    for breach in breaches:
        message, fix, shown = words_of(breach)
        match breach.what:
            case "missing":
                yield problem("required", breach.at, message, fix)
            case "tooMany" | "tooLong":
                yield problem("too-large", breach.at, message, fix)
            case "badName":
                yield problem("name-format", breach.at, message, fix, shown=shown)
            case "notOneOf":
                yield problem("unsupported-value", breach.at, message, fix, shown=shown)
            case "parameters":
                yield problem("parameters", breach.at, message, fix, shown=shown)
            case "unknownField":
                yield problem("unknown-field", breach.at, message, fix)
            case _:
                raise KeyError(breach.what)


def _selectors(device_class: DeviceClass) -> Iterator[Problem]:
    """As validateCELSelector: rules selector and selector-feature-gate."""
    for selector in selectors(device_class.spec.selectors):
        if selector.judged.problem:
            yield problem("selector", selector.at, *refusal_words(selector))
        elif selector.judged.gated:
            yield problem("selector-feature-gate", selector.at, *feature_gate_words(selector))


def _every_device(rule: DeviceTaintRule) -> Iterator[Problem]:
    """k8s.io/api v0.36.1 resource/v1beta2 DeviceTaintRuleSpec: without a selector, or with an empty one."""
    effect, selector = rule.spec.taint.effect, rule.spec.device_selector
    is_open = not any(selector.has(field) for field in ("driver", "pool", "device"))
    if is_open and effect not in ("", "None"):
        evicts = " and evicts every pod that uses one" if effect == "NoExecute" else ""
        message = f"does not restrict the devices, so the taint is put on every device of the cluster{evicts}"
        yield problem("every-device", selector.at, message, "set driver, pool or device, or try effect None first")
