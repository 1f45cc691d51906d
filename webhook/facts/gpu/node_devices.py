"""Devices of a pod that no node can give it: of two vendors, on Windows, none in the cluster, more than a node has,
or so many CPUs and so much memory beside them that no node has both.

What nodes have is asked of the view of a whole cluster alone. An autoscaler may add another node, so nothing is denied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook import quantity
from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import DevicePods, once_each, workload
from webhook.facts.gpu.devices import COUNTED
from webhook.facts.gpu.requested_devices import DeviceContainer, device_containers
from webhook.facts.gpu.types import Node, RuntimeClass
from webhook.facts.pods.pod_requests import Limits, container_requests, pod_requests, units
from webhook.facts.resource_units import amount, of_resource
from webhook.facts.subject import Subject
from webhook.paths import FieldPath, render
from webhook.problem import Problem
from webhook.same import Same
from webhook.typed.collections import Items
from webhook.typed.pods import Pod, PodSpec, SelectorRequirement

requests_problem: Final = Group("gpu-requests").problem
problem: Final = Group("node-devices").problem
WINDOWS_LOOKUPS: Final = (reading(RuntimeClass.gvk, "scheduling.nodeSelector"),)
NODE_LOOKUPS: Final = (reading(Node.gvk, "status.allocatable"),)
_OS: Final = "kubernetes.io/os"
_BINDING: Final = frozenset(("os", "nodeSelector", "affinity", "runtimeClassName"))
"""Fields that may bind a pod to Windows."""
_KEPT_STATES: Final = 4
_ORDINARY: Final = ("cpu", "memory")


def validate_vendors(subject: Subject) -> Iterator[Problem]:
    """Containers that request GPUs of several vendors."""
    for container in subject.once(device_containers):
        if len(container.requested) < 2:
            continue
        by_vendor = {
            requested.device.vendor: requested.name
            for requested in container.requested
            if requested.device.gpu and requested.device.kind in COUNTED and requested.number
        }
        if len(by_vendor) > 1:
            names = " and ".join(f"`{name}`" for name in by_vendor.values())
            message = f"requests {names}, but nodes rarely have GPUs of several vendors, so the pod would stay Pending"
            yield requests_problem("vendors", container.container.at, message, "keep those of one vendor")


def validate_windows(subject: Subject) -> Iterator[Problem]:
    """Pods that are bound to Windows and request devices."""
    pod = subject.typed(Pod).spec
    if _BINDING.isdisjoint(pod.json):
        return
    name = next(filter(None, map(_counted, subject.once(device_containers))), "")
    if name and (where := _windows(pod, subject)):
        message = f"binds the pod to Windows, where no device plugin offers `{name}`, so the pod stays Pending"
        yield requests_problem("windows", where, message, "use Linux nodes, or remove the request")


def _counted(container: DeviceContainer) -> str:
    counted = (each for each in container.requested if each.device.kind in COUNTED and each.number)
    return next((requested.name for requested in counted), "")


def _windows(pod: PodSpec, subject: Subject) -> FieldPath:
    """Where a pod says that it runs on Windows, () where it does not."""
    if pod.os.name == "windows":
        return pod.os.path("name")
    if pod.node_selector.get(_OS) == "windows":
        return pod.path("nodeSelector", _OS)
    terms = pod.required_node_terms()
    if terms and all(any(map(_is_windows, term.match_expressions)) for term in terms):
        return pod.affinity.node_affinity.required.path("nodeSelectorTerms")
    name = pod.runtime_class_name
    runtime_class = subject.view().find(RuntimeClass, name, namespaced=False) if name else RuntimeClass.of(None)
    if runtime_class.scheduling.node_selector.get(_OS) == "windows":
        return pod.path("runtimeClassName")
    return ()


def _is_windows(requirement: SelectorRequirement) -> bool:
    return requirement.key == _OS and requirement.operator == "In" and requirement.values == ["windows"]


@dataclass(frozen=True, slots=True)
class _Largest:
    """The most that one node has of each resource."""

    amounts: Mapping[str, int]


def validate_node_devices(subject: Subject) -> Iterator[Problem]:
    """Devices that no node of a whole cluster has, or not as many."""
    using = [each for each in subject.once(workload).device_pods if each.devices]
    view = subject.view()
    nodes = view.objects(Node.gvk) if using and view.is_whole() else ()
    if nodes:
        subject.deadline.spend(len(nodes))
        largest, shapes = _largest(Same(nodes)).amounts, _shapes(Same(nodes))
        for pods in using:
            yield from once_each(_node_devices(pods, largest), subject)
            if all(count <= largest.get(name, 0) for name, count in pods.devices.items()):
                yield from once_each(_cpu_and_memory(pods, shapes, subject), subject)


def _node_devices(pods: DevicePods, largest: Mapping[str, int]) -> Iterator[Problem]:
    at = render(pods.podset.path)
    for name, count in pods.devices.items():
        most = largest.get(name, 0)
        if not most:
            message = (
                f"requests `{name}`, which no node of the cluster has now, so the pods wait for a node with this "
                "resource"
            )
            yield problem(
                "offered", at, message, "add nodes with this resource, or request a resource that the cluster has"
            )
        elif count > most:
            message = f"requests {count} `{name}` for one pod, but the largest node has {most}, so no node fits"
            yield problem("largest-node", at, message, f"request at most {most} for each pod, and use more pods")


def _cpu_and_memory(pods: DevicePods, shapes: Sequence[_Shape], subject: Subject) -> Iterator[Problem]:
    """CPUs or memory that no node with the devices of a pod has beside them; overhead and other pods are left out."""
    requests = pod_requests(pods.spec, container_requests(pods.spec, Limits()), {})
    wanted = {name: units(name, requests[name]) for name in _ORDINARY if requests.get(name)}
    if not wanted:
        return
    fitting = [shape for shape in Items(shapes, subject.deadline) if shape.has(pods.devices)]
    if any(shape.has(wanted) for shape in fitting):
        return
    most = {name: max((shape.amounts.get(name, 0) for shape in fitting), default=0) for name in wanted}
    above = [name for name, amount in wanted.items() if amount > most[name]] or list(wanted)
    listed = " and ".join(of_resource(name, wanted[name]) for name in above)
    devices = " and ".join(f"{count} `{name}`" for name, count in pods.devices.items())
    had = " and ".join(of_resource(name, most[name]) for name in above)
    message = f"requests {listed} together with {devices} for one pod, but nodes with these devices have at most {had}"
    together = ", but not together" if len(above) > 1 else ""
    fix = "request less for each pod, or use more pods with fewer devices"
    yield problem("cpu-and-memory", render(pods.podset.path), f"{message}{together}, so no node fits", fix)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a node has, in the units of `units`; nodes that have the same are one."""

    amounts: Mapping[str, int]

    def has(self, wanted: Mapping[str, int]) -> bool:
        """Whether it has all of it, as far as it says how many CPUs and how much memory it has."""
        return all(self.amounts.get(name, count if name in _ORDINARY else 0) >= count for name, count in wanted.items())


@lru_cache(maxsize=_KEPT_STATES)
def _shapes(nodes: Same) -> tuple[_Shape, ...]:
    """Nodes that have devices, each sort once, for each state of the cluster."""
    distinct: set[frozenset[tuple[str, int]]] = set()
    for node in nodes.held:
        written = Node.of(node).status.allocatable
        read = ((name, amount(name, value)) for name, value in written.items() if "/" in name or name in _ORDINARY)
        distinct.add(frozenset((name, count) for name, count in read if count))
    return tuple(_Shape(dict(each)) for each in distinct)


@lru_cache(maxsize=_KEPT_STATES)
def _largest(nodes: Same) -> _Largest:
    """Made once for each state of the cluster: a view gives the same sequence until a node changes."""
    amounts: dict[str, int] = {}
    for node in nodes.held:
        for name, value in Node.of(node).status.allocatable.items():
            read = quantity.read(value) if "/" in name else None
            if read is not None and read.value() > amounts.get(name, 0):
                amounts[name] = read.value()
    return _Largest(amounts)
