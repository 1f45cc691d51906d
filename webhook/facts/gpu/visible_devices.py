"""Variables of a container that list its visible GPUs by number. The numbers of a container's GPUs begin with 0.

CUDA and HIP ignore the first number that does not exist and all numbers after it. A container that may see other GPUs
is not checked, because the numbers of the requested GPUs are then not known.

Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars;
https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.gpu.resources import read_device_containers
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.pod_parts import VISIBLE
from webhook.typed.pods import Container

GPU_REQUESTS: Final = RuleGroup(
    "gpu-requests",
    source="NVIDIA/k8s-device-plugin README.md",
    level="warn",
    fails="pending",
)
"""Rules about GPU requests that Kubernetes accepts and that are probably not intended."""
HIDDEN_GPUS: Final = GPU_REQUESTS.rule(
    "gpu-requests/hidden-gpus",
    title="CUDA_VISIBLE_DEVICES names GPUs that the container does not have",
    why=(
        "CUDA numbers the GPUs of a container from 0, not by their numbers on the node. CUDA ignores a number that "
        "does not exist, and all later numbers in the list."
    ),
    source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars",
    fails="start",
)
CUDA: Final = "CUDA_VISIBLE_DEVICES"
HIP: Final = "HIP_VISIBLE_DEVICES"
ROCR: Final = "ROCR_VISIBLE_DEVICES"
VARIABLES_BY_VENDOR: Final[Mapping[str, tuple[str, ...]]] = {"nvidia": (CUDA,), "amd": (HIP, ROCR, CUDA)}
"""Variables with the numbers of visible GPUs, by vendor. HIP also reads the variable of CUDA."""
_NAMES: Final = frozenset((CUDA, HIP, ROCR))
_RESOURCES: Final[Mapping[str, str]] = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}
_INDICES: Final = re.compile(r"-?[0-9]{1,4}(\s*,\s*-?[0-9]{1,4})*")
_LONGEST: Final = 1024
"""A longer list of GPUs is not read; no node needs a longer list."""


class VisibleGpus(NamedTuple):
    """The number of GPUs that a variable makes visible, and why a listed GPU stays hidden; "" if no listed GPU is
    hidden.
    """

    number: int
    fault: str


def visible_gpus(name: str, written: str, gpus: int, vendor: str) -> VisibleGpus | None:
    """Return how many GPUs of a container a variable makes visible; None if the value is not a list of numbers."""
    if len(written) > _LONGEST or not _INDICES.fullmatch(written.strip()):
        return None
    indices = [int(each) for each in written.split(",")]
    beyond = [each for each in indices if not 0 <= each < gpus]
    if not beyond:
        return VisibleGpus(len(set(indices)), "")
    has = "only GPU 0" if gpus == 1 else f"GPUs 0 to {gpus - 1}"
    library = "HIP" if vendor == "amd" else "CUDA"
    fault = f"{name}={written} names GPU {beyond[0]}, but the container has {has}, so {library} hides this GPU and "
    return VisibleGpus(indices.index(beyond[0]), f"{fault}all GPUs that are listed after it")


def may_see_other_gpus(container: Container) -> bool:
    """Return whether a container may see GPUs that it did not request. Then the numbers of the requested GPUs are not
    known.
    """
    return container.security_context.privileged or VISIBLE in container.environment.names


def check_hidden_gpus(subject: Subject) -> Iterator[Problem]:
    """Report variables with numbers of GPUs that the container does not have."""
    for each in subject.once(read_device_containers):
        if _NAMES.isdisjoint(each.container.environment.names):
            continue
        only = each.requested[0] if len(each.requested) == 1 else None
        vendor = _RESOURCES.get(only.name, "") if only is not None else ""
        if only is None or not vendor or not only.whole_amount or may_see_other_gpus(each.container):
            continue
        if cached_launch_of_container(each.container, subject).by:
            yield from _check_container(each.container, only.whole_amount, vendor)


def _check_container(container: Container, gpus: int, vendor: str) -> Iterator[Problem]:
    values = container.environment.by_name()
    for name in VARIABLES_BY_VENDOR[vendor]:
        visible = visible_gpus(name, values.get(name) or "", gpus, vendor)
        if visible is not None and visible.fault and name not in container.command_line:
            is_conditional = True  # the program may need only the visible GPUs
            fix = f"remove {name}"
            yield HIDDEN_GPUS.problem(container.at, visible.fault, fix, words=(name,), is_conditional=is_conditional)
            return
