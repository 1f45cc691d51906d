"""The value of the fact `dra` in expressions; structures.py documents its fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from webhook.attributes import JSON
from webhook.facts.dra.class_lookup import DeviceClassState
from webhook.facts.dra.pod_claims import ClaimReference, PodClaim
from webhook.facts.dra.requests import DeviceRequestOfClaim, JudgedSelector
from webhook.paths import path_as_text


def claim_as_json(claim: PodClaim) -> JSON:
    """Return the value of one claim of a pod."""
    contents, absence = claim.contents, claim.absence
    return {
        "podSet": claim.pod_set,
        "pods": claim.pods,
        "path": path_as_text(claim.at),
        "name": claim.name,
        "source": claim.source,
        "reference": claim.reference,
        "kind": claim.kind,
        "found": claim.is_found,
        "absent": absence.is_absent,
        "promised": absence.is_promised,
        "nearest": absence.nearest,
        "elsewhere": [*absence.elsewhere],
        "requests": requests_as_json(contents.requests, contents.classes),
        "requestNames": [*contents.request_names],
        "devices": contents.devices,
        "atLeast": contents.at_least,
        "gpu": contents.is_gpu,
        "adminAccess": contents.has_admin_access,
        "users": [path_as_text(user) for user in claim.users],
        "duplicate": claim.is_duplicate,
    }


def reference_as_json(reference: ClaimReference) -> JSON:
    """Return the value of a container's reference to a claim."""
    return {
        "podSet": reference.pod_set,
        "container": reference.container,
        "path": path_as_text(reference.at),
        "name": reference.name,
        "request": reference.request,
        "declared": reference.claim is not None,
        "resolved": reference.is_resolved,
        "requestFound": reference.is_request_found,
        "duplicate": reference.is_duplicate,
        "nearestRequest": reference.nearest_request,
    }


def requests_as_json(requests: Iterable[DeviceRequestOfClaim], classes: Mapping[str, DeviceClassState]) -> list[JSON]:
    """Return the values of requests, with what is known about their classes."""
    return [_request_as_json(request, classes) for request in requests]


def _request_as_json(request: DeviceRequestOfClaim, classes: Mapping[str, DeviceClassState]) -> JSON:
    state = classes[request.device_class]
    return {
        "name": request.name,
        "path": path_as_text(request.at),
        "kind": request.kind,
        "deviceClass": request.device_class,
        "vendor": request.device.vendor,
        "deviceKind": request.device.kind,
        "gpu": request.is_gpu,
        "allocationMode": request.allocation_mode,
        "count": request.count,
        "adminAccess": request.has_admin_access,
        "selectors": [_selector_as_json(selector) for selector in request.selectors],
        "devices": request.devices,
        "atLeast": request.at_least,
        "choices": requests_as_json(request.choices, classes),
        "classFound": state.is_found,
        "classAbsent": state.is_absent,
        "nearestClass": state.nearest,
        "extendedResource": state.extended_resource,
    }


def _selector_as_json(selector: JudgedSelector) -> JSON:
    return {
        "path": path_as_text(selector.at),
        "expression": selector.expression,
        "problem": selector.judged.problem,
        "gated": selector.judged.gated,
    }
