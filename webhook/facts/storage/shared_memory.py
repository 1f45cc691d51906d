"""Shared memory of containers in which PyTorch uses several GPUs.

A container runtime gives /dev/shm 64 MiB, which NCCL and data loaders exhaust:
https://github.com/NVIDIA/nccl/issues/525. training_jobs/roles.py reports PyTorchJobs with only 64 MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.gpu.device_pods import LAUNCHERS, DevicePods, read_device_workload
from webhook.facts.gpu.resources import count_gpus_of_resources
from webhook.facts.storage.mounts import STORAGE
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.fields import Amount
from webhook.typed.pods import Container
from webhook.typed.volumes import EmptyDir
from webhook.yamltext.placeholders import is_placeholder

SHARED_MEMORY: Final = STORAGE.rule(
    "storage/shared-memory",
    title="A container with several GPUs has only 64 MiB of shared memory",
    why="NCCL and the data loaders of PyTorch use /dev/shm, and fail with bus errors when the 64 MiB are full.",
    source="https://github.com/NVIDIA/nccl/issues/525",
    fails="start",
)
SHARED_MEMORY_LIMIT: Final = STORAGE.rule(
    "storage/shared-memory-limit",
    title="The shared memory volume is larger than the container's memory limit",
    why=(
        "Files in an emptyDir with medium Memory count as memory of the container that writes them. The container is "
        "killed at its memory limit before the volume is full."
    ),
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    fails="start",
)

_PATH: Final = "/dev/shm"  # noqa: S108 - a mount inside a container
MORE_SHARED_MEMORY: Final = "mount an emptyDir with medium Memory and a sizeLimit of several GiB at /dev/shm"
_DEFAULT: Final = 64 * 2**20
_TORCH: Final = re.compile(r"torch|vllm|sglang|megatron|nemo(?!tron)|deepspeed")
"""Parts of the names of images with programs that use NCCL in several processes."""
_SERVES: Final = re.compile(r"vllm|sglang")
"""Parts of the names of images of model servers. model_servers/server_checks.py has the advice for these."""


def advise_shared_memory(subject: Subject) -> Iterator[Problem]:
    """Warn of containers that may use PyTorch on several GPUs with too little shared memory."""
    for pods in subject.once(read_device_workload).device_pods:
        for container in () if pods.spec.host_ipc else pods.containers:
            gpus = count_gpus_of_resources(container.resources)
            problems = _check_size_of_shared_memory(pods, container, gpus, subject) if gpus > 1 else ()
            yield from (each for each in problems if _may_use_torch(container, subject))  # reads the command


def _may_use_torch(container: Container, subject: Subject) -> bool:
    """Return whether a container starts a launcher of PyTorch, or has an image that uses PyTorch."""
    launch = cached_launch_of_container(container, subject)
    return launch.by in LAUNCHERS or (not launch.is_inline and container.is_found_in(_TORCH, (container.image,)))


def _check_size_of_shared_memory(
    pods: DevicePods, container: Container, gpus: int, subject: Subject
) -> Iterator[Problem]:
    mount = next((mount for mount in container.volume_mounts if mount.mount_path.rstrip("/") == _PATH), None)
    if mount is None:
        is_server = container.is_found_in(_SERVES, (container.image,)) and (
            cached_launch_of_container(container, subject).by not in LAUNCHERS
        )
        if subject.group_kind != ("kubeflow.org", "PyTorchJob") and not is_server:
            yield _shared_memory_problem(pods.locate(container.at), gpus)
        return
    volume = next((volume for volume in pods.spec.volumes if volume.name == mount.name), None)
    if volume is not None and _is_small_for_gpus(volume.empty_dir.size_limit, gpus):
        yield _shared_memory_problem(pods.locate(volume.empty_dir.path("sizeLimit")), gpus, volume.empty_dir.size_limit)


def validate_shared_memory_limits(subject: Subject) -> Iterator[Problem]:
    """Warn of a shared memory volume that may grow larger than the memory limit of its container."""
    for pods in subject.once(read_device_workload).device_pods:
        volumes = {volume.name: volume.empty_dir for volume in pods.spec.volumes}
        for container in pods.containers:
            mount = next((mount for mount in container.volume_mounts if mount.mount_path.rstrip("/") == _PATH), None)
            volume = volumes.get(mount.name) if mount is not None else None
            if volume and volume.medium == "Memory":
                yield from _check_memory_limit(pods, container, volume)


def _check_memory_limit(pods: DevicePods, container: Container, volume: EmptyDir) -> Iterator[Problem]:
    """Compare shared memory with the limit of the container, or of the pod if the container has no limit."""
    for resources, who in ((container.resources, "container"), (pods.spec.resources, "pod")):
        limit = resources.limits.get("memory")
        if limit is None:
            continue
        size, memory = _amount_in_bytes(volume.size_limit), _amount_in_bytes(limit)
        if size is not None and memory is not None and 0 < memory < size:
            message = (
                f"is more than the memory limit of the {who} (`{limit}`), and files in /dev/shm count for this limit"
            )
            at = pods.locate(volume.path("sizeLimit"))
            fix = "raise the memory limit above sizeLimit, or lower sizeLimit"
            yield SHARED_MEMORY_LIMIT.problem(
                at, f"{message}, so the container is killed before /dev/shm is full", fix, volume.size_limit
            )
        return


def _shared_memory_problem(path: FieldPath, gpus: int, limit: Amount | None = None) -> Problem:
    """Return the problem of a container with several GPUs and only the default shared memory, or a low sizeLimit. GPUs
    that are connected directly need little shared memory, so the pods need not fail.
    """
    if limit is None:
        message = f"has {gpus} GPUs but only 64 MiB of /dev/shm, which is too little for NCCL and data loaders"
        return SHARED_MEMORY.problem(path, message, MORE_SHARED_MEMORY, needs="volumes", fails="")
    message = f"is too little shared memory for {gpus} GPUs because NCCL and data loaders use /dev/shm"
    return SHARED_MEMORY.problem(path, message, "raise sizeLimit to several GiB", limit, fails="")


def _is_small_for_gpus(limit: Amount | None, gpus: int) -> bool:
    """Return whether a limit is less than 64 MiB for each GPU; 0 means no limit."""
    amount = _amount_in_bytes(limit)
    return amount is not None and 0 < amount < _DEFAULT * gpus


def _amount_in_bytes(written: Amount | None) -> int | None:
    """Return the amount in bytes, rounded up; None for an amount that is not set, or a placeholder."""
    amount = None if written is None or is_placeholder(str(written)) else quantity.read_quantity_or_none(written)
    return None if amount is None else amount.value()
