"""Tolerations that keep pods on nodes and devices that have failed.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/; device taints: KEP-5055. A toleration
without a key and with the operator Exists matches every taint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.failures.types import ResourceClaim, ResourceClaimTemplate
from webhook.facts.gpu.device_pods import DevicePods, workload
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.pods import Toleration

problem: Final = Group("device-failures").problem
NAME_TAINTS: Final = "write one toleration for each taint that is meant, with its key"
_EVICTING: Final = ("", "NoExecute")
_NODE_FAILURES: Final = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))


def advise_tolerations(subject: Subject) -> Iterator[Problem]:
    """Tolerations of pods with devices."""
    for pods in subject.once(workload).device_pods:
        for toleration in pods.spec.tolerations:
            if _stays_for_ever(toleration):
                yield from _lasting_toleration(toleration, pods)


def _lasting_toleration(toleration: Toleration, pods: DevicePods) -> Iterator[Problem]:
    at, key = pods.locate(toleration.at), toleration.key
    if not key:
        message = "tolerates every taint, so the pods stay on nodes that are gone or whose devices have failed"
        yield problem("tolerates-everything", at, message, NAME_TAINTS)
    elif key in _NODE_FAILURES:
        message = f"tolerates `{key}` without tolerationSeconds, so a pod on a lost node is never replaced"
        yield problem("lost-node", at, message, "set tolerationSeconds, such as to 300")


def _stays_for_ever(toleration: Toleration) -> bool:
    matches_all = toleration.operator == "Exists" or bool(toleration.key)
    return matches_all and toleration.effect in _EVICTING and toleration.toleration_seconds is None


def advise_device_tolerations(subject: Subject) -> Iterator[Problem]:
    """Tolerations of device requests that take devices which their driver has tainted as failed."""
    is_claim = subject.group_kind[1] == "ResourceClaim"
    claim = subject.typed(ResourceClaim).spec if is_claim else subject.typed(ResourceClaimTemplate).spec.spec
    for request in claim.devices.requests:
        for part in (request, request.exactly, *request.first_available):
            for toleration in part.tolerations:
                if not toleration.key and _stays_for_ever(toleration):
                    message = "tolerates every taint of a device, so devices that have failed are allocated again"
                    yield problem("device-taints", toleration.at, message, NAME_TAINTS)
