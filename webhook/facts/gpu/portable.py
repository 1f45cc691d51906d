"""The portable resource name `gpu`: where an object asks for it, and which extended resource it means here.

Docker, OpenSandbox and the Kubeflow SDK write `gpu`; Kubernetes knows only the extended resources of vendors. Says what
is written and what it comes to; what is translated and what is refused is the policy's. A count is a positive whole
number as text or number, with spaces around it, a leading plus or zeros, of at most 18 digits. A place with a
placeholder is left alone until it is filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook import paths, quantity
from webhook.attributes import JSON
from webhook.facts.pods.containers import containers
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.workloads.embedded import embedded, holds_objects
from webhook.workloads.podsets import Fragment, fragments, group_kind
from webhook.workloads.resource_fields import resource_fields

NAME: Final = "gpu"
POD: Final = ("", "Pod")
SIDES: Final = ("limits", "requests")
_COUNT: Final = re.compile(r"[+]?0*([1-9][0-9]{0,17})")
_ZERO: Final = re.compile(r"[+-]?0{1,18}")


@dataclass(frozen=True, slots=True)
class Place:
    """One place of limits and requests. In a `patch` of a template, null takes the template's amount away."""

    path: FieldPath
    resources: JSON
    is_windows: bool = False
    is_patch: bool = False

    def amounts(self, side: str) -> JSON:
        """Its limits or requests."""
        return mapping(mapping(self.resources).get(side))

    @property
    def asks(self) -> bool:
        """Whether it names `gpu`, and with no value that is still to be filled in."""
        values = [amounts[NAME] for side in SIDES if NAME in (amounts := self.amounts(side))]
        return bool(values) and not any(isinstance(value, str) and is_placeholder(value) for value in values)

    def mistyped(self) -> Iterator[tuple[FieldPath, JSON]]:
        """Values of `gpu` that are neither texts nor numbers."""
        for side in SIDES:
            if isinstance(value := self.amounts(side).get(NAME), dict | list | bool):
                yield (*self.path, side, NAME), value


def asked(subject: Subject) -> list[tuple[Place, Place | None]]:
    """Places that ask for `gpu` and are new or have changed, each with what stood there before."""
    old = () if subject.old_object is None else _places(subject.old_object, subject)
    before = {each.path: each for each in subject.deadline.paced(old)}
    now = subject.deadline.paced(_places(subject.object, subject))
    pairs = ((place, before.get(place.path)) for place in now if place.asks)
    return [(place, old) for place, old in pairs if old is None or old.resources != place.resources]


def _places(obj: JSON, subject: Subject) -> Iterator[Place]:
    """A Pod's containers, or what another object has outside its templates, which are Pods of their own."""
    if not isinstance(obj, dict):
        return
    if group_kind(obj) == POD:
        yield from _in_template(obj, (), is_windows=_is_windows(obj))
        return
    for path, root in _roots(obj, subject):
        for field in resource_fields(root, subject.table):
            if not field.is_device:
                yield Place((*path, *field.path), field.resources)
        # containers of a fragment for a TrainJob's runtime have no resources in the CRD
        for fragment in fragments(root, subject.table, subject.deadline, of_runtime=False):
            yield from _in_fragment(fragment, path, root)


def _roots(obj: JSON, subject: Subject) -> Iterator[tuple[FieldPath, JSON]]:
    """An object and those inside it, each with its place."""
    yield (), obj
    if holds_objects(obj, subject.table):
        yield from ((each.path, each.object) for each in subject.deadline.paced(embedded(obj, subject.table)))


def _in_fragment(fragment: Fragment, path: FieldPath, root: JSON) -> Iterator[Place]:
    """Containers of a partial template."""
    is_patch = fragment.of.startswith("spec.")
    into = paths.get(root, tuple(fragment.of.split("."))) if is_patch else None
    has_own = "os" in mapping(fragment.template.get("spec"))
    is_windows = _is_windows(fragment.template if has_own else into)
    yield from _in_template(fragment.template, (*path, *fragment.path), is_windows=is_windows, is_patch=is_patch)


def _in_template(template: JSON, path: FieldPath, *, is_windows: bool, is_patch: bool = False) -> Iterator[Place]:
    for container in containers(template):
        if (resources := container.value.get("resources")) is not None:
            yield Place((*path, *container.path, "resources"), resources, is_windows, is_patch)


def _is_windows(template: JSON) -> bool:
    return bool(paths.get(template, ("spec", "os", "name")) == "windows")


def devices(subject: Subject) -> Iterator[FieldPath]:
    """Fields with the name of a device and a quantity whose name is `gpu`, and was another before; never of a Pod."""
    if group_kind(subject.object) == POD:
        return
    before = set(_devices(subject.old_object, subject)) if subject.old_object is not None else ()
    yield from (path for path in _devices(subject.object, subject) if path not in before)


def _devices(obj: JSON, subject: Subject) -> Iterator[FieldPath]:
    for path, root in _roots(obj, subject):
        for field in resource_fields(root, subject.table):
            if field.device == NAME:
                yield (*path, *field.path)


def names_gpu(subject: Subject) -> bool:
    """Whether anything in a Pod names `gpu` among limits or requests, wherever Kubernetes may take it or not."""
    spec = subject.object.get("spec") or {}
    holders = [spec]
    for name in _HOLDERS:
        if listed := spec.get(name):
            holders += subject.deadline.each(listed)
    for each in holders:
        resources = each.get("resources")
        if resources and (NAME in (resources.get("limits") or ()) or NAME in (resources.get("requests") or ())):
            return True
    return False


def elsewhere(subject: Subject) -> Iterator[tuple[FieldPath, bool]]:
    """Where a Pod asks for `gpu` and Kubernetes takes no device, and whether that is in an ephemeral container.

    k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go validatePodResourceName,
    allowedEphemeralContainerFields.
    """
    spec = paths.get(subject.object, ("spec",)) if group_kind(subject.object) == POD else None
    number = len(items(mapping(spec).get(_EPHEMERAL)))
    for path in subject.deadline.paced([("spec",), *(("spec", _EPHEMERAL, n) for n in range(number))]):
        for side in SIDES:
            field = (*path, "resources", side, NAME)
            if paths.get(subject.object, field) is not None:
                yield field, path != ("spec",)


_EPHEMERAL: Final = "ephemeralContainers"
_HOLDERS: Final = ("containers", "initContainers", _EPHEMERAL)


def count(value: JSON) -> str:
    """The positive whole number that somebody means, in plain digits: `" +02 "` -> "2"; "" for everything else."""
    match = _COUNT.fullmatch(shown(value).strip())
    return match[1] if match else ""


def count_of_patch(value: JSON) -> str:
    """The same in a patch of a template, where 0 takes the devices of the template away."""
    return count(value) or ("0" if _ZERO.fullmatch(shown(value).strip()) else "")


def whole(value: JSON) -> str:
    """The whole number that Kubernetes reads: `2000m` -> "2"; "" for everything else."""
    try:
        amount = quantity.parse(shown(value).strip())
    except ValueError:
        return ""
    return str(amount.value()) if amount.is_whole() else ""


def shown(value: JSON) -> str:
    """An amount as CEL shows it: 2.0 is `2`; "" for null."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else text(value) or str(value)
