"""How pods use their claims: by no container, many pods of one claim, or without the scheduler.

Which claims a network driver gives to the pod as a whole, nobody can see: no container names them
(kubernetes-sigs/dranet examples), so that a claim for neither GPUs nor other accelerators may well stay unnamed. One
that was not found is taken for one of a network where the containers have their devices from device plugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON, Operation
from webhook.facts.dra.pod_claim_validation import problem
from webhook.facts.gpu.requested_devices import requests_devices
from webhook.facts.subject import Subject
from webhook.facts.values import text
from webhook.paths import get
from webhook.problem import Problem

_SHARED_ON_PURPOSE: Final = frozenset(("channel", "nic"))
"""Devices that the pods of a node share."""
_STAYS_IDLE: Final = frozenset(("device", "slice"))
USE_TEMPLATE: Final = (
    "create a ResourceClaimTemplate, and name it in resourceClaimTemplateName instead of resourceClaimName"
)
OWN_DEVICES: Final = f"{USE_TEMPLATE}, so that each pod gets its own devices"
_MOST_PODS: Final = 256
"""k8s.io/api v0.36.1 resource/v1 types.go ResourceClaimReservedForMaxSize."""


def validate_node_name(subject: Subject) -> Iterator[Problem]:
    """A new pod with claims that is bound by hand: the scheduler alone allocates claims."""
    node = text(get(subject.object, ("spec", "nodeName")))
    if node and subject.attributes.operation is Operation.CREATE:
        message = (
            "must not be set on a pod with claims because only the scheduler allocates claims, so the pod never starts"
        )
        fix = "use the node selector kubernetes.io/hostname instead"
        yield problem("node-name", ("spec", "nodeName"), message, fix, node)


def validate_use(claims: Sequence[JSON], subject: Subject) -> Iterator[Problem]:
    """Claims that no container uses, and those that all pods of a template share."""
    for claim in subject.deadline.each(claims):
        if not claim["users"] and may_stay_idle(claim) and (claim["found"] or not subject.once(requests_devices)):
            message = f"no container uses claim `{claim['name']}`{idle(claim)}"
            yield problem(
                "unused",
                claim["path"],
                message,
                "name the claim in resources.claims of a container, or remove the claim",
            )
        if subject.template_of is not None and (subject.pods or 1) > 1 and _is_shared(claim):
            yield _shared(claim, subject.pods or 1)


def may_stay_idle(claim: JSON) -> bool:
    """Whether devices of a claim stay idle where no container names it; of a claim that is not known they may."""
    requests = (each for request in claim["requests"] for each in (request, *request["choices"]))
    return not claim["found"] or any(each["deviceKind"] in _STAYS_IDLE for each in requests)


def idle(claim: JSON) -> str:
    """What comes of a claim that no container names, as far as it is known: the end of a sentence."""
    if claim["found"]:
        return ", so the devices of the claim are allocated and stay idle"
    if claim["absent"] or claim["promised"] or not claim["reference"]:
        return ""
    source = f"{claim['kind']} `{claim['reference']}`"
    return f", so any GPUs of the claim stay idle (whether there are any is unknown because {source} was not found)"


def _is_shared(claim: JSON) -> bool:
    if claim["source"] != "claim":
        return False
    return not (claim["found"] and all(each["deviceKind"] in _SHARED_ON_PURPOSE for each in claim["requests"]))


def _shared(claim: JSON, pods: int) -> Problem:
    message = f"{pods} pods share ResourceClaim `{claim['reference']}` and its devices"
    if pods > _MOST_PODS:
        message += f", but a claim serves at most {_MOST_PODS} pods"
    return problem("shared", claim["path"], message, OWN_DEVICES)
