"""The CEL structures of the facts `dra` and `inventory`."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, DYN, INT, STRING, list_of, object_type
from webhook.facts.fact import structure

TEXTS: Final = list_of(STRING)

SELECTOR: Final = structure(
    "DeviceSelector",
    path=(STRING, "where its expression stands"),
    expression=(STRING, "the expression"),
    problem=(STRING, "what the API server refuses it for, its cost included"),
    gated=(STRING, "what it refuses unless the feature gate DRAListTypeAttributes is on"),
)
NOTE: Final = structure(
    "DeviceNote",
    what=(
        STRING,
        (
            "`wrongType`, `missing`, `tooMany`, `tooLong`, `duplicate`, `badName`, `notOneOf`, `forbidden`, "
            "`excluded`, `unknownRequest`, `noAttribute`, `noSource`, `twoSources`; `unknownField` for a field that "
            "is dropped, `noCapacity` for a capacity of no device; of parameters also `unknownKind`, `outOfRange`, "
            "`otherDriver`, `otherDevice`, `alternatives`, `gated`"
        ),
    ),
    path=(STRING, "where it is"),
    found=(STRING, "what stands there"),
    expected=(STRING, "what must stand there"),
    nearest=(STRING, "what was probably meant"),
)
CONFIG: Final = structure(
    "DeviceConfig",
    path=(STRING, "where the parameters stand"),
    driver=(STRING, "driver that takes them"),
    kind=(STRING, "kind of the parameters, where the driver is known"),
    requests=(TEXTS, "requests that they are for"),
    notes=(list_of(NOTE.type), "what is wrong with them, where the driver is known"),
)
REQUEST: Final = structure(
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
CONSTRAINT: Final = structure(
    "DeviceConstraint",
    path=(STRING, "where it stands"),
    requests=(TEXTS, "requests that it is about; none means all"),
    matchAttribute=(STRING, "the attribute that must be equal"),
    distinctAttribute=(STRING, "the attribute that must differ"),
)
CLAIM: Final = structure(
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
    elsewhere=(TEXTS, "other namespaces that have one of this name, at most three"),
    requests=(list_of(REQUEST.type), "what it asks for"),
    requestNames=(TEXTS, "names of its requests"),
    devices=(DYN, "how many it gets; null where All or alternatives leave it open"),
    atLeast=(INT, "how many it gets at least"),
    gpu=(BOOL, "whether GPUs are among them"),
    adminAccess=(BOOL, "whether it asks for admin access"),
    users=(TEXTS, "where containers refer to it"),
    duplicate=(BOOL, "whether an earlier entry has its name"),
)
REFERENCE: Final = structure(
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
DRA: Final = structure(
    "Dra",
    claims=(list_of(CLAIM.type), "every entry of `spec.resourceClaims` of the pods"),
    references=(list_of(REFERENCE.type), "every entry of `resources.claims` of their containers"),
    requests=(list_of(REQUEST.type), "requests of a claim or template itself"),
    constraints=(list_of(CONSTRAINT.type), "constraints of a claim or template itself"),
    selectors=(list_of(SELECTOR.type), "selectors of a DeviceClass itself"),
    notes=(list_of(NOTE.type), "what is wrong with an object of resource.k8s.io, a PodGroup or a Workload"),
    configs=(list_of(CONFIG.type), "opaque parameters for drivers, of a claim, template or class itself"),
    adminAllowed=(
        DYN,
        (
            "where a claim has admin access, whether the label of the namespace allows it; null where the namespace "
            "is unknown"
        ),
    ),
)
DRA_STRUCTURES: Final = (DRA, CLAIM, REFERENCE, REQUEST, CONSTRAINT, SELECTOR, CONFIG, NOTE)

FAILURE: Final = structure(
    "SelectorFailure",
    text=(STRING, "the error"),
    device=(STRING, "device that makes it"),
)
SELECTED: Final = structure(
    "DeviceFind",
    path=(STRING, "where the request, the alternative or the selectors stand"),
    name=(STRING, "name of the request or alternative"),
    of=(STRING, "the request of an alternative"),
    deviceClass=(STRING, "deviceClassName"),
    wanted=(DYN, "how many devices are asked for; null where that is open"),
    classed=(DYN, "devices of the class; null where nobody can say"),
    selected=(DYN, "those of them that the selectors take; null where nobody can say"),
    shared=(BOOL, "whether one of these may be given out several times"),
    failures=(list_of(FAILURE.type), "errors of selectors, at most three"),
)
INVENTORY: Final = structure(
    "Inventory",
    devices=(INT, "devices in the ResourceSlices; 0, and no requests, where the view has none"),
    requests=(list_of(SELECTED.type), "each request and alternative, or the class itself"),
)
INVENTORY_STRUCTURES: Final = (INVENTORY, SELECTED, FAILURE)
