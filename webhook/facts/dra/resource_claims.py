"""Kubernetes' rules for claims and templates, and for the claims of a PodGroup or a Workload (group resource-claims).

The API server applies the same rules to versions that it serves. This module also applies the rules to manifests
without a cluster, and to manifests for another release. Tests compare the results with the verdicts of kube-apiserver
1.36.1 in tests/data/dra/verdicts.tsv.

Source: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go and
pkg/apis/scheduling/v1alpha2/zz_generated.validations.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.apimachinery.attributes import Operation
from webhook.facts.dra.breaches import (
    claim_breaches,
    describe_feature_gate,
    describe_refusal,
    problem_of_breach,
    problems_of_breaches,
    shape_breaches,
)
from webhook.facts.dra.pod_claims import why_no_admin_access
from webhook.facts.dra.requests import (
    CheckedSelector,
    DeviceRequestOfClaim,
    requests_of_reviewed_claim,
    reviewed_claim,
)
from webhook.facts.dra.types import (
    FLAT_VERSIONS,
    RESOURCE_CLAIMS,
    DeviceConstraint,
    PodGroup,
    PodGroupSpec,
    ResourceClaim,
    ResourceClaimTemplate,
    Workload,
    check_api_version,
)
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.schema.values import Breach
from webhook.typed.collections import Items
from webhook.yamltext.placeholders import is_placeholder

SERVED_VERSION: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/served-version",
    title="The claim uses an API version that the cluster does not serve",
    why="The API server refuses an object in a version that it does not serve.",
    source="k8s.io/api v0.36.1 resource/*/zz_generated.prerelease-lifecycle.go",
    refused_on_updates="resource/*/zz_generated.prerelease-lifecycle.go, an API server has no path of this version",
)
IMMUTABLE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/immutable",
    title="The spec of a claim or template was changed",
    why="Devices may be allocated by the old spec, so the API server refuses the change.",
    function="ValidateResourceClaimUpdate",
    refused_on_updates="pkg/apis/resource/validation/validation.go ValidateResourceClaimUpdate",
)
ADMIN_ACCESS: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/admin-access",
    title="The claim requests adminAccess, which the namespace does not allow",
    why=(
        "adminAccess gives pods devices that are allocated to other pods. Kubernetes allows adminAccess only in "
        "namespaces with a label."
    ),
    source="k8s.io/kubernetes v1.36 pkg/registry/resource/utils.go",
    function="AuthorizedForAdmin",
)
DEPRECATED_VERSION: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/deprecated-version",
    title="The claim uses a deprecated API version",
    why="A later release of Kubernetes does not serve this version. Rewrite the object before the cluster is upgraded.",
    refused_by="the API server of a later release",
    source="k8s.io/api v0.36.1 resource/*/zz_generated.prerelease-lifecycle.go",
    level="warn",
    level_in_tests="advice",
    severity="low",
)
TWO_ATTRIBUTES: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/two-attributes",
    title="matchAttribute and distinctAttribute are both set",
    why="The scheduler reads only one of the two fields and ignores the other field.",
    refused_by="",
    level="warn",
    severity="low",
    fails="silent",
)
NO_REQUESTS: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/no-requests",
    title="The claim requests no device",
    why="A pod that uses the claim gets no device.",
    refused_by="",
    level="warn",
    severity="low",
    fails="silent",
)
QUANTITY: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/quantity",
    title="The capacity is not a quantity",
    why="The API server cannot read the amount and refuses the object.",
    source="k8s.io/apimachinery v0.36 pkg/api/resource/quantity.go",
)
PARAMETERS: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/parameters",
    title="The driver parameters in the claim are not an object",
    why="The API server refuses parameters that are not a JSON object.",
    function="validateRawExtension",
)
REQUIRED: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/required",
    title="A required field of the claim is missing",
    why="The API server refuses an object without this field.",
)
NAME_FORMAT: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/name-format",
    title="A name or key in the claim has an invalid format",
    why="The API server refuses the object, because nothing can have this name.",
)
UNSUPPORTED_VALUE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/unsupported-value",
    title="A field of the claim has an unsupported value",
    why="The API server refuses a value that it does not know.",
)
DUPLICATE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/duplicate",
    title="Two entries of a list in the claim have the same name",
    why="A reference by this name could mean either entry, so the API server refuses the object.",
)
TOO_LARGE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/too-large",
    title="A list or the parameters of the claim are too long",
    why="The API server refuses longer lists and parameters.",
)
FORBIDDEN: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/forbidden",
    title="The template sets metadata other than labels and annotations",
    why="Names and other metadata would be the same for every claim that is created from the template.",
    function="ValidateResourceClaimTemplate",
)
EXCLUDED: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/excluded",
    title="The toleration has a value although its operator is not Equal",
    why="The operator Exists ignores values, so the API server refuses a toleration with a value.",
    function="validateDeviceToleration",
)
CONSTRAINT_ATTRIBUTE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/constraint-attribute",
    title="The constraint names no attribute",
    why="A constraint without matchAttribute and distinctAttribute has no effect.",
    function="validateDeviceConstraint",
)
UNKNOWN_REQUEST: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/unknown-request",
    title="A part of the claim refers to a request that the claim does not have",
    why="The API server refuses a reference to a request that the claim does not have.",
    function="validateRequestNameRef",
)
UNKNOWN_FIELD: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/unknown-field",
    title="The claim has a field that does not exist in its API version",
    why="The API server drops the field. kubectl refuses it unless validation is off.",
    refused_by="",
    level="warn",
    severity="low",
    fails="silent",
)
CAPACITY_NAME: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/capacity-name",
    title="The name of the capacity is invalid",
    why="No device can have a capacity with this name, so no device fits, and the pods stay Pending.",
    refused_by="",
    level="warn",
    severity="low",
    fails="pending",
)
REQUEST_KIND: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/request-kind",
    title="The request sets both exactly and firstAvailable, or neither",
    why=(
        "The API server refuses a request with both fields or neither field. In v1beta1, the fields of `exactly` are "
        "at the same level as the name."
    ),
    function="validateDeviceRequest",
)
CLASS_REQUIRED: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/class-required",
    title="The request names no DeviceClass",
    why="Without a DeviceClass, Kubernetes does not know which devices the request means.",
    function="validateDeviceRequest",
)
COUNT: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/count",
    title="The count does not fit the allocation mode",
    why="ExactCount needs the number of devices. All allocates every device that fits and allows no number.",
    function="validateDeviceAllocationMode",
)
SELECTOR: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/selector",
    title="A CEL selector of the claim is invalid or too expensive",
    why="The API server refuses an expression that does not compile or that may cost too much.",
    function="validateCELSelector",
)
SELECTOR_FEATURE_GATE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/selector-feature-gate",
    title="A selector of the claim needs a feature gate that is off",
    why=(
        "The API server accepts attributes that are lists only if the feature gate DRAListTypeAttributes is on. The "
        "gate is off by default."
    ),
    source="k8s.io/dynamic-resource-allocation v0.36.1 cel/compile.go",
    level="warn",
    severity="low",
)
GROUP_SOURCE: Final = RESOURCE_CLAIMS.rule(
    "resource-claims/group-source",
    title="The claim of a pod group does not have exactly one source",
    why="An entry names either a claim that all pods share, or a template.",
    source="k8s.io/kubernetes v1.36.1 pkg/apis/scheduling/v1alpha2/zz_generated.validations.go",
)


def validate_resource_claim(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateResourceClaim and ValidateResourceClaimTemplate would report, and changes of an
    immutable spec.
    """
    claim = reviewed_claim(subject)
    if claim is None:
        return
    yield from check_api_version(claim, subject, SERVED_VERSION, DEPRECATED_VERSION)
    if subject.attributes.operation is Operation.UPDATE:
        yield from _check_immutable_fields(claim, subject.typed_old(type(claim)))
        return
    asked = subject.once(requests_of_reviewed_claim)
    breaches = _breaches_without_misplaced_fields(claim_breaches(claim, asked, subject.cluster_view()), asked)
    yield from problems_of_breaches(breaches, _RULES_OF_BREACHES)
    yield from validate_requests(asked, claim.version)
    yield from _check_admin_access(asked, subject)
    for constraint in claim.claim_spec.devices.constraints:
        yield from _check_single_attribute(constraint)
    if not asked:
        message = "is empty, so pods that use the claim get no device"
        yield NO_REQUESTS.problem(claim.claim_spec.path("devices", "requests"), message, "add a request")


def _breaches_without_misplaced_fields(
    breaches: Iterable[Breach], asked: Items[DeviceRequestOfClaim]
) -> Iterator[Breach]:
    """Yield the breaches, except misplaced fields of a request.

    The rule request-kind reports all misplaced fields of a request in one problem.
    """
    reported_requests = {request.at for request in asked if request.kind == "none" and request.device_class}
    for breach in breaches:
        is_moved = breach.what == "unknownField" and breach.expected != ""
        if not (is_moved and breach.at[:-1] in reported_requests):
            yield breach


def _check_immutable_fields(
    claim: ResourceClaim | ResourceClaimTemplate, old: ResourceClaim | ResourceClaimTemplate
) -> Iterator[Problem]:
    """Yield the problems that ValidateResourceClaimUpdate and ValidateResourceClaimTemplateUpdate would report."""
    if claim.differs(old, "spec"):
        message = f"cannot change because the spec of a {claim.gvk.kind} is immutable"
        fix = "delete the object and create it again, or create an object with another name"
        yield IMMUTABLE.problem(claim.spec.at, message, fix)


def _check_admin_access(asked: Items[DeviceRequestOfClaim], subject: Subject) -> Iterator[Problem]:
    """Yield the problems that AuthorizedForAdmin of pkg/registry/resource/utils.go would report."""
    paths = [(*request.at, "adminAccess") for request in asked if request.has_admin_access]
    if not paths:
        return
    view = subject.cluster_view()
    why = why_no_admin_access(view)
    for path in paths:
        if why is None:
            yield ADMIN_ACCESS.problem(path, missing=view.missing_objects_by_field()[""])
        elif why:
            message = f"must not be set because the namespace {why}"
            fix = "use a namespace that has the label, or remove adminAccess"
            yield ADMIN_ACCESS.problem(path, message, fix)


def _check_single_attribute(constraint: DeviceConstraint) -> Iterator[Problem]:
    match, distinct = constraint.match_attribute, constraint.distinct_attribute
    if match and distinct:
        message = f"has matchAttribute `{match}` and distinctAttribute `{distinct}`, but Kubernetes reads only one"
        yield TWO_ATTRIBUTES.problem(constraint.at, message, "write two constraints")


_RULES_OF_BREACHES: Final = {
    "notQuantity": QUANTITY,
    "missing": REQUIRED,
    "tooMany": TOO_LARGE,
    "tooLong": TOO_LARGE,
    "duplicate": DUPLICATE,
    "badName": NAME_FORMAT,
    "notOneOf": UNSUPPORTED_VALUE,
    "allocationMode": UNSUPPORTED_VALUE,
    "forbidden": FORBIDDEN,
    "excluded": EXCLUDED,
    "parameters": PARAMETERS,
    "noAttribute": CONSTRAINT_ATTRIBUTE,
    "unknownRequest": UNKNOWN_REQUEST,
    "noCapacity": CAPACITY_NAME,
    "unknownField": UNKNOWN_FIELD,
}


def validate_requests(asked: Iterable[DeviceRequestOfClaim], version: str) -> Iterator[Problem]:
    """Yield the problems that validateDeviceRequest would report about requests and their alternatives."""
    for request in asked:
        if request.kind in ("none", "both"):
            yield _request_kind_problem(request, is_flat=version in FLAT_VERSIONS)
        for choice in request.self_and_alternatives:
            if choice.kind in ("exactly", "choice"):
                yield from _check_class_required(choice)
                yield from _check_allocation_mode(choice)
                yield from _check_device_count(choice)
            for selector in choice.selectors:
                yield from _check_selector(selector)


def _request_kind_problem(request: DeviceRequestOfClaim, *, is_flat: bool) -> Problem:
    exactly = "`deviceClassName`" if is_flat else "`exactly`"
    if request.kind == "both":
        message, fix = f"has both {exactly} and `firstAvailable`, but only one is allowed", "remove one of these"
    else:
        message, fix = f"has neither {exactly} nor `firstAvailable`", "set one of these"
        if request.device_class:
            where = "next to the name of the request" if is_flat else "under exactly"
            fix = f"in this API version, move deviceClassName and the other fields {where}"
    return REQUEST_KIND.problem(request.at, f"request `{request.name}` {message}", fix)


def _check_class_required(request: DeviceRequestOfClaim) -> Iterator[Problem]:
    if not request.device_class:
        message = "is not set, but every request must name a DeviceClass"
        yield CLASS_REQUIRED.problem((*request.at, "deviceClassName"), message, "name a DeviceClass")


def _check_allocation_mode(request: DeviceRequestOfClaim) -> Iterator[Problem]:
    mode = request.allocation_mode
    if mode not in ("ExactCount", "All") and not is_placeholder(mode):
        breach = Breach(what="allocationMode", at=(*request.at, "allocationMode"), given=mode)
        yield problem_of_breach(breach, _RULES_OF_BREACHES)


def _check_device_count(request: DeviceRequestOfClaim) -> Iterator[Problem]:
    """Yield the problems that validateDeviceAllocationMode would report."""
    if request.allocation_mode == "All" and request.count != 0:
        message = "must not be set with allocation mode All because this mode requests every device"
        fix = "remove the count, or set allocation mode ExactCount"
        yield COUNT.problem((*request.at, "count"), message, fix, request.count)
    elif request.allocation_mode == "ExactCount" and request.count <= 0:
        message = "must be at least 1 with allocation mode ExactCount"
        yield COUNT.problem((*request.at, "count"), message, "set 1 or more", request.count)


def _check_selector(selector: CheckedSelector) -> Iterator[Problem]:
    """Yield the problems that validateCELSelector would report: rules selector and selector-feature-gate."""
    if selector.errors.problem:
        yield SELECTOR.problem(selector.at, *describe_refusal(selector))
    elif selector.errors.gated:
        yield SELECTOR_FEATURE_GATE.problem(selector.at, *describe_feature_gate(), is_conditional=True)


def validate_pod_group(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the claims of a PodGroup."""
    group = subject.typed(PodGroup)
    yield from problems_of_breaches(shape_breaches(group), _RULES_OF_BREACHES)
    yield from _check_single_claim_source([group.spec])


def validate_workload(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the claims of a Workload's PodGroup templates."""
    workload = subject.typed(Workload)
    yield from problems_of_breaches(shape_breaches(workload), _RULES_OF_BREACHES)
    yield from _check_single_claim_source(workload.spec.pod_group_templates)


def _check_single_claim_source(groups: Iterable[PodGroupSpec]) -> Iterator[Problem]:
    """Report claims without a source, and claims with two sources."""
    for group in groups:
        for claim in group.resource_claims:
            if claim.has("resourceClaimName") == claim.has("resourceClaimTemplateName"):
                message, fix = "has no source", "set one of resourceClaimName and resourceClaimTemplateName"
                if claim.has("resourceClaimName"):
                    message = "has two sources, but only one is allowed"
                    fix = "keep one of resourceClaimName and resourceClaimTemplateName"
                yield GROUP_SOURCE.problem(claim.at, message, fix)
