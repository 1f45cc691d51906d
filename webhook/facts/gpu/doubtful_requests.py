"""GPU requests that Kubernetes takes and that are probably not meant.

Which GPUs a container sees that requests none: NVIDIA/k8s-device-plugin README. The device plugins of AMD and Intel
give such a container nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.gpu.resources import concerns_devices
from webhook.facts.pods.containers import items, mapping, text
from webhook.facts.subject import Subject
from webhook.problem import Problem

problem: Final = Group("gpu-requests").problem
_OTHER_VENDORS: Final = re.compile("rocm|amdgpu|intel")
_SEES_NOTHING: Final = ("none", "void")
_OTHERS_DECIDE: Final = frozenset(
    (
        "MPIJob",  # its operator keeps its launcher from GPUs
        "TFJob",  # its evaluator and parameter servers have the image of its workers and no GPU on purpose
        "TrainingRuntime",  # gets its resources from the TrainJob
        "ClusterTrainingRuntime",
        "RoleBasedGroup",  # a role may add resources to its template
        "DaemonSet",  # looks after the devices of each node
    )
)
"""Kinds whose templates do not say alone what their pods request."""


def gpu_requests(subject: Subject) -> Iterator[Problem]:
    """Everything that is probably not meant of the GPUs that a pod requests."""
    if subject.group_kind == ("", "Pod") and not concerns_devices(subject.object, subject.deadline):
        return
    gpu = subject.fact("gpu")
    containers: Sequence[JSON] = gpu["containers"]
    asks_unseen = _asks_for_nothing(subject, containers)
    has_runtime = any(each["gpuRuntime"] for each in gpu["podSets"])
    # devices of the containers that run as long as the pod
    lasting = sum(each["devices"] for each in containers if not each["init"] or each["restarts"])
    for container in subject.deadline.each(containers):
        if asks_unseen and _sees_gpus(container, has_runtime=has_runtime):
            yield _every_gpu_visible(container)
        elif _has_slices_and_devices(container):
            yield _slices_with_devices(container)
        elif container["init"] and not container["restarts"] and container["devices"] > lasting:
            yield _init_container_keeps(container)
        for resource in subject.deadline.each(container["resources"]):
            yield from _resource(resource)


def _asks_for_nothing(subject: Subject, containers: Sequence[JSON]) -> bool:
    """Whether no container of a pod gets a device: by a resource, a claim, an annotation or another kind's controller.

    Some schedulers share GPUs by an annotation: gpu-fraction and gpu-memory of NVIDIA/KAI-Scheduler.
    """
    if any(each["resources"] for each in containers):
        return False
    if subject.template_of is not None and subject.template_of.kind in _OTHERS_DECIDE:
        return False
    spec, metadata = mapping(subject.object.get("spec")), mapping(subject.object.get("metadata"))
    if spec.get("resourceClaims") or any("gpu" in key for key in mapping(metadata.get("annotations"))):
        return False
    images = (text(mapping(each).get("image")) for each in items(spec.get("containers")))
    return not any(_OTHER_VENDORS.search(image) for image in images)


def _sees_gpus(container: JSON, *, has_runtime: bool) -> bool:
    if container["init"] or container["visibleDevices"] in _SEES_NOTHING:
        return False
    return bool(container["visibleDevices"] or container["gpuImage"] or has_runtime)


def _every_gpu_visible(container: JSON) -> Problem:
    asking = "its image, its runtime class or NVIDIA_VISIBLE_DEVICES asks for GPUs"
    message = f"requests no GPU and will see every GPU of its node because {asking}"
    return problem(
        "every-gpu-visible", container["path"], message, "request a GPU, or set NVIDIA_VISIBLE_DEVICES to none"
    )


def _has_slices_and_devices(container: JSON) -> bool:
    kinds = {
        each["kind"]
        for each in container["resources"]
        if each["count"] > 0 and (each["gpu"] if each["kind"] == "slice" else each["vendor"] == "nvidia")
    }
    return kinds >= {"slice", "device"}


def _slices_with_devices(container: JSON) -> Problem:
    message = "requests whole GPUs and MIG slices, and CUDA programs then see only a slice, so the whole GPUs stay idle"
    return problem("slices-with-devices", container["path"], message, "request only one of the two")


def _init_container_keeps(container: JSON) -> Problem:
    message = "requests more GPUs than the containers that run after it, and the pod keeps them as long as it lives"
    fix = "request as many GPUs for the containers, or do the work of the init container in another pod"
    return problem("init-container-keeps", container["path"], message, fix)


def _resource(resource: JSON) -> Iterator[Problem]:
    name, path = resource["name"], resource["path"]
    if resource["nearest"]:
        message = f"`{name}` is not a resource of a known device plugin, so the pod would stay Pending"
        yield problem("unknown-device", path, message, f"write `{resource['nearest']}` if that is meant")
    elif resource["kind"] == "shared" and resource["count"] > 1 and name.startswith("nvidia.com/"):
        message = "must be 1 because several shares give no more of a GPU than one, and the plugin may refuse them"
        yield problem("several-shares", path, message, "set 1", resource["count"])
    elif resource["kind"] == "monitor":
        message = "gives the container every GPU of the node because this is the resource for monitoring"
        fix = f"to compute on a GPU, request {name.removesuffix('_monitoring')}"
        yield problem("monitoring-resource", path, message, fix)
