"""How pods use their claims: by no container, many pods of one claim, or without the scheduler.

Which claims a network driver gives to the pod as a whole, nobody can see: no container names them
(kubernetes-sigs/dranet examples), so that a claim for neither GPUs nor other accelerators may well stay unnamed. One
that was not found is taken for one of a network where the containers have their devices from device plugins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import Operation
from webhook.facts.dra.groups import DEVICE_CLAIMS_ADVICE
from webhook.facts.dra.pod_claims import PodClaim, pod_claims
from webhook.facts.gpu.extended_resources import requests_devices
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.pods import Pod

NODE_NAME: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/node-name",
    title="A pod with claims is bound by the scheduler.",
    why="Only the scheduler allocates claims, and the kubelet waits for them without end.",
    fails="start",
)
SHARED: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/shared",
    title="The pods of a template have GPUs and other whole devices of their own.",
    why=(
        "A ResourceClaim that a template names is one claim, whose devices all its pods share, at most 256 of them. "
        "Channels, network devices, admin access, shares of a capacity and GPUs with a strategy of sharing are meant "
        "to be shared."
    ),
    source="k8s.io/api v0.36.1 resource/v1 types.go ResourceClaimReservedForMaxSize",
    severity="low",
)
UNUSED: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/unused",
    title="A claim is used by a container.",
    why="Its devices, where the claim asks for some, are allocated and reserved for the pod, and stay idle.",
    severity="low",
)

_STAYS_IDLE: Final = frozenset(("device", "slice"))
USE_TEMPLATE: Final = (
    "create a ResourceClaimTemplate, and name it in resourceClaimTemplateName instead of resourceClaimName"
)
OWN_DEVICES: Final = f"{USE_TEMPLATE}, so that each pod gets its own devices"
_MOST_PODS: Final = 256
"""k8s.io/api v0.36.1 resource/v1 types.go ResourceClaimReservedForMaxSize."""


def validate_node_name(subject: Subject) -> Iterator[Problem]:
    """A new pod with claims that is bound by hand: the scheduler alone allocates claims."""
    pod = subject.typed(Pod).spec
    if pod.node_name and subject.attributes.operation is Operation.CREATE:
        message = (
            "must not be set on a pod with claims because only the scheduler allocates claims, so the pod never starts"
        )
        fix = "use the node selector kubernetes.io/hostname instead"
        yield NODE_NAME.problem(pod.path("nodeName"), message, fix, pod.node_name)


def validate_use(subject: Subject) -> Iterator[Problem]:
    """Claims that no container uses, and those that all pods of a template share."""
    for claim in subject.once(pod_claims).claims:
        yield from _unused(claim, subject)
        if subject.template_of is not None:
            yield from _shared(claim, subject.pods or 1)


def _unused(claim: PodClaim, subject: Subject) -> Iterator[Problem]:
    if not claim.users and may_stay_idle(claim) and (claim.is_found or not subject.once(requests_devices)):
        message = f"no container uses claim `{claim.name}`{idle(claim)}"
        fix = "name the claim in resources.claims of a container, or remove the claim"
        yield UNUSED.problem(claim.at, message, fix)


def may_stay_idle(claim: PodClaim) -> bool:
    """Whether devices of a claim stay idle where no container names it; of a claim that is not known they may."""
    return not claim.is_found or any(request.device.kind in _STAYS_IDLE for request in claim.requests)


def idle(claim: PodClaim) -> str:
    """What comes of a claim that no container names, as far as it is known: the end of a sentence."""
    if claim.is_found:
        return ", so the devices of the claim are allocated and stay idle"
    if claim.absence.is_absent or claim.absence.is_promised or not claim.reference:
        return ""
    source = f"{claim.kind} `{claim.reference}`"
    return f", so any GPUs of the claim stay idle (whether there are any is unknown because {source} was not found)"


def _shared(claim: PodClaim, pods: int) -> Iterator[Problem]:
    """A claim by name: whether its devices are meant to be shared is known only where the claim was found."""
    if pods <= 1 or claim.source != "claim":
        return
    is_exclusive = claim.is_found and claim.contents.is_exclusive
    message = f"{pods} pods share ResourceClaim `{claim.reference}` and its devices"
    if pods > _MOST_PODS:
        message += f", but a claim serves at most {_MOST_PODS} pods"
        yield SHARED.problem(claim.at, message, OWN_DEVICES if is_exclusive else USE_TEMPLATE)
    elif is_exclusive:
        yield SHARED.problem(claim.at, message, OWN_DEVICES)
