"""The fact `dra`: the devices that claims request, as CEL structures and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import path_as_text
from webhook.cel.types import BOOL, DYN, INT, STRING, list_of, object_type
from webhook.facts.dra.device_claims_classes import DeviceClasses, DeviceClassState
from webhook.facts.dra.pod_claims import LOOKUPS, ClaimReference, PodClaim, pod_claims
from webhook.facts.dra.requests import CheckedSelector, DeviceRequestOfClaim, requests_of_reviewed_claim
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Fact, Subject
from webhook.facts.train_job_pods.types import RUNTIMES

TEXTS: Final = list_of(STRING)

SELECTOR: Final = declare_structure(
    "DeviceSelector",
    path=(STRING, "the path of the expression"),
    expression=(STRING, "the expression"),
    problem=(STRING, "why the API server refuses the expression, for example because of its cost; empty if valid"),
    gated=(STRING, "why the API server refuses the expression while the feature gate DRAListTypeAttributes is off"),
)
REQUEST: Final = declare_structure(
    "DeviceRequest",
    name=(STRING, "name of the request"),
    path=(STRING, "the path of the request"),
    kind=(STRING, "`exactly`, `firstAvailable`, `choice` (an alternative), `none`, `both` or `unsupported`"),
    deviceClass=(STRING, "deviceClassName"),
    vendor=(STRING, "vendor of the devices, from the name of the class"),
    deviceKind=(STRING, "kind of the devices, from the name of the class"),
    gpu=(BOOL, "whether the devices are GPUs or parts of GPUs"),
    allocationMode=(STRING, "ExactCount or All"),
    count=(INT, "number of requested devices; 0 if the value is not a number"),
    adminAccess=(BOOL, "whether the request is for admin access"),
    selectors=(list_of(SELECTOR.type), "selectors of the request"),
    devices=(DYN, "number of devices; null if not known, as with All or firstAvailable"),
    atLeast=(INT, "the fewest devices that the request may get"),
    choices=(list_of(object_type("claimgate.DeviceRequest")), "the alternatives of firstAvailable"),
    classFound=(BOOL, "whether the class exists"),
    classAbsent=(BOOL, "whether the class is known not to exist"),
    nearestClass=(STRING, "the existing class that the user probably meant"),
    extendedResource=(STRING, "extendedResourceName of the class"),
)
CLAIM: Final = declare_structure(
    "PodClaim",
    podSet=(STRING, "name of the pod set"),
    pods=(DYN, "number of pods of the pod set; null if not known"),
    path=(STRING, "the path of the entry"),
    name=(STRING, "name by which containers refer to the claim"),
    source=(STRING, "what the entry names: `claim`, `template`, `both`, `none`, or `old` for the old field `source`"),
    reference=(STRING, "name of the claim or template to which the entry refers"),
    kind=(STRING, "ResourceClaim or ResourceClaimTemplate"),
    found=(BOOL, "whether the claim or template exists"),
    absent=(BOOL, "whether the claim or template is known not to exist"),
    promised=(BOOL, "whether a ComputeDomain will create the template"),
    nearest=(STRING, "the existing name that the user probably meant"),
    elsewhere=(TEXTS, "at most three other namespaces that have an object of this name; empty at admission"),
    requests=(list_of(REQUEST.type), "the requests of the claim"),
    requestNames=(TEXTS, "names of the requests of the claim"),
    devices=(DYN, "number of devices; null if not known, as with All or firstAvailable"),
    atLeast=(INT, "the fewest devices that the claim may get"),
    gpu=(BOOL, "whether some of the devices are GPUs"),
    adminAccess=(BOOL, "whether a request is for admin access"),
    users=(TEXTS, "paths of the entries in containers that refer to the claim"),
    duplicate=(BOOL, "whether an earlier entry has the same name"),
)
REFERENCE: Final = declare_structure(
    "ClaimReference",
    podSet=(STRING, "name of the pod set"),
    container=(STRING, "container that refers to a claim"),
    path=(STRING, "the path of the reference"),
    name=(STRING, "name of the claim in the pod"),
    request=(STRING, 'request of the claim; `""` for all requests'),
    declared=(BOOL, "whether the pod has a claim with this name"),
    resolved=(BOOL, "whether the requests of the claim are known"),
    requestFound=(BOOL, "whether the claim has this request"),
    duplicate=(BOOL, "whether an earlier entry of the container already requests some of these devices"),
    nearestRequest=(STRING, "the request of the claim that the user probably meant"),
)
DRA: Final = declare_structure(
    "Dra",
    claims=(list_of(CLAIM.type), "the entries of `spec.resourceClaims` of the pods"),
    references=(list_of(REFERENCE.type), "the entries of `resources.claims` of the containers"),
    requests=(list_of(REQUEST.type), "requests of the reviewed object, if the object is a claim or a template"),
)
DRA_STRUCTURES: Final = (DRA, CLAIM, REFERENCE, REQUEST, SELECTOR)


def claim_as_json(claim: PodClaim) -> JSON:
    """Return one claim of a pod as JSON."""
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
    """Return the reference of a container to a claim as JSON."""
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
    """Return requests as JSON, with what is known about their classes."""
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


def _selector_as_json(selector: CheckedSelector) -> JSON:
    return {
        "path": path_as_text(selector.at),
        "expression": selector.expression,
        "problem": selector.errors.problem,
        "gated": selector.errors.gated,
    }


def _compute_dra_fact(subject: Subject) -> FactResult:
    claims = subject.once(pod_claims)
    value = {
        "claims": [claim_as_json(claim) for claim in claims.claims],
        "references": [reference_as_json(reference) for reference in claims.references],
        "requests": _reviewed_requests_as_json(subject),
    }
    return subject.once(pod_sets).build_fact_result(value, "requests", missing=claims.missing)


def _reviewed_requests_as_json(subject: Subject) -> list[JSON]:
    """Return the requests of the reviewed claim or template as JSON, with the state of their classes."""
    asked = subject.once(requests_of_reviewed_claim)
    return requests_as_json(asked, DeviceClasses(subject.cluster_view()).states(asked)) if asked else []


FACTS: Final = (
    Fact(
        name="dra",
        about=(
            "Device claims of pods, and the requests of a reviewed ResourceClaim or ResourceClaimTemplate. The form is"
            " the same for v1alpha3, v1beta1, v1beta2 and v1. Claims are looked up in the namespace of the object. "
            "An object counts as absent only if all objects of the cluster are known."
        ),
        examples=(
            "dra.claims.all(c, !c.absent)",
            "dra.claims.filter(c, c.gpu && c.users.size() == 0).size() == 0",
            "dra.references.all(r, !r.resolved || r.requestFound)",
            'dra.requests.all(r, r.selectors.all(s, s.problem == ""))',
        ),
        type=DRA.type,
        structures=DRA_STRUCTURES,
        compute=_compute_dra_fact,
        lookups=(*LOOKUPS, *RUNTIMES),
    ),
)
