"""TPU slices of GKE: a topology has the dimensions of its generation, and a slice of several hosts a pod on each.

Source: xpk 367c8382 src/xpk/core/system_characteristics.py; https://cloud.google.com/kubernetes-engine/docs/concepts/tpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from webhook.facts.gpu.device_pods import DevicePods, read_device_workload, without_repeated_problems
from webhook.facts.nodes.types import TPU
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem

DIMENSIONS: Final = TPU.rule(
    "tpu/topology-dimensions",
    title="A TPU topology has the wrong number of dimensions for its accelerator",
    why="GKE makes no node with such a topology, so the pods stay Pending.",
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
    why="A pod runs on one host, so it stays Pending.",
)
_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
_RESOURCE: Final = "google.com/tpu"
_FORM: Final = re.compile(r"[1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3})+", re.ASCII)
_CHIPS_OF_HOST: Final = 4


@dataclass(frozen=True, slots=True)
class _Generation:
    """The dimensions of a topology, and whether each host of more than one chip has four."""

    dimensions: int
    has_four_chips: bool


_GENERATIONS: Final[Mapping[str, _Generation]] = {
    "tpu-v4-podslice": _Generation(3, has_four_chips=True),
    "tpu-v5p-slice": _Generation(3, has_four_chips=True),
    "tpu7x": _Generation(3, has_four_chips=True),
    "tpu-v5-lite-podslice": _Generation(2, has_four_chips=False),
    "tpu-v6e-slice": _Generation(2, has_four_chips=False),
}


def check_tpu_slices(subject: Subject) -> Iterator[Problem]:
    """Yield topologies that no slice has, and workloads with a pod too few for their slice."""
    for pods in subject.once(read_device_workload).device_pods:
        if _RESOURCE in pods.devices:
            yield from without_repeated_problems(_check_slice(pods), subject)


def _check_slice(pods: DevicePods) -> Iterator[Problem]:
    selector = pods.spec.node_selector
    accelerator, topology = selector.get(_ACCELERATOR, ""), selector.get(_TOPOLOGY, "")
    generation = _GENERATIONS.get(accelerator)
    if generation is None or not _FORM.fullmatch(topology):
        return
    sizes, path = [int(each) for each in topology.split("x")], pods.locate(pods.spec.path("nodeSelector", _TOPOLOGY))
    if len(sizes) != generation.dimensions:
        example = "2x2x2" if generation.dimensions == 3 else "2x4"
        message = (
            f"topology {topology} has {len(sizes)} dimensions, but {accelerator} has {generation.dimensions}, so no "
            "node has it"
        )
        yield DIMENSIONS.problem(path, message, f"write a topology such as {example}")
        return
    chips, wanted = prod(sizes), pods.devices[_RESOURCE]
    of_host = min(chips, _CHIPS_OF_HOST) if generation.has_four_chips else chips
    if wanted > of_host:
        where = f"a host of topology {topology}" if chips > of_host else f"topology {topology}"
        message = f"requests {wanted} `{_RESOURCE}` for one pod, but {where} has {of_host}, so no node fits"
        yield CHIPS.problem(path, message, f"request {of_host} for each pod, or select a larger topology")
        return
    hosts = chips // _CHIPS_OF_HOST
    if generation.has_four_chips and hosts > 1 and 0 < pods.pod_count < hosts:
        count = "1 pod" if pods.pod_count == 1 else f"{pods.pod_count} pods"
        message = (
            f"topology {topology} is a slice of {hosts} hosts with {_CHIPS_OF_HOST} chips each, but the workload has "
            f"{count}, so libtpu waits for the other hosts"
        )
        yield PODS.problem(path, message, f"run {hosts} pods, or select a topology of one host")
