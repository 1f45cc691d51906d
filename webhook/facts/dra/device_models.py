"""Nodes whose devices are of different models, of which a request for several takes any.

Drivers publish the model of a device as an attribute: `productName` those of NVIDIA (deviceinfo.go of
kubernetes-sigs/dra-driver-nvidia-gpu@95932046) and AMD, `model` that of Intel and the example driver of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from webhook.deadline import Deadline
from webhook.facts.dra.device_pools import Device
from webhook.facts.values import mapping, text
from webhook.paths import get

_MODEL: Final = ("productName", "model")


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a node's devices, and the attribute of its driver that tells them."""

    node: str
    attribute: str
    models: tuple[str, ...]


def different_models(devices: Iterable[Device], deadline: Deadline) -> Models | None:
    """The first node that has devices of one driver and of different models; None without such a node."""
    made: dict[tuple[str, str], dict[str, None]] = {}
    for each in deadline.paced(devices):
        name, model = _model(each)
        if each.node and model:
            known = made.setdefault((each.node, f"{each.pool.driver}/{name}"), {})
            known[model] = None
            if len(known) > 1:
                return Models(each.node, f"{each.pool.driver}/{name}", tuple(known))
    return None


def _model(device: Device) -> tuple[str, str]:
    """The attribute of a device that tells its model, with its value; "" for both without one."""
    attributes = mapping(device.fields.get("attributes"))
    for name in _MODEL:
        for written in (name, f"{device.pool.driver}/{name}"):
            if model := text(get(attributes.get(written), ("string",))):
                return name, model
    return "", ""
