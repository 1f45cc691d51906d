"""GPUs that a container of a model server hides from itself, and GPUs of others that it sees.

A variable of the container counts, or one that its command sets (gpu/visible_devices.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.gpu.visible_devices import VARIABLES_BY_VENDOR, may_see_other_gpus, visible_gpus
from webhook.facts.model_servers.groups import MODEL_SERVER
from webhook.facts.model_servers.servers_of_object import ServerContainer
from webhook.rules.problem import Problem
from webhook.text.wording import counted

HIDDEN_GPUS: Final = MODEL_SERVER.rule(
    "model-server/hidden-gpus",
    title="CUDA_VISIBLE_DEVICES hides GPUs that the server needs",
    why=(
        "CUDA numbers the GPUs of a container from 0, not by their numbers on the node. A number that does not exist "
        "hides itself and all numbers after it, and a process without a GPU ends the server."
    ),
    source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars",
)
ALL_GPUS_VISIBLE: Final = MODEL_SERVER.rule(
    "model-server/all-gpus-visible",
    title="A model server may see the GPUs of other pods",
    why=(
        "With NVIDIA_VISIBLE_DEVICES or privileged, a container sees GPUs of the node that it does not request, so "
        "that two pods compute on one GPU."
    ),
    source="https://github.com/NVIDIA/k8s-device-plugin/issues/61",
    level="advice",
    fails="silent",
    issues=("https://github.com/NVIDIA/k8s-device-plugin/issues/87",),
)
NVIDIA: Final = "NVIDIA_VISIBLE_DEVICES"
_NONE: Final = frozenset(("void", "none", ""))


def check_visible_devices(member: ServerContainer) -> Iterator[Problem]:
    """Report GPUs that the server hides from itself. Report GPUs of others that it may see as advice."""
    yield from _check_hidden_gpus(member)
    path, values = member.path, member.container.environment.by_name()
    if member.gpus.vendor != "nvidia" and not member.gpus.by_claims:
        return
    if (values.get(NVIDIA) or "").strip() not in _NONE:
        message = f"sets {NVIDIA} to `{values[NVIDIA]}`, so the container may see GPUs of other pods"
        yield ALL_GPUS_VISIBLE.problem(path, message, f"remove {NVIDIA}; the device plugin sets it", words=(NVIDIA,))
    elif member.container.security_context.privileged:
        message = "is privileged, so the container may see every GPU of the node beside the ones that it requests"
        yield ALL_GPUS_VISIBLE.problem(path, message, "remove privileged from securityContext")


def _check_hidden_gpus(member: ServerContainer) -> Iterator[Problem]:
    gpus, vendor = member.gpus.count, member.gpus.vendor
    name = next((each for each in VARIABLES_BY_VENDOR.get(vendor, ()) if each in member.server.variables), "")
    written = member.server.variables.get(name, "")
    visible = None if gpus is None else visible_gpus(name, written, gpus, vendor)
    if visible is None or may_see_other_gpus(member.container):
        return
    needed, message = member.processes.here, visible.fault
    if not message:
        if needed is None or visible.number >= needed:
            return
        message = f"{name}={written} leaves {counted(visible.number, 'GPU')} visible, but {member.server.name} needs "
        message += str(needed)
    yield HIDDEN_GPUS.problem(member.path, message, f"remove {name}", words=(name,))
