"""The devices that claims and claim templates of the cluster request, with what is known about the device classes.

The contents of a claim are computed once in a review, because pods often share claims. The contents of short claims are
cached for all reviews, until the claim or a class changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.facts.dra.device_claims_classes import DeviceClasses, DeviceClassState
from webhook.facts.dra.requests import DeviceRequestOfClaim, read_requests
from webhook.facts.dra.types import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from webhook.facts.view import ClusterView
from webhook.text.caches import IdentityKey, TwoGenerationCache, json_bytes

_MOST_KEPT: Final = 4
_CONTENTS_BYTES: Final = 8 << 10
_SHORT: Final = frozenset(("name", "exactly", "deviceClassName", "allocationMode", "count", "adminAccess"))
"""Fields of a request that cannot hold a long text."""
_EXCLUSIVE: Final = frozenset(("device", "slice"))


class ClaimContents(Struct, frozen=True, kw_only=True):
    """The requests of a claim, and what follows from the requests.

    Args:
        requests: the requests of the claim.
        classes: the state of each class that the requests name, by the name of the class.
        request_names: the names by which a container may refer to the requests; only constraints may name an
            alternative.
        devices: how many devices the claim gets; None if not known, as with All or firstAvailable.
        at_least: the least number of devices that the claim gets.
        is_gpu: whether GPUs are among the devices.
        has_admin_access: whether a request is for admin access.
        is_exclusive: whether only one pod at a time can use each device. All requests are then for whole devices or
            slices, without admin access, a share of a capacity or a sharing strategy.
    """

    requests: tuple[DeviceRequestOfClaim, ...] = ()
    classes: Mapping[str, DeviceClassState] = field(default_factory=dict)
    request_names: tuple[str, ...] = ()
    devices: int | None = None
    at_least: int = 0
    is_gpu: bool = False
    has_admin_access: bool = False
    is_exclusive: bool = False


NO_CONTENTS: Final = ClaimContents()
"""The contents of a claim that does not exist."""


def contents_of_claim(
    claim: ResourceClaim | ResourceClaimTemplate, classes: DeviceClasses, view: ClusterView
) -> ClaimContents:
    """Return the contents of a claim or a template of the cluster."""
    key = ("claim", id(claim.json))
    known: ClaimContents | None = view.remembered(key)
    if known is not None:
        return known
    kept = _cached_contents_of_claim(claim)
    if not kept.is_valid_for(classes):
        kept.contents = _contents_of_requests(claim.claim_spec, read_requests(claim.claim_spec, claim.version), classes)
        kept.classes = {name: classes.get(name).json for name in kept.contents.classes if name and classes.get(name)}
    if all(not name or state.is_found for name, state in kept.contents.classes.items()):
        # contents with a missing class are not stored, because each fact must note the class as missing
        view.remember(key, kept.contents)
    return kept.contents


class _CachedContents(Struct):
    """The cached contents of one claim. `classes` maps the names of the claim's existing classes to their JSON."""

    classes: Mapping[str, JSON] = field(default_factory=dict)
    contents: ClaimContents = NO_CONTENTS

    def is_valid_for(self, classes: DeviceClasses) -> bool:
        """Return whether all classes exist and are unchanged."""
        if self.contents is NO_CONTENTS:
            return False
        named = self.contents.classes.keys() - {""}
        return len(self.classes) == len(named) and all(
            classes.get(name).json is json for name, json in self.classes.items()
        )


_KEPT: Final[TwoGenerationCache[IdentityKey, _CachedContents | None]] = TwoGenerationCache(4 << 20)


def _cached_contents_of_claim(claim: ResourceClaim | ResourceClaimTemplate) -> _CachedContents:
    key = IdentityKey(claim.json)
    kept = _KEPT.get(key, None)
    if kept is None:
        kept = _CachedContents()
        if _is_short_enough_to_cache(claim.claim_spec):
            _KEPT.put(key, kept, json_bytes(claim.json, _KEPT.largest_entry_bytes) + _CONTENTS_BYTES)
    return kept


def _is_short_enough_to_cache(spec: ClaimSpec) -> bool:
    """Return whether a claim is short enough to be cached. In most claims, requests name only a class and a count."""
    listed = spec.devices.requests
    return (
        len(listed) <= _MOST_KEPT
        and not spec.devices.config
        and all(
            request and _SHORT.issuperset(request.json) and _SHORT.issuperset(request.exactly.json)
            for request in listed
        )
    )


def _contents_of_requests(
    spec: ClaimSpec, asked: Sequence[DeviceRequestOfClaim], classes: DeviceClasses
) -> ClaimContents:
    return ClaimContents(
        requests=tuple(asked),
        classes=classes.states(asked),
        request_names=tuple(request.name for request in asked if request.name),
        devices=count_devices_of_requests(asked) if asked else None,
        at_least=sum(request.at_least for request in asked),
        is_gpu=any(request.is_gpu for request in asked),
        has_admin_access=any(request.has_admin_access for request in asked),
        is_exclusive=_asks_for_exclusive_devices(asked)
        and not any(each.opaque.nvidia.sharing for each in spec.devices.config),
    )


def _asks_for_exclusive_devices(asked: Sequence[DeviceRequestOfClaim]) -> bool:
    """Return whether all requests and alternatives are for devices that pods cannot share."""
    choices = [choice for request in asked for choice in request.choices or (request,)]
    return bool(choices) and all(
        choice.device.kind in _EXCLUSIVE and not choice.has_admin_access and not choice.capacities for choice in choices
    )


def count_devices_of_requests(asked: Sequence[DeviceRequestOfClaim]) -> int | None:
    """Return the number of devices of all requests together; None if the number of any request is not known."""
    counts = [request.devices for request in asked if request.devices is not None]
    return sum(counts) if len(counts) == len(asked) else None


def claim_with_selected_requests(claim: ClaimContents, named: Collection[str]) -> ClaimContents:
    """Return the contents of a claim with only the requests that a container names.

    A reference without a request ("") uses all requests. Source: k8s.io/api resource/v1 types.go.
    """
    if not named or "" in named:
        return claim
    asked = tuple(request for request in claim.requests if request.name in named)
    return replace(
        claim,
        requests=asked,
        devices=count_devices_of_requests(asked),
        at_least=sum(request.at_least for request in asked),
        is_gpu=any(request.is_gpu for request in asked),
    )
