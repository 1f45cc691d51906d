"""Finds nodes with devices of different models, any of which a request for several may get.

Drivers publish the model of a device as an attribute: `productName` those of NVIDIA (deviceinfo.go of
kubernetes-sigs/dra-driver-nvidia-gpu@95932046) and AMD, `model` that of Intel and the example driver of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from webhook.facts.dra.device_pools import PooledDevice

_MODEL: Final = ("productName", "model")


@dataclass(frozen=True, slots=True)
class DeviceModels:
    """The models of a node's devices, and the driver's attribute that names them."""

    node: str
    attribute: str
    models: tuple[str, ...]


def models_of_mixed_node(devices: Iterable[PooledDevice]) -> DeviceModels | None:
    """Return the models of the first node that has devices of one driver and of different models; None if no
    node has.
    """
    models: dict[tuple[str, str], dict[str, None]] = {}
    for device in devices:
        name, model = _model_attribute(device)
        if device.node and model:
            attribute = f"{device.pool.driver}/{name}"
            known = models.setdefault((device.node, attribute), {})
            known[model] = None
            if len(known) > 1:
                return DeviceModels(device.node, attribute, tuple(known))
    return None


def _model_attribute(device: PooledDevice) -> tuple[str, str]:
    """Return the name and the value of the attribute that names a device's model; "" for both if it has none."""
    attributes = device.fields.attributes
    for name in _MODEL:
        for written in (name, f"{device.pool.driver}/{name}"):
            if model := attributes.string(written):
                return name, model
    return "", ""
