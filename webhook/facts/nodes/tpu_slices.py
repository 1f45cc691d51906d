"""TPU slices of GKE: the topology must exist for the accelerator, and a slice of several hosts needs a pod on each
host.

Source: xpk 367c8382 src/xpk/core/system_characteristics.py; https://cloud.google.com/kubernetes-engine/docs/concepts/tpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.device_pods import DevicePods, read_device_workload, without_repeated_problems
from webhook.facts.nodes.types import TPU
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem

DIMENSIONS: Final = TPU.rule(
    "tpu/topology-dimensions",
    title="A TPU topology has the wrong number of dimensions for its accelerator",
    why="GKE creates no node with this topology, so the pods stay Pending.",
)
TOPOLOGY: Final = TPU.rule(
    "tpu/topology",
    title="A TPU topology does not exist for its accelerator",
    why="GKE creates nodes only with the topologies in its documentation, so the pods stay Pending.",
)
PODS: Final = TPU.rule(
    "tpu/pods-of-slice",
    title="A workload has fewer pods than its TPU slice has hosts",
    why="libtpu waits for a process on each host of the slice.",
    level="advice",
    fails="waiting",
)
CHIPS: Final = TPU.rule(
    "tpu/chips-of-host",
    title="A pod requests more TPU chips than a host of its topology has",
    why="A pod runs on one host. No host has enough chips, so the pod stays Pending.",
)
_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
_RESOURCE: Final = "google.com/tpu"
_FORM: Final = re.compile(r"[1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3})+", re.ASCII)
_CHIPS_OF_HOST: Final = 4
_MOST_CHIPS_OF_ONE_HOST: Final = 8
_TWO_DIMENSIONS: Final = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
"""All topologies of v5e and v6e. 2x4 is one host with 8 chips, or two hosts with 4 chips each."""
_SMALL: Final = (1, 2)
_FLAT: Final = "2x2x1"
"""The only three-dimensional topology with sizes that are not in ascending order."""
_GENERATIONS: Final[Mapping[str, int]] = {
    "tpu-v4-podslice": 3,
    "tpu-v5p-slice": 3,
    "tpu7x": 3,
    "tpu-v5-lite-podslice": 2,
    "tpu-v6e-slice": 2,
}
"""How many dimensions the topologies of an accelerator have."""


def check_tpu_slices(subject: Subject) -> Iterator[Problem]:
    """Report topologies that no node has, requests for more chips than a host has, and slices with fewer pods than
    hosts.
    """
    using = [each for each in subject.once(read_device_workload).device_pods if each.devices.get(_RESOURCE)]
    counts = dict[tuple[str, str], list[int]]()
    for pods in using:
        counts.setdefault(_selected_slice(pods), []).append(pods.pod_count)
    for pods in using:
        of_slice = counts[_selected_slice(pods)]
        yield from without_repeated_problems(_check_slice(pods, sum(of_slice) if all(of_slice) else 0), subject)


def _selected_slice(pods: DevicePods) -> tuple[str, str]:
    """Return the accelerator and the topology that pods select. The pods of a slice may have several templates."""
    selector = pods.spec.node_selector
    return selector.get(_ACCELERATOR, ""), selector.get(_TOPOLOGY, "")


def _check_slice(pods: DevicePods, pod_count: int) -> Iterator[Problem]:
    """Yield the problems of one template. `pod_count` is the number of pods of all templates that select the slice; 0
    if the number is not known.
    """
    accelerator, topology = _selected_slice(pods)
    dimensions = _GENERATIONS.get(accelerator)
    if dimensions is None or not _FORM.fullmatch(topology):
        return
    sizes, path = [int(each) for each in topology.split("x")], pods.locate(pods.spec.path("nodeSelector", _TOPOLOGY))
    if len(sizes) != dimensions:
        one = _FLAT if dimensions == 3 else _topology_of_one_host(pods.devices[_RESOURCE])
        several = "2x2x2 for 2 pods" if dimensions == 3 else "4x4 for 4 pods"
        message = f"topology {topology} has {len(sizes)} dimensions, but {accelerator} has {dimensions}, so no "
        message += "node has this topology"
        yield DIMENSIONS.problem(path, message, f"write a topology such as {one} for 1 pod, or {several}")
    elif not _has_gke_topology(topology, sizes):
        message = f"topology {topology} does not exist for {accelerator}, so no node has this topology"
        rising = "sizes in rising order, each 1, 2 or a multiple of 4"
        others = rising if dimensions > 2 else f"one of {', '.join(_TWO_DIMENSIONS)}"
        yield TOPOLOGY.problem(path, message, f"write {others}")
    else:
        yield from _check_hosts(pods, topology, prod(sizes), pod_count, path)


def _has_gke_topology(topology: str, sizes: Sequence[int]) -> bool:
    """Return whether GKE has a topology. Two-dimensional topologies are listed above. The sizes of three-dimensional
    topologies are in ascending order, except _FLAT.
    """
    if len(sizes) == 2:
        return topology in _TWO_DIMENSIONS
    is_ordered = list(sizes) == sorted(sizes) or topology == _FLAT
    return is_ordered and all(size in _SMALL or size % _CHIPS_OF_HOST == 0 for size in sizes)


def _topology_of_one_host(chips: int) -> str:
    """Return a topology of v5e and v6e with one host that has this number of chips."""
    return "2x4" if chips > _CHIPS_OF_HOST else "2x2"


def _check_hosts(pods: DevicePods, topology: str, chips: int, pod_count: int, path: FieldPath) -> Iterator[Problem]:
    """Report more chips for one pod than a host has, and fewer pods than hosts of the slice."""
    may_be_one_host = topology in _TWO_DIMENSIONS and chips <= _MOST_CHIPS_OF_ONE_HOST
    of_host = chips if may_be_one_host else min(chips, _CHIPS_OF_HOST)
    wanted, hosts = pods.devices[_RESOURCE], chips // _CHIPS_OF_HOST
    if wanted > of_host:
        where = f"a host of topology {topology}" if chips > of_host else f"topology {topology}"
        message = f"requests {wanted} `{_RESOURCE}` for one pod, but {where} has {of_host}, so no node fits"
        run = f" and run {hosts} pods" if hosts > 1 and not may_be_one_host else ""
        is_other = topology in _TWO_DIMENSIONS and wanted <= _MOST_CHIPS_OF_ONE_HOST
        other = f", or select topology {_topology_of_one_host(wanted)}" if is_other else ""
        yield CHIPS.problem(path, message, f"request {of_host} for each pod{run}{other}")
    elif not may_be_one_host and hosts > 1 and 0 < pod_count < hosts:
        count = "1 pod" if pod_count == 1 else f"{pod_count} pods"
        message = (
            f"topology {topology} is a slice of {hosts} hosts with {_CHIPS_OF_HOST} chips each, but the workload has "
            f"{count}, so libtpu waits for the other hosts"
        )
        yield PODS.problem(path, message, f"run {hosts} pods, or select a topology of one host")
