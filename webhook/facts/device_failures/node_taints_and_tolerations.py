"""Tolerations that keep pods on nodes and devices that have failed.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/; device taints: KEP-5055. A toleration
without a key and with the operator Exists matches every taint.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from webhook.facts.device_failures.types import DEVICE_FAILURES
from webhook.facts.dra.types import DeviceSubRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimTemplate
from webhook.facts.gpu.device_pods import DevicePods, read_device_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.pods import Toleration

TOLERATES_EVERYTHING: Final = DEVICE_FAILURES.rule(
    "device-failures/tolerates-everything",
    level="advice",
    title="Pods with devices tolerate every taint",
    why="Kubernetes and device health controllers use taints to move pods away from lost nodes and broken devices.",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
)
LOST_NODE: Final = DEVICE_FAILURES.rule(
    "device-failures/lost-node",
    title="Pods with devices stay on a lost node for ever",
    why=(
        "A toleration of not-ready or unreachable without tolerationSeconds keeps the pod on a lost node until a "
        "person deletes the pod."
    ),
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions",
)
DEVICE_TAINTS: Final = DEVICE_FAILURES.rule(
    "device-failures/device-taints",
    title="The request tolerates every device taint",
    why=(
        "Drivers taint unhealthy devices. A request that tolerates every taint gets these devices, and its pods are "
        "not evicted from them."
    ),
    source="k8s.io/api v0.36.1 resource/v1 types.go DeviceToleration",
)

NAME_TAINTS: Final = "write one toleration for each taint that is meant, with its key"
_EVICTING: Final = ("", "NoExecute")
_NODE_FAILURES: Final = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))


def advise_tolerations(subject: Subject) -> Iterator[Problem]:
    """Warn of tolerations with which pods with devices stay on a node that failed."""
    for pods in subject.once(read_device_workload).device_pods:
        for toleration in pods.spec.tolerations:
            if _tolerates_without_time_limit(toleration):
                yield from _check_lasting_toleration(toleration, pods)


def _check_lasting_toleration(toleration: Toleration, pods: DevicePods) -> Iterator[Problem]:
    at, key = pods.locate(toleration.at), toleration.key
    if not key:
        message = "tolerates every taint, so the pods stay on nodes that are gone or have failed devices"
        yield TOLERATES_EVERYTHING.problem(at, message, NAME_TAINTS)
    elif key in _NODE_FAILURES:
        message = f"tolerates `{key}` without tolerationSeconds, so a pod on a lost node is never replaced"
        effect = "" if toleration.effect else "effect NoExecute and "
        yield LOST_NODE.problem(at, message, f"set {effect}tolerationSeconds, such as to 300")


def _tolerates_without_time_limit(toleration: Toleration) -> bool:
    matches_all = toleration.operator == "Exists" or bool(toleration.key)
    return matches_all and toleration.effect in _EVICTING and toleration.toleration_seconds is None


def advise_device_tolerations(subject: Subject) -> Iterator[Problem]:
    """Warn of tolerations of device requests that take devices which their driver has tainted as failed."""
    is_claim = subject.group_kind[1] == "ResourceClaim"
    claim = subject.typed(ResourceClaim).spec if is_claim else subject.typed(ResourceClaimTemplate).claim_spec
    for request in claim.devices.requests:
        exact = (request.flat_request, request.exactly)
        for part in chain[ExactDeviceRequest | DeviceSubRequest](exact, request.first_available):
            for toleration in part.tolerations:
                if not toleration.key and _tolerates_without_time_limit(toleration):
                    message = "tolerates every taint of a device, so devices that have failed are allocated again"
                    yield DEVICE_TAINTS.problem(toleration.at, message, NAME_TAINTS)
