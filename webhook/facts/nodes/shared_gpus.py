"""Containers that request several shares of a GPU instead of several GPUs.

The shares are MPS shares, time slices, MIG slices, or shares of Intel's plugin.

With MPS, NVIDIA's device plugin refuses several shares after scheduling, when the kubelet allocates the devices. Then
the pod fails, and its controller creates another pod. The labels of GPU Feature Discovery show how a node shares GPUs.

Source: NVIDIA/k8s-device-plugin@1b826acc6 internal/rm/rm.go ValidateRequest and internal/lm/resource.go;
intel/intel-device-plugins-for-kubernetes@94a91bc9 cmd/gpu_plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import release_as_text
from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.gpu.device_pods import (
    LAUNCHERS,
    DevicePods,
    count_devices_of_container,
    is_training_container,
    read_device_workload,
    without_repeated_problems,
)
from webhook.facts.nodes.device_plugin import CONFIG_LABEL, MPS_RELAXED, plugin_configuration, plugin_release
from webhook.facts.nodes.node_offers import NodeOffer, PodsAndNodes, path_of_amount, pods_and_nodes
from webhook.facts.nodes.types import SHARED_GPU, GpuDevicePlugin
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.typed.cluster_objects import DaemonSet
from webhook.typed.pods import Container

MPS: Final = SHARED_GPU.rule(
    "shared-gpu/mps-more-than-one",
    title="A container requests several shares of GPUs that MPS shares",
    why="The device plugin refuses more than one share, so each pod fails on the node (UnexpectedAdmissionError).",
    function="ValidateRequest",
    fails="start",
    issues=("https://github.com/NVIDIA/k8s-device-plugin/issues/929",),
)
REFUSED: Final = SHARED_GPU.rule(
    "shared-gpu/time-slices-refused",
    title="A container requests several time slices, but the device plugin allows only one",
    why="With failRequestsGreaterThanOne each pod fails on the node (UnexpectedAdmissionError).",
    function="ValidateRequest",
    fails="start",
)
ONE_CARD: Final = SHARED_GPU.rule(
    "shared-gpu/time-slices-of-one-card",
    title="A container requests several time slices of one GPU",
    why="All time slices are the same GPU, so the container sees one GPU and gets no larger share.",
    level="advice",
    fails="silent",
)
PROCESSES: Final = SHARED_GPU.rule(
    "shared-gpu/processes-of-one-card",
    title="A launcher starts several processes on the time slices of one GPU",
    why="The container sees one GPU, so only the first process finds a GPU.",
    fails="start",
)
MIG_PROCESSES: Final = SHARED_GPU.rule(
    "shared-gpu/mig-processes",
    title="Several MIG slices are requested for processes that need several GPUs",
    why=(
        "Before driver 570 a process with CUDA sees only one MIG slice. With any driver, NCCL does not connect the "
        "slices of one GPU."
    ),
    source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    level="advice",
    fails="start",
)
INTEL: Final = SHARED_GPU.rule(
    "shared-gpu/intel-shares",
    title="Several Intel GPUs of a container may be shares of the same GPU",
    why=(
        "With sharedDevNum above 1 several devices of a container may be shares of the same GPU, unless the plugin "
        "spreads them over enough GPUs (balanced)."
    ),
    source="intel/intel-device-plugins-for-kubernetes@94a91bc9 cmd/gpu_plugin/README.md",
    level="advice",
    fails="silent",
)
_SHARED: Final = ".shared"
_SLICE: Final = "nvidia.com/mig-"
_GPU: Final = "nvidia.com/gpu"
_INTEL: Final = ("gpu.intel.com/i915", "gpu.intel.com/xe")
_INTEL_IMAGE: Final = "intel-gpu-plugin"
_INTEL_SHARES: Final = "-shared-dev-num"
_INTEL_POLICY: Final = "-allocation-policy"
_DIGITS: Final = 10
_BALANCED: Final = "balanced"
"""The policy that takes each device from the GPU with the most free shares."""


def check_shared_gpus(subject: Subject) -> Iterator[Problem]:
    """Report requests for several shares that fail, or that give the container only one GPU."""
    for each in subject.once(pods_and_nodes):
        for container in each.pods.spec.all_containers():
            for name, count in count_devices_of_container(container).items():
                if count > 1:
                    problems = _check_shares(each, container, name, count, subject)
                    yield from without_repeated_problems(problems, subject)


def advise_mig_processes(subject: Subject) -> Iterator[Problem]:
    """Advise on training containers with several MIG slices, and on MIG slices that nodes offer as GPUs."""
    for pods in subject.once(read_device_workload).device_pods:
        for container in pods.containers if any(name.startswith(_SLICE) for name in pods.devices) else ():
            slices = {n: c for n, c in count_devices_of_container(container).items() if n.startswith(_SLICE)}
            count = sum(slices.values())
            if count > 1 and is_training_container(container, subject):
                message = f"requests {count} slices of MIG"
                yield _mig_problem(message, pods, container, next(iter(slices)))
    for each in subject.once(pods_and_nodes):
        for container in each.pods.containers:
            count = count_devices_of_container(container).get(_GPU, 0)
            if count > 1 and each.fitting and all(map(_offers_slices_as_gpus, each.fitting)):
                message = f"requests {count} GPUs, each a slice of MIG on node {each.fitting[0].name}"
                yield _mig_problem(message, each.pods, container, _GPU)


def _offers_slices_as_gpus(offer: NodeOffer) -> bool:
    is_cut = "-MIG-" in offer.labels.get(f"{_GPU}.product", "")
    return offer.labels.get("nvidia.com/mig.strategy") == "single" and is_cut


def _mig_problem(message: str, pods: DevicePods, container: Container, name: str) -> Problem:
    why = "before driver 570 a process sees one slice, and NCCL does not connect slices of one GPU"
    path = pods.locate(path_of_amount(container, name))
    return MIG_PROCESSES.problem(
        path, f"{message}, but {why}", "ask for 1 slice and start one process, or use whole GPUs"
    )


def _check_shares(
    each: PodsAndNodes, container: Container, name: str, count: int, subject: Subject
) -> Iterator[Problem]:
    path = each.pods.locate(path_of_amount(container, name))
    if name in _INTEL:
        yield from _check_intel_shares(path, name, count, each)
        return
    base = name.removesuffix(_SHARED)
    strategies = {offer.labels.get(f"{base}.sharing-strategy", "") for offer in each.fitting}
    if strategies == {"mps"}:
        yield from _check_mps(path, name, each.fitting, each.view)
    elif strategies == {"time-slicing"}:
        yield from _check_time_slices(_SeveralSlices(path, base, count, container), each, subject)


def _check_mps(path: FieldPath, name: str, offers: Sequence[NodeOffer], view: ClusterView) -> Iterator[Problem]:
    release = plugin_release(view)
    relaxed = [offer for offer in offers if _is_refusal_off(offer, view)]
    unknown = [offer for offer in offers if CONFIG_LABEL in offer.labels and plugin_configuration(offer, view) is None]
    too_early = release is not None and release < MPS_RELAXED
    if not too_early and relaxed:
        return
    if not too_early and unknown:
        what = f"the configuration `{unknown[0].labels[CONFIG_LABEL]}` of the device plugin on node {unknown[0].name}"
        missing = MissingObject(kind=what, name="", why="is not known", is_absent=False)
        yield Problem(code=MPS.id, path="", missing=(missing,))
        return
    early = ""
    if relaxed and release is not None:
        early = (
            f" (v{release_as_text(release)}; only from v0.20 on the plugin honours failRequestsGreaterThanOne for mps)"
        )
    message = (
        f"node {offers[0].name} shares its GPUs by MPS, and its device plugin refuses more than 1 share for a container"
        f"{early}, so each pod fails on the node"
    )
    yield MPS.problem(path, message, f"request `{name}: 1`, or use nodes with GPUs that are not shared")


def _is_refusal_off(offer: NodeOffer, view: ClusterView) -> bool:
    configuration = plugin_configuration(offer, view)
    return configuration is not None and configuration.sharing.mps.fail_requests_greater_than_one is False


def _is_refusal_on(offer: NodeOffer, view: ClusterView) -> bool:
    configuration = plugin_configuration(offer, view)
    return configuration is not None and configuration.sharing.time_slicing.fail_requests_greater_than_one is True


@dataclass(frozen=True, slots=True)
class _SeveralSlices:
    """A container that requests several time slices: the path of the amount, the resource, and the amount."""

    path: FieldPath
    base: str
    count: int
    container: Container


def _check_time_slices(slices: _SeveralSlices, each: PodsAndNodes, subject: Subject) -> Iterator[Problem]:
    offers, view, path = each.fitting, each.view, slices.path
    name = offers[0].name
    if all(_is_refusal_on(offer, view) for offer in offers):
        message = (
            f"node {name} shares its GPUs by time slices, and failRequestsGreaterThanOne refuses more than 1 share for "
            "a container, so each pod fails on the node"
        )
        yield REFUSED.problem(path, message, "request 1, or use nodes with GPUs that are not shared")
    elif all(offer.labels.get(f"{slices.base}.count") == "1" for offer in offers):
        message = f"the GPUs that node {name} offers are time slices of one card, so {slices.count} shares are 1 GPU"
        launch = cached_launch_of_container(slices.container, subject)
        if launch.by in LAUNCHERS:
            problem = f"{message}, and the processes of {launch.by} find no second GPU"
            yield PROCESSES.problem(path, problem, "request 1, and start one process")
        else:
            yield ONE_CARD.problem(path, message, "request 1 share")


class IntelPlugin(NamedTuple):
    """How Intel's device plugin shares the GPUs of some nodes. `setting` is the name of the setting with `shares`."""

    setting: str
    shares: int
    policy: str
    selector: Mapping[str, str]

    def is_selected(self, offer: NodeOffer) -> bool:
        """Return whether the plugin runs on a node."""
        return all(offer.labels.get(key) == value for key, value in self.selector.items())

    def may_repeat_a_gpu(self, count: int, offered: int) -> bool:
        """Return whether several devices of a container may be shares of one GPU."""
        return self.shares > 1 and (self.policy != _BALANCED or count > offered // self.shares)


def intel_plugins(view: ClusterView) -> tuple[IntelPlugin, ...]:
    """Return Intel's plugins in files, from objects of Intel's operator and from DaemonSets."""
    return view.once(intel_plugins, lambda: tuple(_intel_plugins(view.copy_without_missing_objects())))


def _intel_plugins(view: ClusterView) -> Iterator[IntelPlugin]:
    for plugin in view.list_typed(GpuDevicePlugin):
        spec = plugin.spec
        yield IntelPlugin("sharedDevNum", spec.shared_dev_num, spec.preferred_allocation_policy, spec.node_selector)
    for daemon_set in view.list_typed(DaemonSet):
        pods = daemon_set.spec.template.spec
        for container in pods.containers:
            if parse_image_name(container.image).last_part == _INTEL_IMAGE:
                flags = dict(_flags_of_plugin((*container.command, *container.args)))
                shares = flags.get(_INTEL_SHARES, "")
                number = int(shares) if len(shares) < _DIGITS and shares.isdecimal() else 1
                yield IntelPlugin(_INTEL_SHARES, number, flags.get(_INTEL_POLICY, ""), pods.node_selector)


def _flags_of_plugin(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the flags of a program in Go with their values: `-flag=value`, `--flag value`."""
    for word, following in pairwise((*words, "")):
        flag, separator, value = word.partition("=")
        yield f"-{flag.lstrip('-')}", value if separator else following


def _check_intel_shares(path: FieldPath, name: str, count: int, each: PodsAndNodes) -> Iterator[Problem]:
    """Report several devices if they may be shares of one GPU on each node that fits the pods."""
    plugins = intel_plugins(each.view)
    of_nodes = [[plugin for plugin in plugins if plugin.is_selected(offer)] or plugins for offer in each.fitting]
    if of_nodes and all(
        of_node and all(plugin.may_repeat_a_gpu(count, offer.amounts.get(name, 0)) for plugin in of_node)
        for of_node, offer in zip(of_nodes, each.fitting, strict=True)
    ):
        first = of_nodes[0][0]
        message = f"requests {count}, but with {first.setting} {first.shares} these may be shares of the same GPU"
        yield INTEL.problem(
            path, message, f"request `{name}: 1`, or ask the administrator to set {first.setting} 1 in the plugin"
        )
