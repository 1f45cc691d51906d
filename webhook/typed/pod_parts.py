"""The rare parts of Pods, read once from the JSON of each Pod, so that checks about them skip all other Pods.

A check names the parts that it needs in `Check.of_pods_with` (facts/subject.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from webhook.typed.collections import Items
from webhook.typed.environment import first_value
from webhook.typed.fields import Field
from webhook.typed.view import ReadingContext, Typed

CLAIMS: Final = "claims"
"""The pod declares resource claims, or a container names some; the list may be empty."""
DEVICES: Final = "devices"
"""The pod requests a resource with a slash in its name, or `gpu`: a device, or a resource unknown to Kubernetes."""
DEVICE_CLASSES: Final = "device classes"
"""The pod requests a resource by the name of a DeviceClass (KEP-5004)."""
EPHEMERAL_CONTAINERS: Final = "ephemeral containers"
PATCH: Final = "patch"
"""The object is a patch for a pod template."""
POD_RESOURCES: Final = "pod-level resources"
RESOURCES: Final = "resources"
"""A container or the pod as a whole has resources, or the pod has overhead."""
RUNTIME_CLASS: Final = "runtime class"
TEMPLATE: Final = "template"
"""The object is the pod template of another object."""
VISIBLE_DEVICES: Final = "visible devices"
"""A container sets NVIDIA_VISIBLE_DEVICES to a text."""

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
PORTABLE: Final = "gpu"
_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")
VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"


class PodParts(NamedTuple):
    """The parts of a Pod.

    `present` are the keys of its annotations, and the parts named above that its JSON has. `resource_names` are the
    names of all resources in limits or requests, also of ephemeral containers and with the amount null. `extended` are
    the names with a slash. `images` are the images of all containers. `keys` has the keys of labels and annotations,
    one a line.
    """

    present: AbstractSet[str]
    resource_names: AbstractSet[str]
    extended: tuple[str, ...]
    images: Items[str]
    keys: str


class PodPartsField(Field[PodParts]):
    """The field with the parts of a whole Pod, read without an object for each container."""

    def read(self, value: Any, owner: Typed) -> PodParts:
        """Return the parts of the Pod with the spec `value`."""
        reading = owner.reading
        parts: set[str] = set()
        metadata = _object(owner.json.get("metadata"), owner, reading)
        spec = _object(value, owner, reading)
        names: set[str] = set()
        images: list[str] = []
        annotations = _keys_with_text(metadata.get("annotations"))
        keys = [*_keys_with_text(metadata.get("labels")), *annotations]
        parts.update(annotations)
        _add_of_spec(spec, parts, reading)
        _add_parts_of_resources(spec, parts, names)
        for container in reading.deadline.charge_for_items(_containers(spec)):
            if isinstance(container, dict):
                _add_parts_of_resources(container, parts, names)
                _add_image(container, parts, images, reading)
        reading.deadline.spend(len(names) + len(keys))
        extended = tuple([name for name in names if "/" in name])
        if extended or PORTABLE in names:
            parts.add(DEVICES)
            if [name for name in extended if name.startswith(CLASS_PREFIX)]:
                parts.add(DEVICE_CLASSES)
        return PodParts(parts, names, extended, Items(images, reading.deadline), "\n".join(keys))


def _object(value: Any, owner: Typed, reading: ReadingContext) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    reading.reject(value, owner.at)
    return {}


def _keys_with_text(value: Any) -> list[str]:
    """Return the keys of a map that have a text as value."""
    return [key for key, text in value.items() if isinstance(text, str)] if isinstance(value, dict) else []


def _add_of_spec(spec: dict[str, Any], parts: set[str], reading: ReadingContext) -> None:
    if "resourceClaims" in spec:
        parts.add(CLAIMS)
    if spec.get("ephemeralContainers"):
        parts.add(EPHEMERAL_CONTAINERS)
    if spec.get("resources") is not None:
        parts.add(POD_RESOURCES)
    if "overhead" in spec or reading.omitted:  # a value that is not yet filled in may be overhead
        parts.add(RESOURCES)
    if spec.get("runtimeClassName"):
        parts.add(RUNTIME_CLASS)


def _containers(spec: dict[str, Any]) -> Sequence[Any]:
    """Return the entries of all lists of containers. If there is only one list, as usual, it is returned without a
    copy.
    """
    lists = [listed for name in _LISTS if (listed := spec.get(name)) and isinstance(listed, list)]
    return lists[0] if len(lists) == 1 else [container for listed in lists for container in listed]


def _add_parts_of_resources(holder: dict[str, Any], parts: set[str], names: set[str]) -> None:
    """Add the parts that follow from the resources of a container, or of the pod as a whole."""
    resources = holder.get("resources")
    if not resources:
        return
    parts.add(RESOURCES)
    if not isinstance(resources, dict):
        return
    for side in ("limits", "requests"):
        amounts = resources.get(side)
        if isinstance(amounts, dict):
            names.update(amounts)
    if "claims" in resources:
        parts.add(CLAIMS)


def _add_image(container: dict[str, Any], parts: set[str], images: list[str], reading: ReadingContext) -> None:
    """Add the image of a container, and VISIBLE_DEVICES if a variable limits its visible devices."""
    image, env = container.get("image"), container.get("env")
    if isinstance(image, str):
        images.append(image)
    if env and first_value(VISIBLE, env, reading.deadline):
        parts.add(VISIBLE_DEVICES)
