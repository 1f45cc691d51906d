"""What the claims of pods refer to: claims, templates, device classes, requests, and GPUs that are asked for twice.

An object counts as absent only where it is known to be: in a whole cluster, or where files have others of its kind.
Otherwise a rule that needs it was not checked. Drivers bring device classes, and a ComputeDomain its template: those
are taken for there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON, GroupVersionKind
from webhook.facts.dra.pod_claim_validation import problem
from webhook.facts.dra.pod_claims import CLAIM, TEMPLATE, admin_allowed
from webhook.facts.dra.resolved import CLASS, Classes
from webhook.facts.gpu import devices
from webhook.facts.pods import amounts
from webhook.facts.pods.containers import Amounts, Container, amounts_of
from webhook.facts.subject import Subject
from webhook.facts.values import text
from webhook.paths import render
from webhook.problem import MissingObject, Problem

IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
_KINDS: Final = {gvk.kind: gvk for gvk in (CLAIM, TEMPLATE)}


def validate_claims(claims: Sequence[JSON], subject: Subject) -> Iterator[Problem]:
    """Claims whose object or class is not there, or which the namespace does not allow."""
    for claim in subject.deadline.each(claims):
        if claim["absent"]:
            yield _absent_claim(claim)
        elif claim["found"]:
            yield from _classes(claim, subject)
            yield from _admin_access(claim, subject)
        elif claim["kind"] and subject.namespace and not claim["promised"]:
            yield _unchecked(
                "claim-exists", claim["path"], _missing(subject, _KINDS[claim["kind"]], claim["reference"])
            )


def _unchecked(rule: str, path: str, missing: tuple[MissingObject, ...]) -> Problem:
    return Problem(code=f"device-claims/{rule}", path=path, missing=missing)


def _missing(subject: Subject, gvk: GroupVersionKind, name: str) -> tuple[MissingObject, ...]:
    """An object that is not there, with the reason."""
    view = subject.view()
    view.get(gvk, name, namespaced=gvk != CLASS)
    return view.all_missing()


def _absent_claim(claim: JSON) -> Problem:
    where, fix = "does not exist in this namespace", f"create the {claim['kind']}, or correct the name"
    if claim["nearest"]:
        fix = f"write `{claim['nearest']}` if that is meant, or create the {claim['kind']}"
    elif claim["elsewhere"]:
        where = f"exists only in {', '.join(f'`{name}`' for name in claim['elsewhere'])} and not in this namespace"
        fix = f"create the {claim['kind']} in this namespace"
    message = f"{claim['kind']} `{claim['reference']}` {where}, so the pods stay Pending"
    return problem("claim-exists", claim["path"], message, fix)


def _classes(claim: JSON, subject: Subject) -> Iterator[Problem]:
    for request in subject.deadline.each(claim["requests"]):
        for each in (request, *request["choices"]):
            asks = f"{claim['kind']} `{claim['reference']}` asks for DeviceClass"
            yield from _class(each, asks, claim["path"], subject)


def _class(state: JSON, asks: str, path: str, subject: Subject) -> Iterator[Problem]:
    """The DeviceClass that something asks for."""
    name = state["deviceClass"]
    if state["classAbsent"]:
        near = (
            f"write `{state['nearestClass']}` in its place if that is meant, or ask the administrator to install"
            if state["nearestClass"]
            else "ask the administrator to install"
        )
        message = f"{asks} `{name}`, which does not exist, so the pods stay Pending"
        yield problem("class-exists", path, message, f"{near} the driver that brings the class")
    elif name and not state["classFound"] and not devices.is_published(name):
        yield _unchecked("class-exists", path, _missing(subject, CLASS, name))


def _admin_access(claim: JSON, subject: Subject) -> Iterator[Problem]:
    """As AuthorizedForAdmin, which is asked again for every claim that is made from a template."""
    if not claim["adminAccess"] or claim["source"] != "template":
        return
    view = subject.view()
    allowed = admin_allowed(view)
    if allowed is None:
        yield _unchecked("admin-access", claim["path"], view.missing()[""])
    elif not allowed:
        label = 'the label resource.kubernetes.io/admin-access: "true"'
        asks = f"ResourceClaimTemplate `{claim['reference']}` asks for admin access"
        message = f"{asks}, but this namespace lacks {label}, so no claim is created, and the pods stay Pending"
        yield problem("admin-access", claim["path"], message, "use a namespace with that label")


def validate_requests(references: Sequence[JSON], claims: Sequence[JSON], subject: Subject) -> Iterator[Problem]:
    """Requests that containers name and their claims do not have."""
    first = {claim["name"]: claim for claim in reversed(claims)}
    for each in subject.deadline.each(references):
        path = f"{each['path']}.request"
        if each["resolved"] and not each["requestFound"]:
            message = f"is not a request of claim `{each['name']}`, so the container gets no device"
            near = each["nearestRequest"]
            fix = f"write `{near}` if that is meant" if near else "write the name of a request of the claim"
            yield problem("request-exists", path, message, fix, each["request"])
        elif each["request"] and each["declared"] and not each["resolved"] and subject.namespace:
            claim = first[each["name"]]
            if claim["kind"] and not claim["absent"]:
                missing = _missing(subject, _KINDS[claim["kind"]], claim["reference"])
                yield _unchecked("request-exists", path, missing)


def validate_gpu_is_asked_for_once(
    listed: Sequence[Container], claims: Sequence[JSON], subject: Subject
) -> Iterator[Problem]:
    """Containers that ask for the same vendor's GPUs twice: by a claim and as an extended resource.

    NICs and ComputeDomain channels with a GPU are how multi-node jobs are meant to be written.
    """
    deadline = subject.deadline
    by_name = {claim["name"]: _given(claim) for claim in claims if claim["gpu"]}
    for container in listed if by_name else ():
        named = (text(each.get("name")) for each in deadline.paced(container.claims()) if isinstance(each, dict))
        claimed = [name for name in named if name in by_name]
        asked = container.amounts("requests") | container.amounts("limits") if claimed else {}
        same: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
        for name in claimed:
            resources, vendors = key = by_name[name]
            if key not in same:
                deadline.spend(len(asked))
                same[key] = [each for each in asked if each in resources or _vendor(each) in vendors]
            for resource in deadline.paced(same[key]):
                message = (
                    f"uses claim `{name}` and requests `{resource}`, which are the same kind of GPU, so the container "
                    "gets both"
                )
                yield problem(
                    "gpu-asked-twice", render(container.path), message, "keep either the claim or the request"
                )


def _given(claim: JSON) -> tuple[frozenset[str], frozenset[str]]:
    """The extended resources that stand for a claim's GPUs, and the vendors of these."""
    asked = [each for request in claim["requests"] for each in (request, *request["choices"]) if each["gpu"]]
    return frozenset(each["extendedResource"] for each in asked), frozenset(each["vendor"] for each in asked) - {""}


def _vendor(name: str) -> str:
    """Whose devices a resource counts, "" for what is none."""
    known = devices.resource(name)
    return known.vendor if known.kind in devices.COUNTED else ""


def validate_class_resources(subject: Subject) -> Iterator[Problem]:
    """Extended resources that name a DeviceClass (KEP-5004), which the API server checks for nothing."""
    for each in subject.once(amounts_of):
        for name in subject.deadline.each(each.names):
            if name.startswith(IMPLICIT):
                yield from _class_amount(name, each, subject)


def _class_amount(name: str, each: Amounts, subject: Subject) -> Iterator[Problem]:
    """What is wrong with an amount that names a DeviceClass."""
    limits, requests = each.limits, each.requests
    path = render((*each.container.path, "resources", "limits" if name in limits else "requests", name))
    device_class = name.removeprefix(IMPLICIT)
    state = {"deviceClass": device_class, **subject.once(_known_classes).state(device_class)}
    yield from _class(state, "asks for DeviceClass", path, subject)
    if not state["classAbsent"] and not _is_whole(limits.get(name), requests.get(name)):
        message, fix = "must be a whole number because a device cannot be divided", "set a whole number such as 1"
        if name not in limits:
            message, fix = (
                "must be in limits too because a device cannot be overcommitted",
                "set the limit to the request",
            )
        elif name in requests and str(requests[name]) != str(limits[name]):
            message = f"must equal the request {amounts.shown(requests[name])} because a device cannot be overcommitted"
            fix = "set the limit and the request to the same whole number"
        yield problem("class-amount", path, message, fix, shown=amounts.shown(limits.get(name, requests.get(name))))


def _known_classes(subject: Subject) -> Classes:
    return Classes(subject.view())


def _is_whole(limit: JSON, request: JSON) -> bool:
    """Whether there is a limit, in devices, that the request equals."""
    if limit is None or (request is not None and str(request) != str(limit)):
        return False
    amount = amounts.read(amounts.text_of(limit))
    return amount is not None and amount.is_whole()
