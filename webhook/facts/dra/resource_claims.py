"""What Kubernetes refuses of claims, templates, the claims of pod groups, device classes and taint rules.

The API server refuses these too where it serves the version; a manifest that is checked before there is a cluster, or
for another release, has nobody else. tests/data/dra/verdicts.tsv holds the rules to kube-apiserver 1.36.1. Source:
k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON, Operation
from webhook.facts.dra.api_versions import validate_api_version
from webhook.facts.dra.claims import notes
from webhook.facts.dra.field_problems import problems
from webhook.facts.dra.pod_claims import SPECS, admin_allowed
from webhook.facts.dra.requests import constraints, requests, selectors, version_of
from webhook.facts.pods.containers import text
from webhook.facts.subject import Subject
from webhook.paths import FieldPath, get, render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

CLAIMS: Final = "resource-claims"
CLASSES: Final = "device-classes"
_FLAT: Final = frozenset(("v1alpha3", "v1beta1"))


def validate_resource_claim(subject: Subject) -> Iterator[Problem]:
    """As ValidateResourceClaim and ValidateResourceClaimTemplate: the spec is checked once, and stays as it is."""
    obj, kind = subject.object, subject.group_kind[1]
    yield from validate_api_version(subject, CLAIMS)
    if subject.attributes.operation is Operation.UPDATE:
        yield from _immutable(subject, kind)
        return
    at, version = SPECS[kind], version_of(obj)
    spec = get(obj, at)
    asked = requests(spec, at, version, subject.deadline)
    yield from problems(CLAIMS, _untold(notes(obj, at, asked, subject.view()), asked))
    for request in subject.deadline.each(asked):
        yield from _validate_request(request, subject, is_flat=version in _FLAT)
    yield from _admin_access(asked, subject)
    yield from _two_attributes(constraints(spec, at))
    if not asked:
        message = "is empty, so pods that use the claim get no device"
        yield _problem("no-requests", render((*at, "devices", "requests")), message, "add a request")


def _untold(listed: Sequence[JSON], asked: Sequence[JSON]) -> Iterator[JSON]:
    """Notes without misplaced fields of requests of which one sentence says where all fields belong."""
    told = {request["path"] for request in asked if request["kind"] == "none" and request["deviceClass"]}
    for note in listed:
        is_moved = note["what"] == "unknownField" and note["expected"] != ""
        if not (is_moved and note["path"].rpartition(".")[0] in told):
            yield note


def _problem(rule: str, path: str, message: str, fix: str = "", *, found: str = "", group: str = CLAIMS) -> Problem:
    return Problem(code=f"{group}/{rule}", path=path, message=message, fix=fix, found=found)


def _immutable(subject: Subject, kind: str) -> Iterator[Problem]:
    """As ValidateResourceClaimUpdate and ValidateResourceClaimTemplateUpdate."""
    if subject.object.get("spec") != get(subject.old_object, ("spec",)):
        fix = "delete the object and create it again, or create one with another name"
        yield _problem("immutable", "spec", f"cannot change because the spec of a {kind} is immutable", fix)


def _validate_request(request: JSON, subject: Subject, *, is_flat: bool) -> Iterator[Problem]:
    """As validateDeviceRequest, with its alternatives."""
    if request["kind"] in ("none", "both"):
        yield _one_of(request, is_flat=is_flat)
    for each in subject.deadline.each([request, *request["choices"]]):
        if each["kind"] in ("exactly", "choice"):
            if each["deviceClass"] == "":
                message = "must be set because every request names the DeviceClass of its devices"
                yield _problem("class-required", f"{each['path']}.deviceClassName", message, "name a DeviceClass")
            yield from _allocation(each)
        yield from _selectors(each["selectors"], CLAIMS)


def _one_of(request: JSON, *, is_flat: bool) -> Problem:
    exactly = "`deviceClassName`" if is_flat else "`exactly`"
    if request["kind"] == "both":
        message, fix = f"must not have both {exactly} and `firstAvailable`", "keep one of them"
    else:
        message, fix = f"must have one of {exactly} and `firstAvailable`", "set one of them"
        if request["deviceClass"]:
            where = "beside its name" if is_flat else "under exactly"
            fix = f"in this version, write deviceClassName and all the rest {where}"
    return _problem("request-kind", request["path"], f"request `{request['name']}` {message}", fix)


def _allocation(asked: JSON) -> Iterator[Problem]:
    """As validateDeviceAllocationMode."""
    mode, count = asked["allocationMode"], asked["count"]
    if mode not in ("ExactCount", "All"):
        if not is_placeholder(mode):
            path = f"{asked['path']}.allocationMode"
            yield _problem("unsupported-value", path, "must be ExactCount or All", "set one of them", found=f"`{mode}`")
    elif mode == "All" and count != 0:
        message = "must not be set with allocation mode All because that mode asks for every device"
        yield _problem(
            "count",
            f"{asked['path']}.count",
            message,
            "remove the count, or set allocation mode ExactCount",
            found=f"`{count}`",
        )
    elif mode == "ExactCount" and count <= 0:
        message = "must be at least 1 with allocation mode ExactCount"
        yield _problem("count", f"{asked['path']}.count", message, "set 1 or more", found=f"`{count}`")


def _selectors(listed: Sequence[JSON], group: str) -> Iterator[Problem]:
    """As validateCELSelector."""
    for each in listed:
        if each["problem"]:
            message = f"{each['problem'].partition(chr(10))[0]}, so no device is ever selected"
            yield _problem("selector", each["path"], message, "correct the expression", group=group)
        elif each["gated"]:
            gated = each["gated"].partition("\n")[0]
            message = (
                "needs the feature gate DRAListTypeAttributes, which is off by default; without the gate, the "
                f"expression {gated}"
            )
            fix = "correct the expression, or ask the administrator of the cluster to turn the gate on"
            yield _problem("selector-feature-gate", each["path"], message, fix, group=group)


def _admin_access(asked: Sequence[JSON], subject: Subject) -> Iterator[Problem]:
    """As AuthorizedForAdmin of pkg/registry/resource/utils.go."""
    admin = [each for each in asked if each["adminAccess"]]
    if not admin:
        return
    view = subject.view()
    allowed = admin_allowed(view)
    for each in () if allowed else subject.deadline.each(admin):
        path = f"{each['path']}.adminAccess"
        if allowed is None:
            yield Problem(code=f"{CLAIMS}/admin-access", path=path, missing=view.missing()[""])
        else:
            label = 'the label resource.kubernetes.io/admin-access: "true"'
            message = f"must not be set because the namespace lacks {label}"
            yield _problem(
                "admin-access", path, message, "use a namespace that has the label, or leave adminAccess out"
            )


def _two_attributes(listed: Sequence[JSON]) -> Iterator[Problem]:
    for each in listed:
        if each["matchAttribute"] and each["distinctAttribute"]:
            both = f"matchAttribute `{each['matchAttribute']}` and distinctAttribute `{each['distinctAttribute']}`"
            yield _problem(
                "two-attributes",
                each["path"],
                f"has {both}, but Kubernetes ignores one of them",
                "make two constraints",
            )


def validate_group_claims(subject: Subject) -> Iterator[Problem]:
    """The claims of a PodGroup or a Workload: scheduling/v1alpha2/zz_generated.validations.go."""
    yield from problems(CLAIMS, notes(subject.object, (), (), subject.view()))


def validate_device_class(subject: Subject) -> Iterator[Problem]:
    """As ValidateDeviceClass."""
    spec: FieldPath = ("spec",)
    yield from validate_api_version(subject, CLASSES)
    yield from problems(CLASSES, notes(subject.object, (), (), subject.view()))
    yield from _selectors(selectors(get(subject.object, spec), spec, subject.deadline), CLASSES)


def validate_device_taint_rule(subject: Subject) -> Iterator[Problem]:
    """As ValidateDeviceTaintRule, and rules that put a taint on every device.

    k8s.io/api v0.36.1 resource/v1beta2 DeviceTaintRuleSpec: without a selector, or with an empty one.
    """
    yield from problems(CLASSES, notes(subject.object, (), (), subject.view()))
    effect = text(get(subject.object, ("spec", "taint", "effect")))
    selector = get(subject.object, ("spec", "deviceSelector"))
    is_open = all(get(selector, (part,)) is None for part in ("driver", "pool", "device"))
    if is_open and effect not in ("", "None"):
        evicts = " and evicts every pod that uses one" if effect == "NoExecute" else ""
        message = f"does not restrict the devices, so the taint is put on every device of the cluster{evicts}"
        fix = "set driver, pool or device, or try effect None first"
        yield _problem("every-device", "spec.deviceSelector", message, fix, group=CLASSES)
