"""What Kubernetes refuses of claims and templates: resource-claims.

The API server refuses these too where it serves the version; a manifest that is checked before there is a cluster, or
for another release, has nobody else. tests/data/dra/verdicts.tsv holds the rules to kube-apiserver 1.36.1. Source:
k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.attributes import Operation
from webhook.facts.check import Group
from webhook.facts.dra.api_versions import version_fault
from webhook.facts.dra.claim_request_validation import validate_requests
from webhook.facts.dra.claim_values import claim_breaches, value_problems
from webhook.facts.dra.pod_claims import admin_allowed
from webhook.facts.dra.requests import Request, claim_of, own_requests
from webhook.facts.dra.types import DeviceConstraint, ResourceClaim, ResourceClaimTemplate
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.schema.values import Breach
from webhook.typed.collections import Items

problem: Final = Group("resource-claims").problem


def validate_resource_claim(subject: Subject) -> Iterator[Problem]:
    """As ValidateResourceClaim and ValidateResourceClaimTemplate: the spec is checked once, and stays as it is."""
    claim = claim_of(subject)
    if claim is None:
        return
    yield from _api_version(claim, subject)
    if subject.attributes.operation is Operation.UPDATE:
        yield from _immutable(claim, subject.typed_old(type(claim)))
        return
    asked = subject.once(own_requests)
    yield from value_problems(_without_moved(claim_breaches(claim, asked, subject.view()), asked))
    yield from validate_requests(asked, claim.version)
    yield from _admin_access(asked, subject)
    for constraint in claim.claim.devices.constraints:
        yield from _two_attributes(constraint)
    if not asked:
        message = "is empty, so pods that use the claim get no device"
        yield problem("no-requests", claim.claim.path("devices", "requests"), message, "add a request")


def _without_moved(breaches: Iterable[Breach], asked: Items[Request]) -> Iterator[Breach]:
    """Breaches without misplaced fields of requests of which one sentence says where all fields belong."""
    told = {request.at for request in asked if request.kind == "none" and request.device_class}
    for breach in breaches:
        is_moved = breach.what == "unknownField" and breach.expected != ""
        if not (is_moved and breach.at[:-1] in told):
            yield breach


def _api_version(claim: ResourceClaim | ResourceClaimTemplate, subject: Subject) -> Iterator[Problem]:
    """Rules served-version and deprecated-version."""
    fault = version_fault(claim.version, subject.assumptions.kubernetes[1])
    if fault and fault.is_deprecated:
        yield problem("deprecated-version", "apiVersion", fault.message, fault.fix, claim.api_version)
    elif fault:
        yield problem("served-version", "apiVersion", fault.message, fault.fix, claim.api_version)


def _immutable(
    claim: ResourceClaim | ResourceClaimTemplate, old: ResourceClaim | ResourceClaimTemplate
) -> Iterator[Problem]:
    """As ValidateResourceClaimUpdate and ValidateResourceClaimTemplateUpdate."""
    if claim.differs(old, "spec"):
        message = f"cannot change because the spec of a {claim.gvk.kind} is immutable"
        fix = "delete the object and create it again, or create one with another name"
        yield problem("immutable", claim.spec.at, message, fix)


def _admin_access(asked: Items[Request], subject: Subject) -> Iterator[Problem]:
    """As AuthorizedForAdmin of pkg/registry/resource/utils.go."""
    paths = [(*request.at, "adminAccess") for request in asked if request.has_admin_access]
    if not paths:
        return
    view = subject.view()
    allowed = admin_allowed(view)
    for path in paths:
        if allowed is None:
            yield problem("admin-access", path, missing=view.missing()[""])
        elif not allowed:
            label = 'the label resource.kubernetes.io/admin-access: "true"'
            message = f"must not be set because the namespace lacks {label}"
            fix = "use a namespace that has the label, or leave adminAccess out"
            yield problem("admin-access", path, message, fix)


def _two_attributes(constraint: DeviceConstraint) -> Iterator[Problem]:
    match, distinct = constraint.match_attribute, constraint.distinct_attribute
    if match and distinct:
        message = f"has matchAttribute `{match}` and distinctAttribute `{distinct}`, but Kubernetes ignores one of them"
        yield problem("two-attributes", constraint.at, message, "make two constraints")
