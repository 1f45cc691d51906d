"""Compares the selectors of claims and classes with the devices that the cluster has now: resource-slices.

A view without ResourceSlices has no problems. Controllers make claims of templates, which were checked themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.dra.inventory import AllocatableDevices, SelectedDevices, find_matching_devices
from webhook.facts.dra.published_devices import models_of_mixed_node
from webhook.facts.dra.requests import reviewed_claim
from webhook.facts.dra.types import RESOURCE_SLICES, DeviceClass
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.collections import Items

NO_DEVICE: Final = RESOURCE_SLICES.rule(
    "resource-slices/no-device",
    title="No device of the cluster matches the selectors",
    why="The pods stay Pending until a matching device exists.",
    function="isSelectable",
)
TOO_FEW_DEVICES: Final = RESOURCE_SLICES.rule(
    "resource-slices/too-few-devices",
    title="No node has as many devices as the request asks for",
    why=(
        "The pods stay Pending until one node can give as many devices. Devices with taints that the request does not "
        "tolerate do not count."
    ),
    function="allocateDevice",
)
DIFFERENT_MODELS: Final = RESOURCE_SLICES.rule(
    "resource-slices/different-models",
    title="One request may get devices of different models",
    why="A training is as slow as its slowest device, and on a node with several models a request may get both.",
    source="k8s.io/api v0.36.1 resource/v1 types.go DeviceConstraint",
    severity="low",
    fails="silent",
)
SELECTOR_FAILS: Final = RESOURCE_SLICES.rule(
    "resource-slices/selector-fails",
    title="The selector fails with an error on a device of the cluster",
    why=(
        "A device may lack the attribute that the selector reads. The error ends the scheduler's attempt to allocate "
        "the claim."
    ),
    function="selectorsMatch",
)

_GENERATED: Final = ("resource.kubernetes.io/pod-claim-name", "resource.kubernetes.io/extended-resource-claim")
"""Annotations of claims that a controller creates from a template."""


def validate_selected_devices(subject: Subject) -> Iterator[Problem]:
    """Yield requests with selectors that select no device, too few, or fail on one."""
    obj = reviewed_claim(subject) or subject.typed(DeviceClass)
    if any(name in obj.metadata.annotations for name in _GENERATED):
        return
    devices = find_matching_devices(subject)
    most, constrained = _most_devices_of_alternatives(devices.selections), _names_of_constrained_requests(subject)
    for selection in devices.selections:
        if selection.failures:
            yield _failing_selector_problem(selection)
        elif selection.count == 0 and (not selection.of or most[selection.of] == 0):
            # one alternative may get nothing, but not all of them
            yield _no_device_problem(selection, devices.devices, subject.cluster_view())
        if _selects_too_few_devices(selection):
            yield _too_few_devices_problem(selection)
        elif (selection.wanted or 0) > 1 and constrained.isdisjoint(_names_of_selection(selection)):
            yield from _check_different_models(selection)


def _selects_too_few_devices(selection: SelectedDevices) -> bool:
    most = selection.allocatable.most
    if not selection.count or selection.of or (selection.wanted or 0) <= most:
        return False
    return most == 0 or not selection.is_shared


def _names_of_constrained_requests(subject: Subject) -> frozenset[str]:
    """Return the names of requests that a constraint is about; "" among them if it is about all."""
    claim = reviewed_claim(subject)
    constraints = claim.claim_spec.devices.constraints if claim else ()
    return frozenset(name for constraint in constraints for name in constraint.requests or ("",))


def _names_of_selection(selection: SelectedDevices) -> tuple[str, ...]:
    """Return the names by which a constraint may refer to a request."""
    if selection.of:
        return "", selection.of, f"{selection.of}/{selection.name}"
    return "", selection.name


def _most_devices_of_alternatives(selections: Items[SelectedDevices]) -> Mapping[str, int]:
    """Return how many devices the alternatives of a request select at most; 1 if that is not known."""
    most: dict[str, int] = {}
    for selection in selections:
        count = 1 if selection.count is None else selection.count
        most[selection.of] = max(most.get(selection.of, 0), count)
    return most


def _check_different_models(selection: SelectedDevices) -> Iterator[Problem]:
    mixed = models_of_mixed_node(selection.allocatable.devices)
    if mixed is not None:
        models = " and ".join(f"`{model}`" for model in mixed.models)
        message = (
            f"takes any {selection.wanted} devices that fit, but node `{mixed.node}` has the models {models}, so "
            "a slower device slows the others"
        )
        fix = f"add a constraint with matchAttribute {mixed.attribute}, or a selector for one model"
        yield DIFFERENT_MODELS.problem(selection.at, message, fix)


def _no_device_problem(selection: SelectedDevices, devices: int, view: ClusterView) -> Problem:
    of_class, wait = (
        view.name_with_file(DeviceClass.gvk, selection.device_class),
        "or wait until such devices are added",
    )
    fix = f"change the selectors so that they match devices of the cluster, {wait}"
    if not selection.device_class:
        message = f"the selectors match none of the {devices} devices that the cluster has now"
    elif selection.of_class == 0:
        message = f"none of the {devices} devices that the cluster has now is of {of_class}, so the pods stay Pending"
        fix = f"use another DeviceClass, {wait}"
    else:
        taken = f"the selectors match none of the {selection.of_class} devices of {of_class} that the cluster has now"
        message = f"{taken}, so the pods stay Pending"
    return NO_DEVICE.problem(selection.at, message, fix)


def _too_few_devices_problem(selection: SelectedDevices) -> Problem:
    wanted, count, left = selection.wanted or 0, selection.count or 0, selection.allocatable
    has, fix = f"all nodes of the cluster together have {count} of that kind now", "ask for fewer devices"
    if wanted <= count:
        of = "of that kind that the cluster has now"
        none = f"any of the {count}" if count > 1 else "the one device"
        has = f"no node can give {f'more than {left.most} of the {count}' if left.most else none} {of}"
        has, fix = f"{has}{_reasons_in_brackets(left)}", _fix_for_few_devices(left)
    message = f"asks for {counted(wanted, 'device')}, but {has}, so the pods stay Pending"
    return TOO_FEW_DEVICES.problem(selection.at, message, fix)


def _reasons_in_brackets(left: AllocatableDevices) -> str:
    """Return a text in brackets with the reasons why a node can give fewer devices than it has."""
    reasons = []
    if left.tainted:
        taint = f"a taint such as `{left.taint}` that the request does not tolerate"
        reasons.append(f"{counted(left.tainted, 'has', 'have')} {taint}")
    if left.small:
        reasons.append(f"{counted(left.small, 'has', 'have')} less capacity than the request asks for")
    if left.is_counted:
        reasons.append("the counters that devices share do not suffice for more")
    return f" ({'; '.join(reasons)})" if reasons else ""


def _fix_for_few_devices(left: AllocatableDevices) -> str:
    if left.tainted:
        return "wait until the taint is removed, or tolerate the taint"
    return "ask for less of each device" if left.small and not left.most else "ask for fewer devices"


def _failing_selector_problem(selection: SelectedDevices) -> Problem:
    failure = selection.failures[0]
    message = (
        f"a selector fails on device {failure.device} ({failure.message}), so the scheduler gives up on the node of "
        "this device"
    )
    fix = "in the selector, check device.driver first, or check with `in` whether the device has the key"
    return SELECTOR_FAILS.problem(selection.at, message, fix)
