"""What claims and claim templates of the cluster ask for, with what is known of the device classes.

Worked out once for each object and request: pods of one request often share their claims. Of ordinary ones it is worked
out once for all requests, until the cluster has another object in the place of the claim or of a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook import paths
from webhook.attributes import JSON, GroupVersionKind
from webhook.facts.dra.requests import names, requests, version_of
from webhook.facts.gpu import devices
from webhook.facts.pods.containers import items, mapping, text
from webhook.facts.view import View
from webhook.paths import FieldPath
from webhook.same import Same

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
    if value is not None:
        return value
    spec = paths.get(obj, at)
    kept = _kept(Same(obj)) if _is_ordinary(spec) else _Kept()
    if not kept.holds(classes):
        asked = requests(spec, at, version_of(obj), view.deadline)
        classes.mark(asked)
        named = {each["deviceClass"] for request in asked for each in (request, *request["choices"])} - {""}
        kept.classes, kept.value = {name: classes.get(name) for name in named}, _summary(asked)
    if None not in kept.classes.values():  # a class that is not there is missing for each fact that needs it
        view.remember(key, kept.value)
    return kept.value


@dataclass(slots=True)
class _Kept:
    """What was worked out of one claim, with the classes that it names."""

    classes: Mapping[str, JSON] = field(default_factory=dict)
    value: JSON = None

    def holds(self, classes: Classes) -> bool:
        """Whether these are the classes now, and all of them are there."""
        asked = self.classes.items()
        return self.value is not None and all(known and classes.get(name) is known for name, known in asked)


@lru_cache(maxsize=64)
def _kept(_claim: Same) -> _Kept:
    return _Kept()


def _is_ordinary(spec: JSON) -> bool:
    """Whether a claim is short enough to be kept: its requests name a class and a count, as most do."""
    listed = items(paths.get(spec, ("devices", "requests")))
    return len(listed) <= _MOST_KEPT and all(
        isinstance(each, dict) and _SHORT.issuperset(each) and _SHORT.issuperset(mapping(each.get("exactly")))
        for each in listed
    )


_MOST_KEPT: Final = 4
_SHORT: Final = frozenset(("name", "exactly", "deviceClassName", "allocationMode", "count", "adminAccess"))
"""Fields of a request in which an API server takes no long text."""


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
