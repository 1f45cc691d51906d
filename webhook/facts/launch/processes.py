"""How many processes a launcher starts on the GPUs of its container, in the pods of any kind.

torchrun starts one process unless it is told otherwise, by --nproc_per_node or PET_NPROC_PER_NODE:
pytorch/pytorch@010929fd torch/distributed/run.py determine_local_world_size. PyTorchJobs and TrainJobs are told by
their operators, and have rules of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import LaunchedContainer
from webhook.problem import Problem
from webhook.wording import counted

PROCESSES_AND_GPUS: Final = LAUNCH.rule(
    "launch/processes-and-gpus",
    title="The launcher of a container starts a process for each of its GPUs.",
    why=(
        "GPUs without a process stay idle, and processes without a GPU fail or share one. torchrun starts one process "
        "unless it is told otherwise."
    ),
    function="determine_local_world_size",
    fails="silent",
)

_OPTIONS: Final = {"torchrun": "--nproc_per_node", "accelerate": "--num_processes", "deepspeed": "--num_gpus"}
_COUNT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
PER_NODE: Final = "PET_NPROC_PER_NODE"


def check_processes_match_gpus(member: LaunchedContainer, *, is_told: bool) -> Iterator[Problem]:
    """Report a number of processes that is not the number of GPUs of the container.

    Args:
        member: the container.
        is_told: whether an operator tells torchrun the number where the command does not.
    """
    option, started = _OPTIONS.get(member.launch.by), _count_processes_per_pod(member, is_told=is_told)
    if option is None or started is None or not member.gpus or started == member.gpus:
        return
    both = f"{counted(started, 'process', 'processes')} on {counted(member.gpus, 'GPU')}"
    outcome = "processes without a GPU fail or share one" if started > member.gpus else "some GPUs stay idle"
    fix = f"set {option}={member.gpus}"
    if member.launch.by == "accelerate":
        fix = f"set {option} to {member.gpus} for each machine"
    yield PROCESSES_AND_GPUS.problem(member.path, f"{member.launch.by} starts {both}, so {outcome}", fix)


def _count_processes_per_pod(member: LaunchedContainer, *, is_told: bool) -> int | None:
    """Return how many processes one pod starts; None where nobody can tell."""
    launch = member.launch
    if launch.by != "torchrun" or launch.per_node or not launch.whole or is_told:
        return launch.processes
    if PER_NODE in member.env:
        said = member.env[PER_NODE] or ""
        return int(said) if _COUNT.fullmatch(said) else None
    return None if member.has_other_env else 1
