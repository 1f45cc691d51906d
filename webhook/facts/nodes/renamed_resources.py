"""Under which name nodes offer a device that a pod requests by another name: sharing, MIG, partitions, old names.

Sources: NVIDIA/k8s-device-plugin@1b826acc6 api/config/v1 and internal/lm; ROCm/k8s-device-plugin@ed764684;
https://docs.aws.amazon.com/eks/latest/userguide/eks-neuron.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.nodes.node_offers import NodeOffer

_GPU: Final = "nvidia.com/gpu"
_SLICE: Final = "nvidia.com/mig-"
_STRATEGY: Final = "nvidia.com/mig.strategy"
_PARTITION: Final = "amd.com/compute-memory-partition"
_NEURON: Final = "aws.amazon.com/"
_SHARED: Final = ".shared"
_PRODUCT: Final = "nvidia.com/gpu.product"
_INVALID: Final = "-MIG-INVALID"
"""The suffix of GPU Feature Discovery if the strategy is single and the slices of a node differ, or there are none."""


def fix_for_resource(name: str, offers: Sequence[NodeOffer]) -> str:
    """Return the fix for a resource that no node has: the name by which a node offers the device, if it is known."""
    offered = next(_names_offered_instead(name, offers), None)
    invalid = next((offer for offer in offers if offer.labels.get(_PRODUCT, "").endswith(_INVALID)), None)
    if offered is None and name == _GPU and invalid is not None:
        return f"cut the GPUs of node {invalid.name} into slices of one profile, because its MIG strategy is single"
    if offered is None:
        return "add nodes with this resource, or request a resource that the cluster has"
    offer, instead, reason = offered
    return f"request `{instead}`, which node {offer.name} offers{reason}, or add nodes with `{name}`"


def _names_offered_instead(name: str, offers: Sequence[NodeOffer]) -> Iterator[tuple[NodeOffer, str, str]]:
    """Yield nodes with the name under which they offer a device, and why."""
    for offer in offers:
        strategy = offer.labels.get(_STRATEGY, "")
        if offer.amounts.get(f"{name}{_SHARED}"):
            yield offer, f"{name}{_SHARED}", " because its shares are renamed"
        elif name.endswith(_SHARED) and offer.amounts.get(name.removesuffix(_SHARED)):
            yield offer, name.removesuffix(_SHARED), ""
        elif name == _GPU and (slices := _offered(offer, _SLICE)):
            yield offer, slices[0], f" because its MIG strategy is {strategy}" if strategy else ""
        elif name.startswith(_SLICE) and offer.amounts.get(_GPU) and strategy == "single":
            yield offer, _GPU, " for each slice because its MIG strategy is single"
        elif name.startswith(_SLICE) and (slices := _offered(offer, _SLICE)):
            yield offer, slices[0], ""
        elif name == "amd.com/gpu" and offer.amounts.get(f"amd.com/{offer.labels.get(_PARTITION)}"):
            yield offer, f"amd.com/{offer.labels[_PARTITION]}", " for each partition"
        elif name == "aws.amazon.com/neurondevice" and offer.amounts.get(f"{_NEURON}neuron"):
            yield offer, f"{_NEURON}neuron", " in place of the older name"
    domain = name.rpartition("/")[0]
    for offer in offers:
        if others := _offered(offer, f"{domain}/"):
            yield offer, others[0], ""


def _offered(offer: NodeOffer, prefix: str) -> list[str]:
    return sorted(name for name, count in offer.amounts.items() if count and name.startswith(prefix))
