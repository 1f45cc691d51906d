"""GPUs that a container of a model server hides from itself, or sees beside its own.

CUDA and HIP number the GPUs of a container from 0, and hide everything from the first number on that does not exist.

Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars;
https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

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
CUDA: Final = "CUDA_VISIBLE_DEVICES"
NVIDIA: Final = "NVIDIA_VISIBLE_DEVICES"
_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "nvidia": (CUDA,),
    "amd": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", CUDA),
}
"""Variables with the numbers of visible GPUs; HIP reads that of CUDA too."""
_INDICES: Final = re.compile(r"-?[0-9]{1,4}(\s*,\s*-?[0-9]{1,4})*")
_NONE: Final = frozenset(("void", "none", ""))


def check_visible_devices(member: ServerContainer) -> Iterator[Problem]:
    """Report GPUs that the server hides from itself, and advise on those that it may see beside its own."""
    yield from _check_hidden_gpus(member)
    path, values = member.path, member.container.environment.by_name()
    if member.gpus.vendor != "nvidia" and not member.gpus.by_claims:
        return
    if (values.get(NVIDIA) or "").strip() not in _NONE:
        message = f"sets {NVIDIA} to `{values[NVIDIA]}`, so the container may see GPUs of other pods"
        yield ALL_GPUS_VISIBLE.problem(path, message, f"remove {NVIDIA}; the device plugin sets it", words=(NVIDIA,))
    elif (member.container.json.get("securityContext") or {}).get("privileged") is True:
        message = "is privileged, so the container may see every GPU of the node beside the ones that it requests"
        yield ALL_GPUS_VISIBLE.problem(path, message, "remove privileged from securityContext")


def _check_hidden_gpus(member: ServerContainer) -> Iterator[Problem]:
    gpus = member.gpus.count
    variables = _VARIABLES.get(member.gpus.vendor, ())
    name = next((each for each in variables if each in member.server.variables), "")
    written = member.server.variables.get(name, "")
    if gpus is None or not _INDICES.fullmatch(written.strip()):
        return
    indices = [int(each) for each in written.split(",")]
    beyond = [each for each in indices if not 0 <= each < gpus]
    visible = indices.index(beyond[0]) if beyond else len(indices)
    needed = member.processes.here
    names = f"{name}={written}"
    if beyond:
        library = "HIP" if member.gpus.vendor == "amd" else "CUDA"
        has = "only GPU 0" if gpus == 1 else f"GPUs 0 to {gpus - 1}"
        message = (
            f"{names} names GPU {beyond[0]}, but the container has {has}, so {library} hides this GPU and "
            "those listed after it"
        )
    elif needed is not None and visible < needed:
        message = f"{names} leaves {counted(visible, 'GPU')} visible, but {member.server.name} needs {needed}"
    else:
        return
    yield HIDDEN_GPUS.problem(member.path, message, f"remove {name}", words=(name,))
