"""Looks up device classes in the cluster, and explains why one does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from webhook.facts.dra.requests import DeviceRequestOfClaim
from webhook.facts.dra.types import DeviceClass
from webhook.facts.gpu import devices
from webhook.facts.view import ClusterView

CLASS: Final = DeviceClass.gvk


@dataclass(frozen=True, slots=True)
class DeviceClassState:
    """What the view knows about a class.

    Args:
        is_found: whether it is there.
        is_absent: whether it is known not to be there.
        nearest: the class that was probably meant.
        extended_resource: its extendedResourceName.
    """

    is_found: bool = False
    is_absent: bool = False
    nearest: str = ""
    extended_resource: str = ""


class DeviceClasses:
    """The device classes of the cluster, each looked up once."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._found: dict[str, DeviceClass] = {}
        self._names: list[str] | None = None
        self._states: dict[str, DeviceClassState] = {"": DeviceClassState()}

    def get(self, name: str) -> DeviceClass:
        """Return the DeviceClass, a false one if it does not exist; one that comes with a driver is not noted as
        missing.
        """
        if name not in self._found:
            view = (
                self._view.copy_without_missing_objects() if devices.is_class_installed_by_driver(name) else self._view
            )
            self._found[name] = view.find(DeviceClass, name, namespaced=False)
        return self._found[name]

    def names(self) -> list[str]:
        """Return the names of all classes of the view."""
        if self._names is None:
            self._names = [device_class.name for device_class in self._view.list_visible(DeviceClass)]
        return self._names

    def state(self, name: str) -> DeviceClassState:
        """Return what the view knows about a class: whether it exists, is certainly absent, and the nearest name.

        Drivers bring their classes, files seldom have them: only a whole cluster lacks one for certain.
        """
        if name not in self._states:
            self._states[name] = self._look_up_state(name)
        return self._states[name]

    def states(self, requests: Iterable[DeviceRequestOfClaim]) -> dict[str, DeviceClassState]:
        """Return what the view knows about the classes of requests and of their alternatives."""
        classes = [choice.device_class for request in requests for choice in request.self_and_alternatives]
        return {name: self.state(name) for name in classes}

    def _look_up_state(self, name: str) -> DeviceClassState:
        device_class = self.get(name)
        if device_class:
            return DeviceClassState(is_found=True, extended_resource=device_class.spec.extended_resource_name)
        near = self._view.nearest(name, self.names())
        return DeviceClassState(is_absent=self._view.is_whole(CLASS), nearest=near)
