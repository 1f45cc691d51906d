"""Nodes whose devices are of different models, of which a request for several takes any.

Drivers publish the model of a device as an attribute: `productName` those of NVIDIA (deviceinfo.go of
kubernetes-sigs/dra-driver-nvidia-gpu@95932046) and AMD, `model` that of Intel and the example driver of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from webhook.facts.dra.device_pools import Device

_MODEL: Final = ("productName", "model")


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a node's devices, and the attribute of its driver that tells them."""

    node: str
    attribute: str
    models: tuple[str, ...]


def different_models(devices: Iterable[Device]) -> Models | None:
    """The first node that has devices of one driver and of different models; None without such a node."""
    models: dict[tuple[str, str], dict[str, None]] = {}
    for device in devices:
        name, model = _model(device)
        if device.node and model:
            attribute = f"{device.pool.driver}/{name}"
            known = models.setdefault((device.node, attribute), {})
            known[model] = None
            if len(known) > 1:
                return Models(device.node, attribute, tuple(known))
    return None


def _model(device: Device) -> tuple[str, str]:
    """The attribute of a device that tells its model, with its value; "" for both without one."""
    attributes = device.fields.attributes
    for name in _MODEL:
        for written in (name, f"{device.pool.driver}/{name}"):
            if model := attributes.string(written):
                return name, model
    return "", ""
