"""Finds requests for the portable resource name `gpu` in an object.

Docker, OpenSandbox and the Kubeflow SDK write `gpu`; Kubernetes knows only the extended resources of vendors. Reports
the written values and their meaning; the policy chooses which values are translated and which are refused. A count is a
positive whole number as text or number, with spaces around it, a leading plus or zeros, of at most 18 digits. A
placeholder is not changed until it is filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct

from webhook.apimachinery import paths, quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.gpu_requests import has_no_windows_field, path_of_windows_field
from webhook.facts.kinds import POD
from webhook.facts.subject import Subject
from webhook.typed.collections import Items
from webhook.typed.pods import Container, Pod, PodSpec, PodTemplate, Resources
from webhook.workloads.embedded import embedded_objects, holds_objects
from webhook.workloads.podsets import TemplateFragment, group_kind, partial_pod_templates
from webhook.workloads.resource_fields import ResourceField, resource_fields
from webhook.yamltext.placeholders import is_placeholder

NAME: Final = "gpu"
SIDES: Final = ("limits", "requests")
_COUNT: Final = re.compile(r"[+]?0*([1-9][0-9]{0,17})")
_ZERO: Final = re.compile(r"[+-]?0{1,18}")


class ResourcePlace(Struct, frozen=True):
    """One place of limits and requests. In a `patch` of a template, null removes the template's amount."""

    resources: Resources
    is_windows: bool = False
    is_patch: bool = False

    @property
    def path(self) -> FieldPath:
        """Return the path of the container's limits or requests."""
        return self.resources.at

    def amounts(self, side: str) -> Mapping[str, JSON]:
        """Return the limits or requests of the container, by resource."""
        return self.resources.written_limits if side == "limits" else self.resources.written_requests

    @property
    def requests_portable_gpu(self) -> bool:
        """Return whether it requests `gpu` with a value that is not a placeholder."""
        values = [amounts[NAME] for side in SIDES if NAME in (amounts := self.amounts(side))]
        return bool(values) and not any(isinstance(value, str) and is_placeholder(value) for value in values)

    def mistyped_gpu_values(self) -> Iterator[tuple[FieldPath, JSON]]:
        """Yield values of `gpu` that are neither texts nor numbers, with their paths."""
        for side in SIDES:
            if isinstance(value := self.amounts(side).get(NAME), dict | list | bool):
                yield (*self.path, side, NAME), value


def changed_places_requesting_gpu(subject: Subject) -> list[tuple[ResourcePlace, ResourcePlace | None]]:
    """Return places that request `gpu` and are new or have changed, each with its former content."""
    old = () if subject.old_object is None else _places_of_object(subject.old_object, subject)
    before = {place.path: place for place in old}
    pairs = (
        (place, before.get(place.path))
        for place in _places_of_object(subject.object, subject)
        if place.requests_portable_gpu
    )
    return [(place, old) for place, old in pairs if old is None or old.resources.differs(place.resources)]


def _places_of_object(obj: JSON, subject: Subject) -> Iterator[ResourcePlace]:
    """Yield a Pod's containers, or the resources of another object outside its templates."""
    if group_kind(obj) == POD:
        pod = PodTemplate.of(obj, (), subject.reading_context)
        yield from _places_in_template(pod, is_windows=_is_bound_to_windows(pod.spec, subject))
        return
    for path, root in _object_and_inner_objects(obj, subject):
        for field in _resource_fields_outside_templates(root, subject):
            if not field.is_device:
                yield ResourcePlace(Resources.of(field.resources, (*path, *field.path), subject.reading_context))
        # containers of a fragment for a TrainJob's runtime have no resources in the CRD
        for fragment in partial_pod_templates(root, subject.table, subject.deadline, of_runtime=False):
            yield from _places_in_partial_template(fragment, path, root, subject)


def _object_and_inner_objects(obj: JSON, subject: Subject) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield an object and its embedded objects, each with its path; nothing for a deleted object."""
    if not obj:
        return
    yield (), obj
    if holds_objects(obj, subject.table):
        yield from (
            (each.path, each.object)
            for each in subject.deadline.items_with_clock_checks(embedded_objects(obj, subject.table, subject.deadline))
        )


def _resource_fields_outside_templates(root: JSON, subject: Subject) -> Items[ResourceField]:
    """Return the resource fields outside the templates of an object."""
    return Items(tuple(resource_fields(root, subject.table, subject.deadline)), subject.deadline)


def _places_in_partial_template(
    fragment: TemplateFragment, path: FieldPath, root: JSON, subject: Subject
) -> Iterator[ResourcePlace]:
    """Yield the containers of a partial template."""
    template = PodTemplate.of(fragment.template, (*path, *fragment.path), subject.reading_context)
    is_patch = fragment.of.startswith("spec.")
    into = PodTemplate.of(paths.get(root, tuple(fragment.of.split("."))) if is_patch else None)
    os = template.spec.os if "os" in template.spec.json else into.spec.os
    is_windows = os.name == "windows" or _is_bound_to_windows(template.spec, subject)
    if "os" not in template.spec.json:
        is_windows = is_windows or _is_bound_to_windows(into.spec, subject)
    yield from _places_in_template(template, is_windows=is_windows, is_patch=is_patch)


def _is_bound_to_windows(pod: PodSpec, subject: Subject) -> bool:
    return (
        not has_no_windows_field(pod)
        and path_of_windows_field(pod, subject.cluster_view().copy_without_missing_objects()) != ()
    )


def _places_in_template(template: PodTemplate, *, is_windows: bool, is_patch: bool = False) -> Iterator[ResourcePlace]:
    holders = chain[PodSpec | Container](template.spec.all_containers(), _pod_spec_if_without_containers(template.spec))
    for holder in holders:
        if holder.resources:
            yield ResourcePlace(holder.resources, is_windows, is_patch)


def _pod_spec_if_without_containers(pod: PodSpec) -> tuple[PodSpec, ...]:
    """Return the PodSpec unless it has containers, because a controller creates a container from its resources."""
    return () if pod.containers else (pod,)


def paths_changed_to_portable_gpu(subject: Subject) -> Iterator[FieldPath]:
    """Yield fields that hold a device's name and have become `gpu`; never of a Pod."""
    if group_kind(subject.object) == POD:
        return
    before = set(_paths_naming_portable_gpu(subject.old_object, subject)) if subject.old_object is not None else ()
    yield from (path for path in _paths_naming_portable_gpu(subject.object, subject) if path not in before)


def _paths_naming_portable_gpu(obj: JSON, subject: Subject) -> Iterator[FieldPath]:
    for path, root in _object_and_inner_objects(obj, subject):
        for field in _resource_fields_outside_templates(root, subject):
            if field.device == NAME:
                yield (*path, *field.path)


def misplaced_gpu_requests(subject: Subject) -> Iterator[tuple[FieldPath, bool]]:
    """Yield the places where a Pod requests `gpu` but Kubernetes accepts no device, and whether the place is an
    ephemeral container.

    k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go validatePodResourceName,
    allowedEphemeralContainerFields.
    """
    pod = subject.typed(Pod).spec if group_kind(subject.object) == POD else PodSpec.of(None)
    whole = (pod,) if pod.containers else ()
    holders: tuple[PodSpec | Container, ...] = (*whole, *pod.ephemeral_containers)
    for holder in holders:
        for side, amounts in (("limits", holder.resources.limits), ("requests", holder.resources.requests)):
            if NAME in amounts:
                yield holder.path("resources", side, NAME), holder is not pod


def intended_gpu_count(value: JSON) -> str:
    """Return the positive whole number of a value, in plain digits: "2" for `" +02 "`; "" for other values."""
    match = _COUNT.fullmatch(amount_as_cel_text(value).strip())
    return match[1] if match else ""


def gpu_count_in_patch(value: JSON) -> str:
    """Return the count in a patch of a template, where 0 removes the devices of the template."""
    return intended_gpu_count(value) or ("0" if is_zero(amount_as_cel_text(value)) else "")


def is_zero(text: str) -> bool:
    """Return whether an amount as CEL shows it is the whole number 0."""
    return bool(_ZERO.fullmatch(text.strip()))


def whole_number_text(value: JSON) -> str:
    """Return the whole number that Kubernetes reads: "2" for `2000m`; "" for other values."""
    try:
        amount = quantity.parse_quantity(amount_as_cel_text(value).strip())
    except ValueError:
        return ""
    return str(amount.value()) if amount.is_whole() else ""


def amount_as_cel_text(value: JSON) -> str:
    """Return an amount as CEL shows it: `2` for 2.0; "" for null."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)
