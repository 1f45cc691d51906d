"""The CEL structures of the fact `dra`."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, DYN, INT, STRING, list_of, object_type
from webhook.facts.fact import declare_structure

TEXTS: Final = list_of(STRING)

SELECTOR: Final = declare_structure(
    "DeviceSelector",
    path=(STRING, "where its expression stands"),
    expression=(STRING, "the expression"),
    problem=(STRING, "what the API server refuses it for, its cost included"),
    gated=(STRING, "what it refuses unless the feature gate DRAListTypeAttributes is on"),
)
REQUEST: Final = declare_structure(
    "DeviceRequest",
    name=(STRING, "name of the request"),
    path=(STRING, "where it stands"),
    kind=(STRING, "`exactly`, `firstAvailable`, `choice` (an alternative), `none`, `both` or `unsupported`"),
    deviceClass=(STRING, "deviceClassName"),
    vendor=(STRING, "vendor of the devices, as the name of the class tells"),
    deviceKind=(STRING, "kind of the devices, as the name of the class tells"),
    gpu=(BOOL, "whether they are GPUs or parts of them"),
    allocationMode=(STRING, "ExactCount or All"),
    count=(INT, "devices that are asked for, 0 where that is not a number"),
    adminAccess=(BOOL, "whether it asks for admin access"),
    selectors=(list_of(SELECTOR.type), "its selectors"),
    devices=(DYN, "how many it gets; null where All or alternatives leave it open"),
    atLeast=(INT, "how many it gets at least"),
    choices=(list_of(object_type("claimgate.DeviceRequest")), "the alternatives of firstAvailable"),
    classFound=(BOOL, "whether the class is there"),
    classAbsent=(BOOL, "whether the class is known not to be there"),
    nearestClass=(STRING, "the class that was probably meant"),
    extendedResource=(STRING, "extendedResourceName of the class"),
)
CLAIM: Final = declare_structure(
    "PodClaim",
    podSet=(STRING, "name of the pod set"),
    pods=(DYN, "number of pods of the pod set; null where nobody can know"),
    path=(STRING, "where the entry stands"),
    name=(STRING, "name by which containers refer to it"),
    source=(STRING, "`claim`, `template`, `both`, `none` or `old`"),
    reference=(STRING, "the claim or template that it names"),
    kind=(STRING, "ResourceClaim or ResourceClaimTemplate"),
    found=(BOOL, "whether that is there"),
    absent=(BOOL, "whether that is known not to be there"),
    promised=(BOOL, "whether a ComputeDomain will make it"),
    nearest=(STRING, "the name that was probably meant"),
    elsewhere=(TEXTS, "other namespaces that have one of this name, at most three; none at admission"),
    requests=(list_of(REQUEST.type), "what it asks for"),
    requestNames=(TEXTS, "names of its requests"),
    devices=(DYN, "how many it gets; null where All or alternatives leave it open"),
    atLeast=(INT, "how many it gets at least"),
    gpu=(BOOL, "whether GPUs are among them"),
    adminAccess=(BOOL, "whether it asks for admin access"),
    users=(TEXTS, "where containers refer to it"),
    duplicate=(BOOL, "whether an earlier entry has its name"),
)
REFERENCE: Final = declare_structure(
    "ClaimReference",
    podSet=(STRING, "name of the pod set"),
    container=(STRING, "container that refers to a claim"),
    path=(STRING, "where it does"),
    name=(STRING, "name of the claim in the pod"),
    request=(STRING, 'request of the claim; `""` for all of them'),
    declared=(BOOL, "whether the pod has a claim of that name"),
    resolved=(BOOL, "whether what the claim asks for is known"),
    requestFound=(BOOL, "whether it has that request"),
    duplicate=(BOOL, "whether the container refers to it before"),
    nearestRequest=(STRING, "the request that was probably meant"),
)
DRA: Final = declare_structure(
    "Dra",
    claims=(list_of(CLAIM.type), "every entry of `spec.resourceClaims` of the pods"),
    references=(list_of(REFERENCE.type), "every entry of `resources.claims` of their containers"),
    requests=(list_of(REQUEST.type), "requests of a claim or template itself"),
)
DRA_STRUCTURES: Final = (DRA, CLAIM, REFERENCE, REQUEST, SELECTOR)
