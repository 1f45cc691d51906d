"""Devices of a pod that no node can give it: of two vendors, on Windows, none in the cluster, more than a node has.

What nodes have is asked of the view of a whole cluster alone. An autoscaler may add another node, so nothing is denied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import DevicePods, once_each, workload
from webhook.facts.gpu.devices import COUNTED
from webhook.facts.gpu.requested_devices import DeviceContainer, device_containers
from webhook.facts.kueue.objects import NODE, RUNTIME_CLASS
from webhook.facts.pods.containers import items, mapping, text
from webhook.facts.same import Same
from webhook.facts.subject import Subject
from webhook.paths import get, render
from webhook.problem import Problem

requests_problem: Final = Group("gpu-requests").problem
problem: Final = Group("node-devices").problem
WINDOWS_LOOKUPS: Final = (reading(RUNTIME_CLASS, "scheduling.nodeSelector"),)
NODE_LOOKUPS: Final = (reading(NODE, "status.allocatable"),)
_OS: Final = "kubernetes.io/os"
_TERMS: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_KEPT_STATES: Final = 4


def validate_vendors(subject: Subject) -> Iterator[Problem]:
    """Containers that request GPUs of several vendors."""
    for each in subject.deadline.each(subject.once(device_containers)):
        asked = {
            device.device.vendor: device.name
            for device in each.requested
            if device.device.gpu and device.device.kind in COUNTED and device.number
        }
        if len(asked) > 1:
            names = " and ".join(f"`{name}`" for name in asked.values())
            message = f"requests {names}, but nodes rarely have GPUs of several vendors, so the pod would stay Pending"
            yield requests_problem("vendors", render(each.container.path), message, "keep those of one vendor")


def validate_windows(subject: Subject) -> Iterator[Problem]:
    """Pods that are bound to Windows and request devices."""
    asked = [each for each in subject.once(device_containers) if _counted(each)]
    if asked and (where := _windows(mapping(subject.object.get("spec")), subject)):
        name = _counted(asked[0])
        message = f"binds the pod to Windows, where no device plugin offers `{name}`, so it stays Pending"
        yield requests_problem("windows", where, message, "use Linux nodes, or remove the request")


def _counted(each: DeviceContainer) -> str:
    return next((device.name for device in each.requested if device.device.kind in COUNTED and device.number), "")


def _windows(spec: JSON, subject: Subject) -> str:
    """Where a pod says that it runs on Windows, "" where it does not."""
    if get(spec, ("os", "name")) == "windows":
        return "spec.os.name"
    if mapping(spec.get("nodeSelector")).get(_OS) == "windows":
        return render(("spec", "nodeSelector", _OS))
    terms = items(get(spec, _TERMS))
    if terms and all(any(map(_is_windows, items(mapping(each).get("matchExpressions")))) for each in terms):
        return render(("spec", *_TERMS))
    name = text(spec.get("runtimeClassName"))
    runtime_class = subject.view().get(RUNTIME_CLASS, name, namespaced=False) if name else None
    selector = mapping(get(runtime_class, ("scheduling", "nodeSelector"))) if runtime_class is not None else {}
    return "spec.runtimeClassName" if selector.get(_OS) == "windows" else ""


def _is_windows(requirement: JSON) -> bool:
    given = mapping(requirement)
    return given.get("key") == _OS and given.get("operator") == "In" and items(given.get("values")) == ["windows"]


@dataclass(frozen=True, slots=True)
class _Largest:
    """The most that one node has of each resource."""

    amounts: Mapping[str, int]


def validate_node_devices(subject: Subject) -> Iterator[Problem]:
    """Devices that no node of a whole cluster has, or not as many."""
    using = [each for each in subject.once(workload).device_pods if each.devices]
    view = subject.view()
    nodes = view.objects(NODE) if using and view.is_whole() else ()
    if nodes:
        subject.deadline.spend(len(nodes))
        largest = _largest(Same(nodes)).amounts
        for pods in using:
            yield from once_each(_node_devices(pods, largest), subject)


def _node_devices(pods: DevicePods, largest: Mapping[str, int]) -> Iterator[Problem]:
    at = render(pods.podset.path)
    for name, count in pods.devices.items():
        most = largest.get(name, 0)
        if not most:
            message = f"requests `{name}`, which no node of the cluster has now, so the pods wait for such a node"
            yield problem("offered", at, message, "add nodes with it, or request a resource of the cluster")
        elif count > most:
            message = f"requests {count} `{name}` for one pod, but the largest node has {most}, so no node fits"
            yield problem("largest-node", at, message, f"request at most {most}, in more pods")


@lru_cache(maxsize=_KEPT_STATES)
def _largest(nodes: Same) -> _Largest:
    """Made once for each state of the cluster: a view gives the same sequence until a node changes."""
    listed: Sequence[JSON] = nodes.held
    amounts: dict[str, int] = {}
    for node in listed:
        for name, value in mapping(get(node, ("status", "allocatable"))).items():
            amount = quantity.read(value) if "/" in name else None
            if amount is not None and amount.value() > amounts.get(name, 0):
                amounts[name] = amount.value()
    return _Largest(amounts)
