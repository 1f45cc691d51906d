"""GPU requests that Kubernetes takes and that are probably not meant.

Which GPUs a container sees that requests none: NVIDIA/k8s-device-plugin README. The device plugins of AMD and Intel
give such a container nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.command_lines.command import MPI, launched
from webhook.facts.gpu import devices
from webhook.facts.gpu.requested_devices import DeviceContainer, RequestedDevice, device_containers, requests_devices
from webhook.facts.pods.amounts import name_of
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.problem import Problem

problem: Final = Group("gpu-requests").problem
_OTHER_VENDORS: Final = re.compile("rocm|amdgpu|intel")
_SEES_NOTHING: Final = ("none", "void")
_OTHERS_DECIDE: Final = frozenset(
    (
        "MPIJob",  # its operator keeps its launcher from GPUs
        "TrainingRuntime",  # gets its resources from the TrainJob
        "ClusterTrainingRuntime",
        "RoleBasedGroup",  # a role may add resources to its template
        "DaemonSet",  # looks after the devices of each node
    )
)
"""Kinds whose templates do not say alone what their pods request."""
_NEED_NONE: Final = frozenset(
    (
        *(("TFJob", role) for role in ("ps", "evaluator", "chief", "master")),
        *((kind, "head") for kind in ("RayCluster", "RayJob", "RayService", "RayCronJob", "RayClusterFleet")),
        *((kind, "submitter") for kind in ("RayJob", "RayCronJob")),
    )
)
"""Roles, in lower case, that have the image of the workers and no GPU on purpose."""


def gpu_requests(subject: Subject) -> Iterator[Problem]:
    """Everything that is probably not meant of the GPUs that a pod requests."""
    containers, deadline = subject.once(device_containers), subject.deadline
    has_devices = subject.once(requests_devices)
    for each in deadline.each(containers):
        if not has_devices and _sees_gpus(each, subject) and subject.once(_asks_for_nothing):
            if not _starts_elsewhere(each, subject):
                yield _every_gpu_visible(each, subject)
        elif not each.requested:
            continue
        elif _has_slices_and_devices(each):
            yield _slices_with_devices(each)
        elif _keeps_devices(each, subject):
            yield _init_container_keeps(each)
        for device in deadline.each(each.requested):
            yield from _doubtful_device(device, each)


def _asks_for_nothing(subject: Subject) -> bool:
    """Whether a pod without devices gets none by a claim, an annotation or another kind's controller either.

    Some schedulers share GPUs by an annotation: gpu-fraction and gpu-memory of NVIDIA/KAI-Scheduler.
    """
    if subject.template_of is not None:
        kind = subject.template_of.kind
        if kind in _OTHERS_DECIDE or (kind, subject.pod_set.lower()) in _NEED_NONE:
            return False
    spec, metadata = mapping(subject.object.get("spec")), mapping(subject.object.get("metadata"))
    if spec.get("resourceClaims") or any("gpu" in key for key in mapping(metadata.get("annotations"))):
        return False
    images = (text(mapping(each).get("image")) for each in items(spec.get("containers")))
    return not any(_OTHER_VENDORS.search(image) for image in images)


def _sees_gpus(each: DeviceContainer, subject: Subject) -> bool:
    visible = each.visible_devices
    if each.container.init or visible in _SEES_NOTHING:
        return False
    return bool(visible) or each.is_gpu_image or subject.once(_gpu_runtime) != ""


def _starts_elsewhere(each: DeviceContainer, subject: Subject) -> bool:
    """Whether it only starts processes on other hosts, as the master of an MPI job does."""
    started = launched(each.container.value, subject)
    return started.by in MPI and started.hosts


def _gpu_runtime(subject: Subject) -> str:
    """The runtime class of a pod where it is known to give access to GPUs, else ""."""
    runtime_class = text(mapping(subject.object.get("spec")).get("runtimeClassName"))
    return runtime_class if runtime_class in devices.catalogue().runtime_classes else ""


def _every_gpu_visible(each: DeviceContainer, subject: Subject) -> Problem:
    """What asks for GPUs is told, the surest first: a name says of an image or a class what it is probably for."""
    visible, runtime_class = each.visible_devices, subject.once(_gpu_runtime)
    sees, fix = "requests no GPU and probably sees every GPU of its node", "request a GPU"
    if visible:
        what = "all of its GPUs" if visible == "all" else "GPUs that other pods may use"
        message = f"requests no GPU, but NVIDIA_VISIBLE_DEVICES `{visible}` asks its node for {what}"
        fix = f"{fix}, or set the variable to none"
    elif runtime_class:
        message, fix = f"{sees} because of runtime class `{runtime_class}`", f"{fix}, or use another runtime class"
    else:
        message = f"{sees} because image `{text(each.container.value.get('image'))}` is made for GPUs"
        fix = f"{fix}, or set NVIDIA_VISIBLE_DEVICES to none"
    return problem("every-gpu-visible", each.container.path, message, fix)


def _has_slices_and_devices(each: DeviceContainer) -> bool:
    if len(each.requested) < 2:
        return False
    slices = [asked for asked in each.requested if asked.device.kind == "slice" and asked.device.gpu]
    whole = [asked for asked in each.requested if asked.device.kind == "device" and asked.device.vendor == "nvidia"]
    return any(asked.number for asked in slices) and any(asked.number for asked in whole)


def _slices_with_devices(each: DeviceContainer) -> Problem:
    message = "requests whole GPUs and MIG slices, but CUDA programs then see only a slice, so the whole GPUs stay idle"
    return problem("slices-with-devices", each.container.path, message, "request only GPUs or only slices")


def _keeps_devices(each: DeviceContainer, subject: Subject) -> bool:
    """Whether an init container has more devices than the containers that run as long as the pod."""
    if not each.container.init or each.container.restarts:
        return False
    return each.devices > subject.once(_lasting_devices)


def _lasting_devices(subject: Subject) -> int:
    """Devices of the containers that run as long as the pod."""
    listed = subject.deadline.each(subject.once(device_containers))
    return sum(each.devices for each in listed if not each.container.init or each.container.restarts)


def _init_container_keeps(each: DeviceContainer) -> Problem:
    message = "requests more GPUs than the containers that run after it, and the pod keeps all of them until it ends"
    fix = "request as many GPUs for the containers, or do the work of the init container in another pod"
    return problem("init-container-keeps", each.container.path, message, fix)


def _doubtful_device(asked: RequestedDevice, each: DeviceContainer) -> Iterator[Problem]:
    name, kind = asked.name, asked.device.kind
    if not kind:
        if not name_of(name).is_qualified:
            return  # the API server refuses the name, which is told by pod-resources
        message = f"`{name}` is not a resource of a known device plugin, so the pod would stay Pending"
        yield problem("unknown-device", each.path_of(asked), message, f"write `{asked.nearest}` if that is meant")
    elif kind == "shared" and asked.number > 1 and name.startswith("nvidia.com/"):
        message = (
            "must be 1 because several shares give no more of the GPU than one share, and the device plugin may "
            "refuse them"
        )
        yield problem("several-shares", each.path_of(asked), message, "set 1", asked.number)
    elif kind == "monitor":
        message = "gives the container every GPU of the node because this is the resource for monitoring"
        fix = f"to compute on a GPU, request {name.removesuffix('_monitoring')}"
        yield problem("monitoring-resource", each.path_of(asked), message, fix)
