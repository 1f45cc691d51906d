"""What claims and claim templates of the cluster ask for, with what is known of the device classes.

Worked out once for each object and request: pods of one request often share their claims.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook import paths
from webhook.attributes import JSON, GroupVersionKind
from webhook.facts.dra.requests import names, requests, version_of
from webhook.facts.gpu import devices
from webhook.facts.pods.containers import items, text
from webhook.facts.view import View
from webhook.paths import FieldPath

CLASS = GroupVersionKind("resource.k8s.io", "v1", "DeviceClass")


def class_selectors(device_class: JSON) -> list[str]:
    """The expressions of a DeviceClass."""
    listed = items(paths.get(device_class, ("spec", "selectors")))
    return [text(paths.get(each, ("cel", "expression"))) for each in listed]


class Classes:
    """The device classes of the cluster, looked up once each."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._found: dict[str, JSON] = {}
        self._names: list[str] | None = None
        self._states: dict[str, JSON] = {}

    def get(self, name: str) -> JSON | None:
        """The DeviceClass, or None; one that comes with a driver is not noted as missing."""
        if name not in self._found:
            view = self._view.unnoted() if devices.is_published(name) else self._view
            self._found[name] = view.get(CLASS, name, namespaced=False)
        return self._found[name]

    def names(self) -> list[str]:
        """The names of all classes of the view."""
        if self._names is None:
            listed = self._view.deadline.paced(self._view.objects(CLASS))
            self._names = [text(paths.get(each, ("metadata", "name"))) for each in listed]
        return self._names

    def state(self, name: str) -> JSON:
        """What the view says of a class: there, known to be absent, and which is near.

        Drivers bring their classes, files seldom have them: only a whole cluster lacks one for certain, or a view that
        has one of almost that name.
        """
        known = self._states.get(name)
        if known is None:
            known = self._states[name] = self._state(name)
        return known

    def _state(self, name: str) -> JSON:
        device_class = self.get(name) if name else None
        near = self._view.nearest(name, self.names()) if device_class is None and name else ""
        return {
            "classFound": device_class is not None,
            "classAbsent": device_class is None and name != "" and (near != "" or self._view.is_whole()),
            "nearestClass": near,
            "extendedResource": text(paths.get(device_class, ("spec", "extendedResourceName"))),
        }

    def mark(self, asked: Sequence[JSON]) -> None:
        """Say of every request and every choice what `state` says of its class."""
        for request in self._view.deadline.paced(asked):
            for each in (request, *request["choices"]):
                each.update(self.state(each["deviceClass"]))


def resolved(obj: JSON, at: FieldPath, classes: Classes, view: View) -> JSON:
    """The part of a claim of `dra` that the object which it names decides; its claim spec stands at a path."""
    key = ("claim", id(obj))
    value = view.remembered(key)
    if value is None:
        asked = requests(paths.get(obj, at), at, version_of(obj), view.deadline)
        classes.mark(asked)
        value = _summary(asked)
        if all(
            each["classFound"] or not each["deviceClass"]
            for request in asked
            for each in (request, *request["choices"])
        ):
            view.remember(key, value)  # a class that is not there is missing for each fact that needs it
    return value


def _summary(asked: list[JSON]) -> JSON:
    counts = [request["devices"] for request in asked]
    return {
        "found": True,
        "requests": asked,
        "requestNames": names(asked),
        "devices": None if None in counts or not counts else sum(counts),
        "atLeast": sum(request["atLeast"] for request in asked),
        "gpu": any(request["gpu"] for request in asked),
        "adminAccess": any(request["adminAccess"] for request in asked),
    }
