"""Tolerations that keep pods on nodes and devices that have failed.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/; device taints: KEP-5055. A toleration
without a key and with the operator Exists matches every taint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import workload
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping
from webhook.paths import FieldPath, get, render
from webhook.problem import Problem

problem: Final = Group("device-failures").problem
NAME_TAINTS: Final = "write one toleration for each taint that is meant, with its key"
_EVICTING: Final = (None, "", "NoExecute")
_NODE_FAILURES: Final = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))


def advise_tolerations(subject: Subject) -> Iterator[Problem]:
    """Tolerations of pods with devices."""
    for pods in subject.once(workload).device_pods:
        for index, toleration in enumerate(subject.deadline.paced(items(pods.spec.get("tolerations")))):
            if not _stays_for_ever(toleration):
                continue
            at, key = pods.at("tolerations", index), mapping(toleration).get("key")
            if not key:
                message = "tolerates every taint, so the pods stay on nodes that are gone or whose devices have failed"
                yield problem("tolerates-everything", at, message, NAME_TAINTS)
            elif key in _NODE_FAILURES:
                message = f"tolerates `{key}` without tolerationSeconds, so a pod on a lost node is never replaced"
                yield problem("lost-node", at, message, "set tolerationSeconds, such as to 300")


def _stays_for_ever(toleration: JSON) -> bool:
    given = mapping(toleration)
    matches_all = given.get("operator") == "Exists" or bool(given.get("key"))
    return matches_all and given.get("effect") in _EVICTING and given.get("tolerationSeconds") is None


def advise_device_tolerations(subject: Subject) -> Iterator[Problem]:
    """Tolerations of device requests that take devices which their driver has tainted as failed."""
    at: FieldPath = ("spec", "devices") if subject.group_kind[1] == "ResourceClaim" else ("spec", "spec", "devices")
    for index, request in enumerate(subject.deadline.paced(items(get(subject.object, (*at, "requests"))))):
        for path, asked in _asked(mapping(request), (*at, "requests", index)):
            for number, toleration in enumerate(subject.deadline.paced(items(asked.get("tolerations")))):
                if not mapping(toleration).get("key") and _stays_for_ever(toleration):
                    message = "tolerates every taint of a device, so devices that have failed are allocated again"
                    where = render((*path, "tolerations", number))
                    yield problem("device-taints", where, message, NAME_TAINTS)


def _asked(request: dict[str, JSON], path: FieldPath) -> Iterator[tuple[FieldPath, dict[str, JSON]]]:
    """A request as v1beta1 has it, what it asks for exactly, and each alternative."""
    yield path, request
    yield (*path, "exactly"), mapping(request.get("exactly"))
    for index, choice in enumerate(items(request.get("firstAvailable"))):
        yield (*path, "firstAvailable", index), mapping(choice)
