"""Resources of containers, of a pod as a whole and of its overhead, as Kubernetes validates them.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go, after the defaults of pkg/apis/core/v1/
defaults.go; functions are named like those there. Of each amount the first rule that it breaks is told. A name with
`kubernetes.io/` is validated by nobody; an amount or a name with `$` or `{{` is filled in later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from webhook.attributes import JSON
from webhook.facts.pods import amounts
from webhook.facts.pods.amounts import HUGE, STANDARD, Name
from webhook.facts.subject import Subject
from webhook.paths import FieldPath, render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

Part: TypeAlias = Literal["containers", "initContainers", "ephemeralContainers", "pod", "overhead"]
LISTS: Final[tuple[Part, ...]] = ("containers", "initContainers", "ephemeralContainers")
_SIMPLE: Final = re.compile(r"[0-9]{1,15}(?:[.][0-9]{1,3})?(?:m|k|[MGTP]|[KMGTP]i)?", re.ASCII)
"""How nearly all amounts of cpu and memory are written: quantities that break no rule by themselves."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where resources stand: in a container, for the pod as a whole, or as overhead, which has the rules of limits."""

    part: Part
    path: FieldPath
    limits: Mapping[str, JSON]
    requests: Mapping[str, JSON]
    restarts: bool = False


def problem(rule: str, path: FieldPath, message: str, fix: str, found: str = "") -> Problem:
    """A problem of this group."""
    return Problem(code=f"pod-resources/{rule}", path=render(path), message=message, fix=fix, found=found)


def places(subject: Subject) -> list[Place]:
    """Every place of a pod where resources may stand."""
    spec = _map(subject.object.get("spec"))
    found = [
        _place(part, ("spec", part, index), container.get("resources"), container.get("restartPolicy") == "Always")
        for part in LISTS
        for index, container in enumerate(subject.deadline.each(_list(spec.get(part))))
        if isinstance(container, dict) and container.get("resources") is not None
    ]
    if spec.get("resources") is not None:
        found.append(_place("pod", ("spec",), spec["resources"]))
    if overhead := _map(spec.get("overhead")):
        found.append(Place("overhead", ("spec", "overhead"), overhead, {}))
    return found


def _place(part: Part, path: FieldPath, resources: JSON, restarts: bool = False) -> Place:
    given = _map(resources)
    return Place(part, (*path, "resources"), _map(given.get("limits")), _map(given.get("requests")), restarts)


def _map(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, dict) else {}


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def validate_resource_requirements(place: Place, subject: Subject) -> Iterator[Problem]:
    """ValidateContainerResourceRequirements, validatePodResources for the pod as a whole, and overhead."""
    limits_at = place.path if place.part == "overhead" else (*place.path, "limits")
    for name, value in subject.deadline.each(place.limits.items()):
        if place.part == "pod" or not _is_simple(name, value):
            yield from _validate_amount(place, (*limits_at, name), name, value)
    for name, value in subject.deadline.each(place.requests.items()):
        if name not in place.limits or place.limits[name] != value:
            yield from _validate_request(place, name, value)


def _is_simple(name: str, value: JSON) -> bool:
    return name in STANDARD and isinstance(value, str) and _SIMPLE.fullmatch(value) is not None


def _validate_amount(place: Place, path: FieldPath, name: str, value: JSON) -> Iterator[Problem]:
    if is_placeholder(name) or is_placeholder(amounts.text_of(value)):
        return
    known = amounts.name_of(name)
    if place.part == "pod" and name not in ("cpu", "memory") and known.page is None:
        text = f"`{name}` must not be asked for the pod as a whole, which takes cpu, memory and hugepages alone"
        yield problem("pod-level-name", path, text, "ask for it in a container")
        return
    for each in (*validate_resource_name(known, path), *validate_resource_quantity_value(known, path, value)):
        yield each
        return


def validate_resource_name(name: Name, path: FieldPath) -> Iterator[Problem]:
    """As validateContainerResourceName."""
    text = name.text
    if not name.is_qualified and "/" in text:
        rule = "must be a domain, one slash and a name of at most 63 letters, digits, dashes, dots and underscores"
        yield problem(
            "resource-name",
            path,
            f"`{text}` {rule}, and the domain must not start with `requests.`",
            "write a full name such as nvidia.com/gpu",
        )
    elif text.lower() in STANDARD and text not in STANDARD:
        yield problem("resource-case", path, f"`{text}` must be in lower case", f"write `{text.lower()}`")
    elif not name.is_qualified or ("/" not in text and text not in STANDARD and name.page is None):
        yield problem(
            "unknown-resource",
            path,
            f"`{text}` must be a resource of Kubernetes, or have the domain of the vendor of a device",
            "write a full name such as nvidia.com/gpu",
        )
    elif name.page == 0:
        yield problem(
            "page-size", path, f"`{text}` must end with the size of a page", "write a name such as hugepages-2Mi"
        )


def validate_resource_quantity_value(name: Name, path: FieldPath, value: JSON) -> Iterator[Problem]:
    """ValidateResourceQuantityValue and validateResourceQuantityHugePageValue."""
    found, amount = amounts.shown(value), amounts.read(amounts.text_of(value))
    if amount is None:
        yield problem("quantity", path, "must be a quantity", "write a number such as 1, 500m or 4Gi", found)
    elif amount.sign() < 0:
        yield problem("not-negative", path, "must not be negative", "set 0 or more", found)
    elif not amounts.is_small(amount):
        return
    elif name.is_extended and not amount.is_whole():
        text = "must be a whole number because a device is given whole"
        yield problem("whole-number", path, text, f"set {amount.value()}", found)
    elif name.page and name.page < amounts.LARGEST and amount.value() % name.page:
        text = "must be a multiple of the page size because pages are given whole"
        yield problem("whole-pages", path, text, f"set a multiple of {name.text.removeprefix(HUGE)}", found)


def _validate_request(place: Place, name: str, value: JSON) -> Iterator[Problem]:
    path = (*place.path, "requests", name)
    own = list(_validate_amount(place, path, name, value))
    yield from own
    if not own and not is_placeholder(name) and not is_placeholder(amounts.text_of(value)):
        yield from _compare_with_limit(place, path, amounts.name_of(name), value)


def _compare_with_limit(place: Place, path: FieldPath, name: Name, value: JSON) -> Iterator[Problem]:
    text, found = amounts.text_of(value), amounts.shown(value)
    if name.text not in place.limits:
        if not name.is_overcommitted:
            message = "must have a limit because such a resource cannot be overcommitted"
            yield problem("limit-required", path, message, f"set limits to `{text}` too")
        return
    shown = amounts.text_of(place.limits[name.text])
    request, limit = amounts.read(text), amounts.read(shown)
    if request is None or limit is None:
        return
    difference = request.milli_value() - limit.milli_value()
    if difference and not name.is_overcommitted:
        message = f"must equal the limit `{shown}` because such a resource cannot be overcommitted"
        yield problem("request-equals-limit", path, message, "set the limit alone", found)
    elif difference > 0:
        message = f"must not be above the limit `{shown}`"
        yield problem("request-above-limit", path, message, "lower the request or raise the limit", found)


def validate_hugepages_are_not_alone(place: Place, subject: Subject) -> Iterator[Problem]:
    """The end of ValidateContainerResourceRequirements: hugepages need cpu or memory."""
    names = {*place.limits, *place.requests}
    if any(name.startswith(HUGE) for name in subject.deadline.each(names)) and not names & {"cpu", "memory"}:
        message = "must have cpu or memory because hugepages are not given alone"
        yield problem("hugepages-alone", place.path, message, "set a limit of memory")


def validate_ephemeral_container(place: Place) -> Iterator[Problem]:
    """As validateEphemeralContainers: resources are none of the fields that it allows."""
    if place.limits or place.requests:
        message = "must not be set because an ephemeral container uses what the pod has"
        yield problem("ephemeral-container", place.path, message, "remove them")
