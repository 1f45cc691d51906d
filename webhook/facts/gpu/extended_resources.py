"""Reads the devices that one container requests as extended resources.

Checks and the fact `gpu` are made from them. Amounts are read and paths rendered when they are asked for: most
containers break no rule.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook import quantity
from webhook.attributes import JSON
from webhook.deadline import STEP
from webhook.facts.gpu import devices
from webhook.facts.gpu.devices import DeviceCatalogueRow
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.quantity import Quantity
from webhook.typed.collections import Items
from webhook.typed.environment import first_value
from webhook.typed.pod_parts import DEVICES, VISIBLE
from webhook.typed.pods import Container, Pod

_SEARCH_WORK = STEP + 1
"""The work to charge for a new name, which is compared with all known ones in up to a millisecond."""


class RequestedDevice(NamedTuple):
    """A known device, or a qualified name near that of one, with its limit and request, null if not set."""

    name: str
    device: DeviceCatalogueRow
    limit: JSON
    request: JSON

    @property
    def field_of_amount(self) -> Literal["limits", "requests"]:
        """Return where the effective amount is: in limits, or in requests if there is no limit."""
        return "requests" if self.limit is None else "limits"

    @property
    def amount(self) -> Quantity | None:
        """Return the amount; None if it is not a quantity."""
        return quantity.read_quantity_or_none(self.request if self.limit is None else self.limit)

    @property
    def whole_amount(self) -> int:
        """Return the amount, 0 if it is not a whole number."""
        amount = self.amount
        return max(0, amount.value()) if amount is not None and amount.is_whole() else 0

    @property
    def nearest_known_resource(self) -> str:
        """Return the known resource that an unknown one probably means."""
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
    """Return the containers of a Pod, then its init containers; call it through `Subject.once`."""
    pod = subject.typed(Pod).spec
    if may_request_devices(subject):
        return pod.containers.of([read_device_container(container) for container in pod.all_containers()])
    return pod.containers.of([DeviceContainer(container, ()) for container in pod.all_containers()])


def read_device_container(container: Container) -> DeviceContainer:
    """Return one container with the devices that it requests."""
    return DeviceContainer(container, _requested_devices(container) if container.resources.json else ())


def has_device_requests(subject: Subject) -> bool:
    """Return whether any container requests devices; call it through `Subject.once`."""
    return may_request_devices(subject) and any(
        container.requested for container in subject.once(read_device_containers)
    )


def may_request_devices(subject: Subject) -> bool:
    """Return whether a Pod requests anything that may be a device, as few pods do."""
    return DEVICES in subject.typed(Pod).parts.present


def value_of_visible_devices(container: Container) -> str:
    """Return the value of NVIDIA_VISIBLE_DEVICES, "" if it is not set to a plain text."""
    return first_value(VISIBLE, container.json.get("env"), container.reading.deadline)


def _requested_devices(container: Container) -> tuple[RequestedDevice, ...]:
    limits, requests, requested = container.resources.limits, container.resources.requests, []
    for name in dict.fromkeys((*limits, *requests)):
        container.reading.deadline.spend(devices.NAME_WORK)
        device = devices.device_of_resource_name(name)
        if device.kind or ("/" in name and _nearest_known_resource(name, container)):
            requested.append(RequestedDevice(name, device, limits.get(name), requests.get(name)))
    return tuple(requested)


def _nearest_known_resource(name: str, container: Container) -> str:
    container.reading.deadline.spend(_SEARCH_WORK)
    return devices.nearest_known_resource(name)
