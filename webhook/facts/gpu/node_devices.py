"""Finds pods whose devices no node can give: none has them, not so many, or too little CPU or memory with them.

What nodes have is asked of the view of a whole cluster alone. Where something may add nodes, a pod that fits no node of
today is not known to wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import path_as_text
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import DevicePods, read_device_workload, without_repeated_problems
from webhook.facts.gpu.types import NODE_DEVICES
from webhook.facts.pods.node_sources import first_node_without_amounts, source_of_nodes_for_pod
from webhook.facts.pods.pod_requests import (
    NamespaceLimits,
    quota_requests_of_pod,
    requests_of_containers,
    thousandths_to_kueue_units,
)
from webhook.facts.resource_units import format_amount_with_resource_name, parse_amount_in_kueue_units
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.text.caches import IdentityKey
from webhook.typed.cluster_objects import Node
from webhook.typed.collections import Items

OFFERED: Final = NODE_DEVICES.rule(
    "node-devices/offered",
    title="No node has the device that the pod requests",
    why="The pods stay Pending until a node with such devices joins.",
    function="fitsRequest",
)
LARGEST_NODE: Final = NODE_DEVICES.rule(
    "node-devices/largest-node",
    title="No node has as many devices as the pod requests",
    why="All devices of a pod are those of one node, so that it stays Pending until there is a larger one.",
    function="fitsRequest",
    issues=("https://github.com/volcano-sh/volcano/issues/1295",),
)
CPU_AND_MEMORY: Final = NODE_DEVICES.rule(
    "node-devices/cpu-and-memory",
    title="The nodes with the devices have too little CPU or memory",
    why=(
        "A pod is placed on one node, so that it stays Pending where the nodes with its devices have less than it "
        "requests beside them."
    ),
    function="fitsRequest",
    issues=("https://github.com/volcano-sh/volcano/issues/1295",),
)

NODE_LOOKUPS: Final = (interest_in_fields(Node.gvk, "metadata.labels", "status.allocatable"),)
_KEPT_STATES: Final = 4
_ORDINARY: Final = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class _LargestAmounts:
    """The largest amount of each resource that one node has."""

    amounts: Mapping[str, int]


def validate_node_devices(subject: Subject) -> Iterator[Problem]:
    """Yield devices that no node of a whole cluster has, or not so many."""
    using = [each for each in subject.once(read_device_workload).device_pods if each.devices]
    view = subject.cluster_view()
    nodes = view.list_visible_json(Node.gvk) if using and view.is_whole(Node.gvk) else ()
    if nodes and not first_node_without_amounts(IdentityKey(nodes)):
        subject.deadline.spend(len(nodes))
        largest, shapes = _largest_amounts(IdentityKey(nodes)).amounts, _distinct_node_shapes(IdentityKey(nodes))
        for pods in using:
            problems = [*_check_node_devices(pods, largest, view)]
            if all(count <= largest.get(name, 0) for name, count in pods.devices.items()):
                problems += _check_cpu_and_memory(pods, shapes, subject)
            source = source_of_nodes_for_pod(pods.spec, view) if problems else ""
            if source:
                problems = [_problem_of_open_nodes(problem, pods, source) for problem in problems]
            yield from without_repeated_problems(problems, subject)


def _problem_of_open_nodes(problem: Problem, pods: DevicePods, source: str) -> Problem:
    """Return a problem that could not be checked, because nodes of today are not all that may be."""
    amounts = " and ".join(f"{count} {name}" for name, count in pods.devices.items())
    suffix = " with the CPUs and memory of a pod" if problem.code == CPU_AND_MEMORY.id else ""
    missing = MissingObject(
        kind=f"no node of today has {amounts}{suffix},", name="", why=f"and {source} may add one that does"
    )
    return Problem(code=problem.code, path=problem.path, missing=(missing,))


def _check_node_devices(pods: DevicePods, largest: Mapping[str, int], view: ClusterView) -> Iterator[Problem]:
    at = path_as_text(pods.podset.path)
    for name, count in pods.devices.items():
        most = largest.get(name, 0)
        if not most:
            message = (
                f"requests `{name}`, which no node of the cluster has now{_files_of_nodes(view)}, so the pods wait "
                "for a node with this resource"
            )
            yield OFFERED.problem(
                at, message, "add nodes with this resource, or request a resource that the cluster has"
            )
        elif count > most:
            largest_has = f"the largest node has {most}{_files_of_nodes(view)}"
            message = f"requests {count} `{name}` for one pod, but {largest_has}, so no node fits"
            yield LARGEST_NODE.problem(at, message, f"request at most {most} for each pod, and use more pods")


def _check_cpu_and_memory(pods: DevicePods, shapes: Sequence[_NodeShape], subject: Subject) -> Iterator[Problem]:
    """Yield CPUs or memory that no node with the pod's devices has; overhead and other pods are ignored."""
    requests = quota_requests_of_pod(pods.spec, requests_of_containers(pods.spec, NamespaceLimits()), {})
    wanted = {name: thousandths_to_kueue_units(name, requests[name]) for name in _ORDINARY if requests.get(name)}
    if not wanted:
        return
    fitting = [shape for shape in Items(shapes, subject.deadline) if shape.has_amounts(pods.devices)]
    if any(shape.has_amounts(wanted) for shape in fitting):
        return
    most = {name: max((shape.amounts.get(name, 0) for shape in fitting), default=0) for name in wanted}
    above = [name for name, amount in wanted.items() if amount > most[name]] or list(wanted)
    listed = " and ".join(format_amount_with_resource_name(name, wanted[name]) for name in above)
    devices = " and ".join(f"{count} `{name}`" for name, count in pods.devices.items())
    had = " and ".join(format_amount_with_resource_name(name, most[name]) for name in above)
    message = f"requests {listed} together with {devices} for one pod, but nodes with these devices have at most {had}"
    together = f"{', but not together' if len(above) > 1 else ''}{_files_of_nodes(subject.cluster_view())}"
    fix = "request less for each pod, or use more pods with fewer devices"
    yield CPU_AND_MEMORY.problem(path_as_text(pods.podset.path), f"{message}{together}, so no node fits", fix)


def _files_of_nodes(view: ClusterView) -> str:
    """Return the files of the nodes that are counted, if they come from files."""
    origins = view.files_of_objects_as_text(view.list_visible_json(Node.gvk))
    return f" (nodes{origins})" if origins else ""


@dataclass(frozen=True, slots=True)
class _NodeShape:
    """The amounts of a node, in the units of `units`; equal nodes share one."""

    amounts: Mapping[str, int]

    def has_amounts(self, wanted: Mapping[str, int]) -> bool:
        """Return whether the node has all wanted amounts; unknown CPUs and memory count as enough."""
        return all(self.amounts.get(name, count if name in _ORDINARY else 0) >= count for name, count in wanted.items())


@lru_cache(maxsize=_KEPT_STATES)
def _distinct_node_shapes(nodes: IdentityKey) -> tuple[_NodeShape, ...]:
    """Return the distinct shapes of nodes with devices, computed once for each state of the cluster."""
    distinct: set[frozenset[tuple[str, int]]] = set()
    for node in nodes.held:
        written = Node.of(node).status.allocatable
        read = (
            (name, parse_amount_in_kueue_units(name, value))
            for name, value in written.items()
            if "/" in name or name in _ORDINARY
        )
        distinct.add(frozenset((name, count) for name, count in read if count))
    return tuple(_NodeShape(dict(each)) for each in distinct)


@lru_cache(maxsize=_KEPT_STATES)
def _largest_amounts(nodes: IdentityKey) -> _LargestAmounts:
    """Return the largest amounts of all nodes, computed once for each state of the cluster."""
    amounts: dict[str, int] = {}
    for node in nodes.held:
        for name, value in Node.of(node).status.allocatable.items():
            read = quantity.read_quantity_or_none(value) if "/" in name else None
            if read is not None and read.value() > amounts.get(name, 0):
                amounts[name] = read.value()
    return _LargestAmounts(amounts)
