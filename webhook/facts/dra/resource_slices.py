"""What the selectors of claims and classes take of the devices that the cluster has now (ResourceSlices).

A view without ResourceSlices says nothing. Controllers make claims of templates, which were checked themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.dra.allocatable import Allocatable
from webhook.facts.dra.device_models import different_models
from webhook.facts.dra.inventory import inventory
from webhook.facts.dra.requests import constraints
from webhook.facts.pods.containers import mapping
from webhook.facts.subject import Subject
from webhook.paths import get
from webhook.problem import Problem
from webhook.wording import counted

_MADE: Final = ("resource.kubernetes.io/pod-claim-name", "resource.kubernetes.io/extended-resource-claim")


def validate_selected_devices(subject: Subject) -> Iterator[Problem]:
    """Requests whose selectors take no device, too few, or fail on one."""
    annotations = mapping(get(subject.object, ("metadata", "annotations")))
    if any(name in annotations for name in _MADE):
        return
    devices = inventory(subject.object, subject.view())
    selected, constrained = _most_of_alternatives(devices["requests"]), _constrained(subject)
    for each in subject.deadline.each(devices["requests"]):
        if each["failures"]:
            yield _failing(each)
        elif each["selected"] == 0 and (not each["of"] or selected[each["of"]] == 0):
            # an alternative that takes nothing is what alternatives are for, unless all of them do
            yield _none(each, devices["devices"])
        most = each["allocatable"].most
        if each["selected"] and not each["of"] and (each["wanted"] or 0) > most and (most == 0 or not each["shared"]):
            yield _few(each)
        elif (each["wanted"] or 0) > 1 and constrained.isdisjoint(_names(each)):
            yield from _different(each, subject)


def _constrained(subject: Subject) -> frozenset[str]:
    """The requests that a constraint is about; "" among them for all."""
    spec = get(subject.object, ("spec", "spec")) or get(subject.object, ("spec",))
    listed = subject.deadline.paced(constraints(spec, ("spec",)))
    return frozenset(name for each in listed for name in each["requests"] or ("",))


def _names(asked: JSON) -> tuple[str, ...]:
    """What a constraint may call a request: by its name, that of the alternative, or not at all."""
    return ("", asked["of"], f"{asked['of']}/{asked['name']}") if asked["of"] else ("", asked["name"])


def _different(asked: JSON, subject: Subject) -> Iterator[Problem]:
    mixed = different_models(asked["allocatable"].devices, subject.deadline)
    if mixed is not None:
        models = " and ".join(f"`{each}`" for each in mixed.models)
        message = (
            f"takes any {asked['wanted']} devices that fit, and those of node `{mixed.node}` are of the models {models}"
        )
        fix = f"add a constraint with matchAttribute {mixed.attribute}, or a selector for one model"
        yield _problem("different-models", asked, f"{message}, so a slower device slows the others", fix)


def _most_of_alternatives(asked: Sequence[JSON]) -> Mapping[str, int]:
    """Devices that the alternatives of a request take; one that nobody can tell takes some."""
    most: dict[str, int] = {}
    for each in asked:
        count = 1 if each["selected"] is None else each["selected"]
        most[each["of"]] = max(most.get(each["of"], 0), count)
    return most


def _problem(rule: str, asked: JSON, message: str, fix: str) -> Problem:
    return Problem(code=f"resource-slices/{rule}", path=asked["path"], message=message, fix=fix)


def _none(asked: JSON, devices: int) -> Problem:
    of_class, wait = f"DeviceClass `{asked['deviceClass']}`", "or wait until such devices are added"
    fix = f"change the selectors so that they match devices of the cluster, {wait}"
    if not asked["deviceClass"]:
        message = f"the selectors match none of the {devices} devices that the cluster has now"
    elif asked["classed"] == 0:
        message = f"none of the {devices} devices that the cluster has now is of {of_class}, so the pods stay Pending"
        fix = f"use another DeviceClass, {wait}"
    else:
        taken = f"the selectors match none of the {asked['classed']} devices of {of_class} that the cluster has now"
        message = f"{taken}, so the pods stay Pending"
    return _problem("no-device", asked, message, fix)


def _few(asked: JSON) -> Problem:
    wanted, selected, given = asked["wanted"], asked["selected"], asked["allocatable"]
    has, fix = f"all nodes of the cluster together have {selected} of that kind now", "ask for fewer devices"
    if wanted <= selected:
        of = "of that kind that the cluster has now"
        none = f"any of the {selected}" if selected > 1 else "the one device"
        has = f"no node can give {f'more than {given.most} of the {selected}' if given.most else none} {of}"
        has, fix = f"{has}{_reasons(given)}", _fix(given)
    message = f"asks for {counted(wanted, 'device')}, but {has}, so the pods stay Pending"
    return _problem("too-few-devices", asked, message, fix)


def _reasons(given: Allocatable) -> str:
    """Why a node can give fewer than there are, in brackets."""
    said = []
    if given.tainted:
        taint = f"a taint such as `{given.taint}` that the request does not tolerate"
        said.append(f"{counted(given.tainted, 'has', 'have')} {taint}")
    if given.small:
        said.append(f"{counted(given.small, 'has', 'have')} less capacity than the request asks for")
    if given.is_counted:
        said.append("the counters that devices share do not suffice for more")
    return f" ({'; '.join(said)})" if said else ""


def _fix(given: Allocatable) -> str:
    if given.tainted:
        return "wait until the taint is removed, or tolerate the taint"
    return "ask for less of each device" if given.small and not given.most else "ask for fewer devices"


def _failing(asked: JSON) -> Problem:
    first = asked["failures"][0]
    message = (
        f"a selector fails on device {first['device']} ({first['text']}), so the scheduler gives up on the node of "
        "this device"
    )
    return _problem(
        "selector-fails",
        asked,
        message,
        "in the selector, check device.driver first, or check with `in` whether the device has the key",
    )
