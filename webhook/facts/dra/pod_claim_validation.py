"""Kubernetes' own rules for the device claims of pods, for the kinds whose templates Kubernetes does not check.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go. Exactly one source and unique, declared names
are the policy claims-exactly-one's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.pods.containers import items, mapping, text
from webhook.facts.subject import Subject
from webhook.names import dns1123_label, dns1123_subdomain
from webhook.paths import FieldPath, get, render
from webhook.placeholders import names_variable
from webhook.problem import Problem

_LABEL: Final = "must be at most 63 lower case letters, digits and dashes, starting and ending with a letter or digit"
_OBJECT: Final = "must be lower case letters, digits, dashes and dots, starting and ending with a letter or digit"
_MIRROR: Final = "kubernetes.io/config.mirror"


def problem(rule: str, path: FieldPath | str, message: str, fix: str, found: str = "") -> Problem:
    """A problem of this group."""
    where = path if isinstance(path, str) else render(path)
    return Problem(code=f"device-claims/{rule}", path=where, message=message, fix=fix, found=found)


def validate_pod_claims(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of the claims of a pod and of its containers."""
    spec, each = mapping(subject.object.get("spec")), subject.deadline.each
    claims = items(spec.get("resourceClaims"))
    if claims and subject.template_of is None and _MIRROR in mapping(get(subject.object, ("metadata", "annotations"))):
        yield _static_pod()
    for index, claim in enumerate(each(claims)):
        yield from validate_pod_resource_claim(claim or {}, ("spec", "resourceClaims", index))
    for part in ("containers", "initContainers"):
        for index, container in enumerate(each(items(spec.get(part)))):
            if taken := items(get(container, ("resources", "claims"))):
                path = ("spec", part, index, "resources", "claims")
                yield from validate_container_resource_claims(taken, path, subject)
    for index, container in enumerate(each(items(spec.get("ephemeralContainers")))):
        if get(container, ("resources", "claims")):
            yield _ephemeral_container(index)
    if get(spec, ("resources", "claims")):
        message = "must not be set because claims are given to containers, not to a pod as a whole"
        yield problem("pod-level", ("spec", "resources", "claims"), message, "give the claims to containers")


def _static_pod() -> Problem:
    message = "must not be set because the kubelet refuses claims of static pods"
    return problem("static-pod", ("spec", "resourceClaims"), message, "create the pod through the API server")


def _ephemeral_container(index: int) -> Problem:
    path = ("spec", "ephemeralContainers", index, "resources")
    message = "must not be set because an ephemeral container uses what the pod has"
    return problem("ephemeral-container", path, message, "remove the claims")


def validate_pod_resource_claim(claim: JSON, path: FieldPath) -> Iterator[Problem]:
    """As validatePodResourceClaim: the names of one entry of spec.resourceClaims."""
    if not isinstance(claim, dict) or not isinstance(name := claim.get("name"), str | None):
        return  # of another type: what is no claim is told once, and not here
    if not name:
        message = "must be set because containers refer to the claim by its name"
        yield problem("claim-name", (*path, "name"), message, "set a name such as gpu")
    elif not names_variable(name) and dns1123_label(name):
        yield problem("claim-name", (*path, "name"), _LABEL, "write a name such as gpu", f"`{name}`")
    for field in ("resourceClaimName", "resourceClaimTemplateName"):
        named = text(claim.get(field))
        if named and not names_variable(named) and dns1123_subdomain(named):
            fix = f"write the name of a {'ResourceClaim' if field == 'resourceClaimName' else 'ResourceClaimTemplate'}"
            yield problem("source-name", (*path, field), _OBJECT, fix, f"`{named}`")


def validate_container_resource_claims(claims: list[JSON], path: FieldPath, subject: Subject) -> Iterator[Problem]:
    """As validateContainerResourceClaims: a container takes each claim once, whole or each of its requests once."""
    taken: dict[str, set[str]] = {}
    for index, claim in enumerate(subject.deadline.each(claims)):
        given = {} if claim is None else claim
        if not isinstance(given, dict) or not isinstance(given.get("name"), str | None):
            continue  # of another type
        name, request = given.get("name") or "", text(given.get("request"))
        before = taken.setdefault(name, set())
        if not name:
            fix = "set it to the name of an entry of spec.resourceClaims"
            yield problem("container-claim-name", (*path, index), "must have the name of a claim", fix)
        elif not names_variable(request) and request and dns1123_label(request):
            message = f"{_LABEL}, as every request of a claim"
            yield problem("request-name", (*path, index, "request"), message, "name a request", f"`{request}`")
        elif before and (not request or not before.isdisjoint((request, ""))):
            message = f"takes claim `{name}`, which this container already takes whole or with the same request"
            yield problem("taken-twice", (*path, index), message, "take each claim, or each of its requests, once")
        before.add(request)
