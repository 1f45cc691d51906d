"""Amounts of quota as people write them: `24 nvidia.com/gpu`, `10 cpu`, `40Gi memory`."""

from __future__ import annotations

from typing import Final

from webhook.quantity import Quantity

_BYTES: Final = ("memory", "ephemeral-storage")


def amount_text(resource: str, value: int) -> str:
    """An amount of a resource in Kueue's units, without its name: `1500m`, `40Gi`, `24`."""
    if resource == "cpu":
        return str(Quantity(value, -3))
    if resource in _BYTES or resource.startswith("hugepages-"):
        return str(Quantity(value, 0, "BinarySI"))
    return str(value)


def of_resource(resource: str, value: int) -> str:
    """The same with the name of the resource: `24 nvidia.com/gpu`."""
    return f"{amount_text(resource, value)} {resource}"
