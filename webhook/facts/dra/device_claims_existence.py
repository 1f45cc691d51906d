"""Checks that the objects exist that claims of pods refer to: claims, templates, requests, and their classes.

An object counts as absent only where it is known to be: in a whole cluster.
Otherwise a rule that needs it was not checked. A ComputeDomain brings its template, which is taken for there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from webhook.facts.dra.device_claims_admin_access import validate_admin_access
from webhook.facts.dra.device_claims_classes import validate_class_exists
from webhook.facts.dra.groups import DEVICE_CLAIMS_ADVICE
from webhook.facts.dra.pod_claims import ClaimReference, PodClaim, pod_claims
from webhook.facts.subject import Subject
from webhook.problem import MissingObject, Problem
from webhook.wording import named

CLAIM_EXISTS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/claim-exists",
    title="The ResourceClaim or ResourceClaimTemplate that a pod names exists.",
    why="The pods stay Pending until it is created in their namespace.",
    source="k8s.io/dynamic-resource-allocation v0.36.1 resourceclaim/claim.go",
    fails="pending",
    issues=("https://github.com/opendatahub-io/architecture-decision-records/pull/158",),
)
REQUEST_EXISTS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/request-exists",
    title="The request that a container names is one of its claim.",
    why="The container starts without a device.",
    source="k8s.io/api v0.36.1 core/v1 types.go ResourceClaim",
)


def validate_claims(subject: Subject) -> Iterator[Problem]:
    """Yield claims whose object or class does not exist, or which the namespace does not allow."""
    for claim in subject.once(pod_claims).claims:
        yield from _check_claim_exists(claim, subject)
        for request in claim.requests:
            asks = f"{claim.kind} `{claim.reference}` asks for DeviceClass"
            state = claim.contents.classes[request.device_class]
            yield from validate_class_exists(request.device_class, state, asks, claim.at, subject)
        yield from validate_admin_access(claim, subject)


def _check_claim_exists(claim: PodClaim, subject: Subject) -> Iterator[Problem]:
    absence = claim.absence
    if not absence.is_absent:
        if not claim.is_found and claim.referenced_kind and subject.namespace and not absence.is_promised:
            yield CLAIM_EXISTS.problem(claim.at, missing=_missing_objects(claim, subject))
        return
    where, fix = "does not exist in this namespace", f"create the {claim.kind}, or correct the name"
    if absence.nearest:
        fix = f"write `{absence.nearest}` if that is meant, or create the {claim.kind}"
    elif absence.elsewhere:
        others = named([f"`{name}`" for name in absence.elsewhere], "namespace")
        where = f"is not in namespace `{subject.namespace}` but in {others}"
        fix = f"create the {claim.kind} in namespace `{subject.namespace}`"
    message = f"{claim.kind} `{claim.reference}` {where}, so the pods stay Pending"
    yield CLAIM_EXISTS.problem(claim.at, message, fix)


def _missing_objects(claim: PodClaim, subject: Subject) -> tuple[MissingObject, ...]:
    """Return the claim or the template that does not exist, with the reason."""
    view = subject.cluster_view()
    if claim.referenced_kind:
        view.find(claim.referenced_kind, claim.reference)
    missing, elsewhere = view.all_missing_objects(), claim.absence.elsewhere
    if not elsewhere:
        return missing
    why = f"not found in namespace {subject.namespace}, but in {', '.join(elsewhere)}"
    return tuple(replace(each, why=why) if each.why == "not found" else each for each in missing)


def validate_requests(subject: Subject) -> Iterator[Problem]:
    """Yield requests that containers name and their claims do not have."""
    for reference in subject.once(pod_claims).references:
        if reference.request and reference.claim is not None:
            yield from _check_request_exists(reference, reference.claim, subject)


def _check_request_exists(reference: ClaimReference, claim: PodClaim, subject: Subject) -> Iterator[Problem]:
    path = (*reference.at, "request")
    if reference.is_resolved:
        if not reference.is_request_found:
            message = f"is not a request of claim `{reference.name}`, so the container gets no device"
            near = reference.nearest_request
            fix = f"write `{near}` if that is meant" if near else "write the name of a request of the claim"
            yield REQUEST_EXISTS.problem(path, message, fix, reference.request)
    elif claim.referenced_kind and not claim.absence.is_absent and subject.namespace:
        yield REQUEST_EXISTS.problem(path, missing=_missing_objects(claim, subject))
