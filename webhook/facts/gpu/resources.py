"""The devices that containers request as extended resources, for checks and for the fact `gpu`.

Amounts are read and paths are rendered only when needed, because most containers break no rule. Amounts of device
memory or cores do not count as devices. A pod requests the larger of two sums. One sum has the containers and the
sidecars, and the other sum has one init container and the sidecars before this init container. Device claims are in the
fact `dra`.

Source: k8s.io/component-helpers resource.PodRequests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from webhook.apimachinery import paths, quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.quantity import Quantity
from webhook.deadline import STEP, Deadline
from webhook.facts.gpu import devices
from webhook.facts.gpu.devices import DeviceCatalogueRow
from webhook.facts.subject import Subject
from webhook.text.caches import cache_for_short_texts
from webhook.typed.collections import Items
from webhook.typed.environment import first_value
from webhook.typed.objects import Metadata
from webhook.typed.pod_parts import DEVICES, VISIBLE
from webhook.typed.pods import Container, Pod, PodTemplate, Resources
from webhook.typed.view import ReadingContext
from webhook.workloads.podsets import PodSet, TemplateFragment
from webhook.workloads.resource_fields import ResourceField

_SEARCH_WORK = STEP + 1
"""The charge for a new name, because the comparison with all known names takes up to a millisecond."""


class RequestedDevice(NamedTuple):
    """A known device, or a name that is similar to a known name, with limit and request; null for an unset amount."""

    name: str
    device: DeviceCatalogueRow
    limit: JSON
    request: JSON

    @property
    def field_of_amount(self) -> Literal["limits", "requests"]:
        """Return the field of the amount that counts: limits, or requests if there is no limit."""
        return "requests" if self.limit is None else "limits"

    @property
    def amount(self) -> Quantity | None:
        """Return the amount; None if it is not a quantity."""
        return quantity.read_quantity_or_none(self.request if self.limit is None else self.limit)

    @property
    def whole_amount(self) -> int:
        """Return the amount; 0 for an amount that is not a whole number."""
        return max(0, quantity.read_whole_number_or_none(self.request if self.limit is None else self.limit) or 0)

    @property
    def nearest_known_resource(self) -> str:
        """Return the known resource that an unknown name probably means."""
        return "" if self.device.kind else devices.nearest_known_resource(self.name)


class DeviceContainer(NamedTuple):
    """A container with the devices that it requests."""

    container: Container
    requested: tuple[RequestedDevice, ...]

    @property
    def device_counts_by_vendor(self) -> dict[str, int]:
        """Return the number of devices that the container requests, by vendor."""
        vendors: dict[str, int] = {}
        for requested in self.requested:
            vendor = requested.device.vendor
            if requested.device.kind in devices.COUNTED:
                vendors[vendor] = vendors.get(vendor, 0) + requested.whole_amount
        return vendors

    @property
    def device_count(self) -> int:
        """Return the number of whole, shared and sliced devices, without memory or cores."""
        return sum(self.device_counts_by_vendor.values())

    def path_of(self, requested: RequestedDevice) -> FieldPath:
        """Return the path of the amount of a device."""
        return self.container.path("resources", requested.field_of_amount, requested.name)


def read_device_containers(subject: Subject) -> Items[DeviceContainer]:
    """Return the containers of a Pod, then its init containers. Call this function through `Subject.once`."""
    pod = subject.typed(Pod).spec
    if may_request_devices(subject):
        return pod.containers.of([read_device_container(container) for container in pod.all_containers()])
    return pod.containers.of([DeviceContainer(container, ()) for container in pod.all_containers()])


def read_device_container(container: Container) -> DeviceContainer:
    """Return one container with the devices that it requests."""
    return DeviceContainer(container, _requested_devices(container) if container.resources.json else ())


def may_have_gpus_by_annotation(metadata: Metadata) -> bool:
    """Return whether a scheduler may give a pod GPUs without a request.

    KAI-Scheduler and Run:ai give a pod a part of a GPU by the annotation gpu-fraction or gpu-memory.
    """
    return any("gpu" in key.lower() for key in (*metadata.annotations, *metadata.labels))


def has_device_requests(subject: Subject) -> bool:
    """Return whether any container requests devices. Call this function through `Subject.once`."""
    return may_request_devices(subject) and any(
        container.requested for container in subject.once(read_device_containers)
    )


def may_request_devices(subject: Subject) -> bool:
    """Return whether a Pod requests a resource that may be a device. Few Pods do."""
    return DEVICES in subject.typed(Pod).parts.present


def value_of_visible_devices(container: Container) -> str:
    """Return the value of NVIDIA_VISIBLE_DEVICES; "" if the variable has no plain value."""
    return first_value(VISIBLE, container.json.get("env"), container.reading.deadline)


def _requested_devices(container: Container) -> tuple[RequestedDevice, ...]:
    limits, requests, requested = container.resources.limits, container.resources.requests, []
    for name in dict.fromkeys((*limits, *requests)):
        container.reading.deadline.spend(devices.NAME_WORK)
        device = devices.device_of_resource_name(name)
        if not device.kind and "/" not in name:  # a resource of Kubernetes, such as cpu or memory
            continue
        if is_nothing(limits.get(name)) and is_nothing(requests.get(name)):
            continue
        if device.kind or _nearest_known_resource(name, container):
            requested.append(RequestedDevice(name, device, limits.get(name), requests.get(name)))
    return tuple(requested)


def is_nothing(amount: JSON) -> bool:
    """Return whether an amount is absent or 0."""
    if amount is None:
        return True
    read = quantity.read_quantity_or_none(amount)
    return read is not None and read.sign() == 0


def _nearest_known_resource(name: str, container: Container) -> str:
    container.reading.deadline.spend(_SEARCH_WORK)
    return devices.nearest_known_resource(name)


def compute_gpu_fact(
    podsets: Sequence[PodSet],
    fragments: Sequence[TemplateFragment] = (),
    fields: Sequence[ResourceField] = (),
    reading: ReadingContext | None = None,
) -> JSON:
    """Return the fact `gpu` of an object: the devices of these pod sets, and of fields outside the templates. The
    devices of partial templates are in `patches`.
    """
    read = reading or ReadingContext()
    sets, described, vendors = [], [], dict[str, int]()
    for podset, own in _pod_sets_with_containers(podsets, fields, read):
        described.extend(own)
        sets.append(_pod_set_as_json(podset, own))
        for vendor, count in sets[-1]["vendors"].items():
            vendors[vendor] = vendors.get(vendor, 0) + count * (1 if podset.pods is None else podset.pods)
    patched = [PodSet(name=part.of, path=part.path, template=part.template, bare=part.bare) for part in fragments]
    return {
        "containers": described,
        "patches": [container for podset in patched for container in _containers_as_json(podset, read)],
        "podSets": sets,
        "vendors": vendors,
        "devices": None if any(one["total"] is None for one in sets) else sum(one["total"] for one in sets),
    }


def _pod_sets_with_containers(
    podsets: Sequence[PodSet], fields: Sequence[ResourceField], reading: ReadingContext
) -> Iterator[tuple[PodSet, list[JSON]]]:
    """Yield each pod set with its containers. Fields outside templates are yielded as pod sets without a template."""
    outside: dict[str, list[tuple[PodSet, JSON]]] = {}
    for field in fields:
        if field.podset and (field.resources or not field.is_device):
            outside.setdefault(field.podset, []).append(_pod_set_outside_template(field))
    for podset in podsets:
        own = _containers_as_json(podset, reading)
        yield podset, [*own, *(container for _, container in outside[podset.name])] if podset.name in outside else own
    if not outside:
        return
    known = {podset.name for podset in podsets}
    for name, listed in outside.items():
        yield from ((podset, [container]) for podset, container in listed if name not in known)


def _containers_as_json(podset: PodSet, reading: ReadingContext) -> list[JSON]:
    template = PodTemplate.of(podset.template, (), reading)
    return [_container_as_json(container, podset) for container in template.spec.all_containers()]


def _pod_set_outside_template(field: ResourceField) -> tuple[PodSet, JSON]:
    """Return a pod set of one container for resources outside a template."""
    path = field.path if field.is_device else field.path[:-1]
    pod_set = PodSet(name=field.podset, path=path, template={}, count=field.count, elsewhere=True)
    container = _container_as_json(Container.of({"name": field.container, "resources": field.resources}), pod_set)
    if field.is_device:
        container["resources"] = [{**each, "path": container["path"]} for each in container["resources"]]
    return pod_set, container


def _pod_set_as_json(podset: PodSet, own: Sequence[JSON]) -> JSON:
    vendors = {vendor: _devices_per_pod(own, vendor) for vendor in {name for each in own for name in each["vendors"]}}
    per_pod = sum(vendors.values())
    runtime_class = PodTemplate.of(podset.template).spec.runtime_class_name
    return {
        "name": podset.name,
        "path": paths.path_as_text(podset.path),
        "pods": podset.pods,
        "devices": per_pod,
        "total": None if per_pod and podset.pods is None else per_pod * (podset.pods or 0),
        "vendors": vendors,
        "kinds": sorted({each["kind"] for container in own for each in container["resources"] if each["kind"]}),
        "runtimeClass": runtime_class,
        "gpuRuntime": runtime_class in devices.read_device_catalogue().runtime_classes,
    }


def _devices_per_pod(containers: Sequence[JSON], vendor: str) -> int:
    """Return how many devices of one vendor one pod requests, as PodRequests of component-helpers computes it."""
    running: int = sum(each["vendors"].get(vendor, 0) for each in containers if not each["init"] or each["restarts"])
    sidecars, highest = 0, 0
    for each in containers:
        if each["init"]:
            count = each["vendors"].get(vendor, 0)
            highest = max(highest, count + sidecars)
            sidecars += count if each["restarts"] else 0
    return max(running, highest)


def _container_as_json(container: Container, podset: PodSet) -> JSON:
    read = read_device_container(container)
    at = paths.path_as_text(podset.locate(container.at))
    vendors = read.device_counts_by_vendor
    return {
        "podSet": podset.name,
        "path": at,
        "name": container.name,
        "init": container.is_init,
        "restarts": container.is_sidecar,
        "resources": [_resource_as_json(requested, at) for requested in read.requested],
        "vendors": vendors,
        "devices": sum(vendors.values()),
        "gpuImage": devices.is_gpu_image(container.image),
        "visibleDevices": value_of_visible_devices(container),
        "claims": len(container.resources.claims),
    }


def _resource_as_json(each: RequestedDevice, at: str) -> JSON:
    known, amount, limit, request = each.device, each.amount, each.limit, each.request
    return {
        "name": each.name,
        "path": at + _path_of_amount(each.field_of_amount, each.name),
        "vendor": known.vendor,
        "kind": known.kind,
        "gpu": known.gpu,
        "limit": None if limit is None else str(limit),
        "request": None if request is None else str(request),
        "count": each.whole_amount,
        "whole": amount is not None and amount.is_whole() and amount.sign() >= 0,
        "equal": limit is None
        or request is None
        or limit == request
        or quantity.read_quantity_or_none(limit) == quantity.read_quantity_or_none(request),
        "nearest": each.nearest_known_resource,
    }


@cache_for_short_texts(512 << 10)
def _path_of_amount(side: str, name: str) -> str:
    """Return the path of one amount, relative to the container."""
    return "." + paths.path_as_text(("resources", side, name))


def count_gpus_of_resources(resources: Resources) -> int:
    """Return how many GPUs and parts of GPUs of any vendor the resources of one container request."""
    total = 0
    amounts = (*resources.written_requests.items(), *resources.written_limits.items())
    for name, written in dict(amounts).items():
        resources.reading.deadline.spend(devices.NAME_WORK)
        device = devices.device_of_resource_name(name)
        if device.gpu and device.kind in devices.COUNTED:
            total += max(0, quantity.read_whole_number_or_none(written) or 0)
    return total


def count_gpus_of_json_resources(resources: JSON, deadline: Deadline) -> int:
    """Return how many GPUs resources in JSON request."""
    return count_gpus_of_resources(Resources.of(resources, (), ReadingContext(deadline)))
