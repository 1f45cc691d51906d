"""What few Pods have, read once from the JSON of each: checks that are about such Pods alone are asked of no other.

A check names the parts that it is about in `Check.of_pods_with` (facts/check.py).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from webhook.typed.fields import Field
from webhook.typed.objects import has_controller
from webhook.typed.view import Reading, Typed

CLAIMS: Final = "claims"
"""The pod declares resource claims, or a container names some, an empty list included."""
DEVICES: Final = "devices"
"""Something is requested whose name has a slash, or is `gpu`: a device, or a resource that Kubernetes does not know."""
DEVICE_CLASSES: Final = "device classes"
"""Something is requested by the name of a DeviceClass (KEP-5004)."""
EPHEMERAL_CONTAINERS: Final = "ephemeral containers"
POD_RESOURCES: Final = "pod-level resources"
NO_CONTROLLER: Final = "no controller"
"""No other object made the pod."""
PATCH: Final = "patch"
"""It is no pod, but what is merged into the template of one."""
TEMPLATE: Final = "template"
"""It is the template of another object."""

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
_PORTABLE: Final = "gpu"
_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")


class PodParts(NamedTuple):
    """What a Pod has.

    `present` are the keys of its annotations, and those named above that follow from its JSON. `resource_names` are
    those of all resources that it limits or requests, null and ephemeral containers included; `extended` have a slash.
    """

    present: AbstractSet[str]
    resource_names: AbstractSet[str]
    extended: tuple[str, ...]


class PodPartsOf(Field[PodParts]):
    """Those of a whole Pod, read without an object for each container."""

    def read(self, value: Any, owner: Typed) -> PodParts:
        """The parts; `value` is the spec."""
        reading = owner.reading
        parts: set[str] = set()
        metadata = _object(owner.json.get("metadata"), owner, reading)
        spec = _object(value, owner, reading)
        annotations = metadata.get("annotations")
        if annotations and isinstance(annotations, dict):
            reading.deadline.spend(len(annotations))
            parts.update([key for key, text in annotations.items() if isinstance(text, str)])
        if not has_controller(metadata.get("ownerReferences"), reading.deadline):
            parts.add(NO_CONTROLLER)
        if "resourceClaims" in spec:
            parts.add(CLAIMS)
        if spec.get("ephemeralContainers"):
            parts.add(EPHEMERAL_CONTAINERS)
        if spec.get("resources") is not None:
            parts.add(POD_RESOURCES)
        names, has_claims = _resources(spec, reading)
        extended = tuple([name for name in names if "/" in name])
        if has_claims:
            parts.add(CLAIMS)
        if extended or _PORTABLE in names:
            parts.add(DEVICES)
            if [name for name in extended if name.startswith(CLASS_PREFIX)]:
                parts.add(DEVICE_CLASSES)
        return PodParts(parts, names, extended)


def _object(value: Any, owner: Typed, reading: Reading) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    reading.reject(value, owner.at)
    return {}


def _resources(spec: dict[str, Any], reading: Reading) -> tuple[set[str], bool]:
    """The names of all resources that a spec limits or requests, and whether a container names claims."""
    names: set[str] = set()
    has_claims = _add(spec.get("resources"), names)
    for name in _LISTS:
        listed = spec.get(name)
        if listed and isinstance(listed, list):
            for container in reading.deadline.each(listed):
                if isinstance(container, dict) and _add(container.get("resources"), names):
                    has_claims = True
    reading.deadline.spend(len(names))
    return names, has_claims


def _add(resources: Any, names: set[str]) -> bool:
    """Add the names of one holder of resources; whether it has claims."""
    if not resources or not isinstance(resources, dict):
        return False
    limits, requests = resources.get("limits"), resources.get("requests")
    if isinstance(limits, dict):
        names.update(limits)
    if isinstance(requests, dict):
        names.update(requests)
    return "claims" in resources
