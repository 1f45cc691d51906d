"""How many GPUs a container has for processes that use one GPU each.

`nvidia.com/gpu`, `amd.com/gpu`, and claims of whole GPUs with a fixed count are counted. Other accelerators, slices,
and devices that a LimitRange or a claim may add cannot be compared with processes. Shares (`nvidia.com/gpu.shared`) of
one container may be of one GPU or of several: the container sees at most as many GPUs as it has shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook.apimachinery import quantity
from webhook.facts.dra.requested_devices import ClaimContents, claim_with_selected_requests
from webhook.facts.gpu import devices
from webhook.facts.launch.member import claims_by_pod_set_and_name
from webhook.facts.subject import Subject
from webhook.typed.pods import Container

COMPARABLE: Final[Mapping[str, str]] = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}
"""Resources that count whole GPUs, each for one process, with their vendors."""
_SLICE: Final = "nvidia.com/mig-"
_SHARED: Final = "nvidia.com/gpu.shared"


@dataclass(frozen=True, slots=True)
class ContainerGpus:
    """The GPUs of a container.

    Args:
        count: the number of GPUs; None if the container has no GPU, or if the number is not known.
        vendor: `nvidia`, `amd` or "".
        requested_zero: the GPU resource with a request of 0; "" if no request is 0.
        slices: the requested resources of MIG slices, with their amounts.
        has_other: whether the container requests other devices, slices or shares, or GPUs in an amount that cannot be
            read.
        by_claims: whether claims give the container devices.
        shares: the number of shares of GPUs; 0 if the container has other devices, or if the number is not known.
    """

    count: int | None = None
    vendor: str = ""
    requested_zero: str = ""
    slices: tuple[tuple[str, int], ...] = ()
    has_other: bool = False
    by_claims: bool = False
    shares: int = 0

    @property
    def most(self) -> int | None:
        """Return how many GPUs the container sees at most; None without a GPU, or if the number is not known."""
        return self.count if self.count is not None else self.shares or None

    @property
    def is_without(self) -> bool:
        """Return whether the container requests no device at all."""
        return self.count is None and not (self.slices or self.has_other or self.by_claims)


def gpus_of_container(container: Container, pod_set: str, subject: Subject) -> ContainerGpus:
    """Return the GPUs of a container of a pod set."""
    resources, total, vendor, zero = container.resources, 0, "", ""
    slices, has_other = list[tuple[str, int]](), False
    shares, devices_besides = 0, False
    amounts = {**resources.written_requests, **resources.written_limits}
    for name, written in resources.reading.deadline.charge_for_items(list(amounts.items())):
        if "/" not in name:
            continue
        number = quantity.read_whole_number_or_none(written)
        if name in COMPARABLE:
            vendor = COMPARABLE[name]
            zero = name if number == 0 else zero
            has_other, total = has_other or number is None, total + (number or 0)
        elif devices.device_of_resource_name(name).kind and number != 0:
            is_slice = name.startswith(_SLICE) and not name.endswith(".shared")
            slices.extend([(name, number)] if is_slice and number else [])
            has_other = True
            shares, devices_besides = (number or 0, devices_besides) if name == _SHARED else (shares, True)
    by_claims = bool(resources.claims)
    claimed = _gpus_of_claims(container, pod_set, subject) if by_claims else 0
    is_known = claimed is not None and not has_other and not _has_open_resources(container)
    known = total + (claimed or 0) if is_known else 0
    return ContainerGpus(
        count=known or None,
        vendor=vendor,
        requested_zero=zero,
        slices=tuple(slices),
        has_other=has_other,
        by_claims=by_claims,
        shares=0 if total or devices_besides or by_claims or _has_open_resources(container) else shares,
    )


def _has_open_resources(container: Container) -> bool:
    """Return whether a placeholder of a template may add resources."""
    return any(container.resources.is_omitted(name) for name in ("limits", "requests")) or container.is_omitted(
        "resources"
    )


def _gpus_of_claims(container: Container, pod_set: str, subject: Subject) -> int | None:
    """Count the GPUs of the claims of a container; None if the number of GPUs in any claim is not known."""
    wanted: dict[str, set[str]] = {}
    for claimed in container.resources.claims:
        wanted.setdefault(claimed.name, set()).add(claimed.request)
    total = 0
    for name, requests in wanted.items():
        claim = subject.once(claims_by_pod_set_and_name).get((pod_set, name))
        if claim is None or not claim.is_found:
            return None
        count = _whole_gpus(claim_with_selected_requests(claim.contents, requests))
        if count is None:
            return None
        total += count
    return total


def _whole_gpus(contents: ClaimContents) -> int | None:
    """Return how many whole GPUs a claim gets; None if the number is not known, or if the claim may get parts of
    GPUs.
    """
    total = 0
    for request in contents.requests:
        if not request.is_gpu:
            continue
        if request.choices or request.devices is None or request.device.kind != "device" or request.has_admin_access:
            return None
        total += request.devices
    return total
