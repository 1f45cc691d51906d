"""Amounts of resources in Kueue's units, and as texts for messages: `24 nvidia.com/gpu`, `40Gi memory`."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.apimachinery.quantity import Quantity

_BYTES: Final = ("memory", "ephemeral-storage")


def parse_amount_in_kueue_units(resource: str, value: JSON) -> int | None:
    """Return a quantity in Kueue's units, rounded up: thousandths of cpu, units of other resources. None if invalid."""
    read = quantity.read_quantity_or_none(value)
    if read is None:
        return None
    return read.milli_value() if resource == "cpu" else read.value()


def format_amount_in_kueue_units(resource: str, value: int) -> str:
    """Return an amount in Kueue's units as a text without the name of the resource: `1500m`, `40Gi`, `24`."""
    if resource == "cpu":
        return str(Quantity(value, -3))
    if resource in _BYTES or resource.startswith("hugepages-"):
        return str(Quantity(value, 0, "BinarySI"))
    return str(value)


def format_amount_with_resource_name(resource: str, value: int) -> str:
    """Return an amount in Kueue's units as a text with the name of the resource: `24 nvidia.com/gpu`."""
    return f"{format_amount_in_kueue_units(resource, value)} {resource}"


def cpu_count(resources: JSON) -> int:
    """Return the number of CPUs in the requests, or in the limits if no CPU is requested; rounded up."""
    for side in ("requests", "limits"):
        cpus = quantity.read_quantity_or_none(get(resources, (side, "cpu")))
        if cpus is not None and cpus.sign() > 0:
            return cpus.value()
    return 0
