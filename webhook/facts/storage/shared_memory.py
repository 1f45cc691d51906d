"""Shared memory of containers in which PyTorch uses several GPUs.

A container runtime gives /dev/shm 64 MiB, which NCCL and data loaders exhaust: https://github.com/NVIDIA/nccl/issues/525.
That a PyTorchJob has no larger one is told with the rules of its operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.command_lines.command import launched
from webhook.facts.gpu.device_pods import LAUNCHERS, DevicePods, path_of, workload
from webhook.facts.gpu.resources import devices_of
from webhook.facts.pods.containers import Container
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("storage").problem
_PATH: Final = "/dev/shm"  # noqa: S108 - a mount inside a container
MORE_SHARED_MEMORY: Final = "mount an emptyDir with medium Memory and a sizeLimit of several GiB at /dev/shm"
_DEFAULT: Final = 64 * 2**20
Limits: TypeAlias = dict[JSON, tuple[int, JSON]]
"""The positions and size limits of volumes by their names."""
_TORCH: Final = re.compile(r"torch|vllm|sglang|megatron|nemo|deepspeed")
"""Images whose programs use NCCL in several processes."""


def advise_shared_memory(subject: Subject) -> Iterator[Problem]:
    """Containers with several GPUs and no more shared memory than any other container has."""
    for pods in subject.once(workload).device_pods:
        limits: Limits | None = None
        for container in pods.containers if pods.spec.get("hostIPC") is not True else ():
            gpus = devices_of(mapping(container.value.get("resources")), subject.deadline)
            if gpus > 1 and _uses_torch(container, subject):
                limits = _limits(pods, subject) if limits is None else limits
                yield from _size(pods, container, gpus, limits, subject)


def _limits(pods: DevicePods, subject: Subject) -> Limits:
    volumes = enumerate(subject.deadline.each(items(pods.spec.get("volumes"))))
    return {mapping(each).get("name"): (index, get(each, ("emptyDir", "sizeLimit"))) for index, each in volumes}


def _uses_torch(container: Container, subject: Subject) -> bool:
    image = text(container.value.get("image"))
    return bool(_TORCH.search(image)) or launched(container.value, subject).by in LAUNCHERS


def _size(pods: DevicePods, container: Container, gpus: int, limits: Limits, subject: Subject) -> Iterator[Problem]:
    mounts = subject.deadline.paced(items(container.value.get("volumeMounts")))
    mount = next((each for each in mounts if _is_shared(mapping(each))), None)
    if mount is None:
        if subject.group_kind != ("kubeflow.org", "PyTorchJob"):
            message = f"has {gpus} GPUs but only 64 MiB of /dev/shm, which is too little for NCCL and data loaders"
            yield problem("shared-memory", path_of(pods, container), message, MORE_SHARED_MEMORY)
        return
    index, limit = limits.get(mount.get("name"), (0, None))
    if _is_small(limit, gpus):
        at = pods.at("volumes", index, "emptyDir", "sizeLimit")
        message = f"is too little shared memory for {gpus} GPUs because NCCL and data loaders use /dev/shm"
        yield problem("shared-memory", at, message, "raise sizeLimit to several GiB", limit)


def _is_shared(mount: dict[str, object]) -> bool:
    return text(mount.get("mountPath")).rstrip("/") == _PATH


def _is_small(limit: object, gpus: int) -> bool:
    """Whether a limit leaves each GPU less than a container has without any volume; 0 is no limit."""
    amount = None if limit is None or is_placeholder(str(limit)) else quantity.read(limit)
    return amount is not None and 0 < amount.value() < _DEFAULT * gpus
