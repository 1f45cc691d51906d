"""Kubernetes' own rules for the device claims of pods, for the kinds whose templates Kubernetes does not check.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go. That a claim has exactly one source is the
policy claims-exactly-one's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.pods.containers import containers_of
from webhook.facts.subject import Subject
from webhook.facts.values import names
from webhook.name_faults import label_fault, subdomain_fault
from webhook.names import dns1123_label, dns1123_subdomain
from webhook.paths import FieldPath, get
from webhook.placeholders import names_variable
from webhook.problem import Problem

problem: Final = Group("device-claims").problem
_CLAIMS: Final = ("spec", "resourceClaims")
_LABEL: Final = "use at most 63 lower-case letters, digits and dashes, such as gpu"
_MIRROR: Final = "kubernetes.io/config.mirror"


def validate_pod_claims(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of the claims of a pod and of its containers."""
    spec = subject.object.get("spec", {})
    claims = spec.get("resourceClaims", [])
    if claims:
        yield from _validate_declarations(claims, subject)
    yield from _validate_containers(claims, subject)
    for index, container in enumerate(subject.deadline.each(spec.get("ephemeralContainers", []))):
        if get(container, ("resources", "claims")):
            yield _ephemeral_container(index)
    if (spec.get("resources") or {}).get("claims"):
        message = "must not be set because claims are given to containers, not to a pod as a whole"
        yield problem(
            "pod-level",
            ("spec", "resources", "claims"),
            message,
            "list the claims in resources.claims of the containers",
        )


def _validate_declarations(claims: Sequence[JSON], subject: Subject) -> Iterator[Problem]:
    """The claims of a pod."""
    if subject.template_of is None and _MIRROR in get(subject.object, ("metadata", "annotations"), {}):
        yield _static_pod()
    for index, claim in enumerate(subject.deadline.each(claims)):
        yield from validate_pod_resource_claim(claim, (*_CLAIMS, index))
    yield from validate_claim_names(subject)


def _validate_containers(claims: Sequence[JSON], subject: Subject) -> Iterator[Problem]:
    """The claims that containers take."""
    taking = [each for each in subject.once(containers_of) if (each.value.get("resources") or {}).get("claims")]
    declared = frozenset(names(claims)) if taking else ()
    is_open = any(map(names_variable, declared))  # a name that is filled in later may be any
    for container in taking:
        taken, path = container.claims(), (*container.path, "resources", "claims")
        yield from validate_container_resource_claims(taken, path, subject)
        if not is_open:
            yield from validate_declared(taken, path, declared, subject)


def _static_pod() -> Problem:
    message = f"must not be set because annotation {_MIRROR} marks a static pod, and a static pod cannot have claims"
    return problem(
        "static-pod", _CLAIMS, message, "remove the claims, or remove the annotation if the pod is not static"
    )


def _ephemeral_container(index: int) -> Problem:
    path = ("spec", "ephemeralContainers", index, "resources")
    message = "must not be set because an ephemeral container uses the resources that its pod already has"
    return problem("ephemeral-container", path, message, "remove the claims")


def validate_pod_resource_claim(claim: JSON, path: FieldPath) -> Iterator[Problem]:
    """As validatePodResourceClaim: the names of one entry of spec.resourceClaims."""
    name = claim.get("name", "")
    if not name:
        message = "must be set because containers refer to the claim by its name"
        yield problem("claim-name", (*path, "name"), message, "set a name such as gpu")
    elif not names_variable(name) and dns1123_label(name):
        message = f"cannot be the name of a claim because {label_fault(name)}"
        yield problem("claim-name", (*path, "name"), message, _LABEL, name)
    for field in ("resourceClaimName", "resourceClaimTemplateName"):
        named = claim.get(field, "")
        if named and not names_variable(named) and dns1123_subdomain(named):
            kind = "ResourceClaim" if field == "resourceClaimName" else "ResourceClaimTemplate"
            message = f"cannot be the name of a {kind} because {subdomain_fault(named)}"
            yield problem(
                "source-name", (*path, field), message, f"write the name of a {kind} of this namespace", named
            )


def validate_claim_names(subject: Subject) -> Iterator[Problem]:
    """As gatherPodResourceClaimNames: the entries of a list have different names, in a patch as well."""
    first: dict[str, int] = {}
    for index, name in enumerate(subject.deadline.each(names(get(subject.object, _CLAIMS)))):
        if name and first.setdefault(name, index) != index:
            message = f"is also the name of the claim at index {first[name]}"
            yield problem("claim-name-twice", (*_CLAIMS, index, "name"), message, "give each claim its own name", name)


def validate_container_resource_claims(claims: Sequence[JSON], path: FieldPath, subject: Subject) -> Iterator[Problem]:
    """As validateContainerResourceClaims: a container takes each claim once, whole or each of its requests once."""
    taken: dict[str, set[str]] = {}
    for index, claim in enumerate(subject.deadline.each(claims)):
        name, request = claim.get("name", ""), claim.get("request", "")
        before = taken.setdefault(name, set())
        if not name:
            fix = "set name to the name of an entry of spec.resourceClaims"
            yield problem("container-claim-name", (*path, index), "must have the name of a claim", fix)
        elif not names_variable(request) and request and dns1123_label(request):
            message = f"cannot be the name of a request because {label_fault(request)}"
            yield problem(
                "request-name", (*path, index, "request"), message, "write the name of a request of the claim", request
            )
        elif before and (not request or not before.isdisjoint((request, ""))):
            what = f"request `{request}` of claim" if request else "claim"
            held = "the whole claim" if "" in before else "this request" if request else "a request of this claim"
            message = f"lists {what} `{name}`, but an entry before it in this container already lists {held}"
            yield problem("taken-twice", (*path, index), message, "remove one of the two entries")
        before.add(request)


def validate_declared(
    claims: Sequence[JSON], path: FieldPath, declared: Collection[str], subject: Subject
) -> Iterator[Problem]:
    """As validateResourceClaimNames: a container takes claims of its pod."""
    for index, name in enumerate(subject.deadline.each(names(claims))):
        if name and name not in declared and not names_variable(name):
            near = subject.view().nearest(name, declared)
            fix = (
                f"write `{near}` if that is meant, or declare the claim there"
                if near
                else "declare the claim there, or correct the name"
            )
            message = "is not declared in spec.resourceClaims, but a container can use only the claims of its pod"
            yield problem("undeclared", (*path, index, "name"), message, fix, name)
