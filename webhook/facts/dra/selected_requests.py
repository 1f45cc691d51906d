"""Narrows a claim to the requests that a container names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from webhook.facts.dra.requested_devices import ClaimContents, count_devices_of_requests


def claim_with_selected_requests(claim: ClaimContents, named: Collection[str]) -> ClaimContents:
    """Return the contents of a claim with only the requests that a container names.

    k8s.io/api resource/v1 types.go: a reference without a request, "" here, takes them all.
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
