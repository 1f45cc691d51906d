"""Finds fields outside the pod templates of an object that become the resources of a container.

The row of a kind declares these fields. A TrainJob has limits and requests of its nodes, and a KServe component such as
`model` has limits and requests of its own. A SparkApplication has the name and quantity of a device. Any JSON is
accepted, as in podsets.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.workloads.podsets import TemplatePlace, group_kind, is_set, places_of_path, product_of_factors
from webhook.workloads.rows import ResourceRule, Row
from webhook.workloads.table import Table


class ResourceField(Struct, frozen=True, kw_only=True):
    """A field with resources outside the pod templates.

    Args:
        path: the place of the field.
        resources: limits and requests; for a device with a quantity, the limit of the device.
        podset: the name of the pod set with the containers that get the resources; "" if the resources are not counted
            among the devices of the object.
        container: the name of the container.
        count: the number of pods if the pod set has no template; None if the number cannot be known.
        is_device: whether the field is a device with a quantity, not limits and requests.
        device: the name of the device; "" without a name.

    """

    path: FieldPath
    resources: JSON
    podset: str
    container: str
    count: int | None
    is_device: bool = False
    device: str = ""


def resource_fields(obj: JSON, table: Table, deadline: Deadline | None = None) -> Iterator[ResourceField]:
    """Yield the resource fields of an object, in the order of its row and then of the object. Most kinds have none."""
    row = table.row(*group_kind(obj))
    if row is not None and row.resources:
        yield from _fields_of_row(obj, row, deadline or Deadline())


def may_have_resources(obj: JSON, table: Table) -> bool:
    """Return whether objects of this kind may request resources outside pod templates: in fields, patches, or inner
    objects.
    """
    row = table.row(*group_kind(obj))
    return row is not None and bool(row.resources or row.fragments or row.holds_objects)


def _fields_of_row(obj: JSON, row: Row, deadline: Deadline) -> Iterator[ResourceField]:
    for rule in row.resources:
        if (rule.when and not is_set(obj, rule.when)) or (rule.unless and is_set(obj, rule.unless)):
            continue
        for place in places_of_path(obj, rule.path, deadline=deadline):
            if isinstance(place.value, dict):
                yield _field(obj, place, rule)


def _field(obj: JSON, place: TemplatePlace, rule: ResourceRule) -> ResourceField:
    is_device = rule.holds == "device"
    named = _text(place.element.get("name")) if place.element is not obj else ""
    return ResourceField(
        path=place.path,
        resources=_limit(place.value) if is_device else place.value,
        podset=rule.podSet,
        container=named or rule.container,
        count=None if rule.count is None else product_of_factors(obj, rule.count),
        is_device=is_device,
        device=_text(place.value.get("name")) if is_device else "",
    )


def _limit(device: JSON) -> JSON:
    """Return the limit of a device with a name and a quantity (kubeflow/spark-operator@38082f33 sparkpod_defaulter.go
    addGPU).
    """
    name, quantity = _text(device.get("name")), device.get("quantity")
    is_count = isinstance(quantity, int) and not isinstance(quantity, bool) and quantity > 0
    return {"limits": {name: quantity}} if name and is_count else {}


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
