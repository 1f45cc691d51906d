"""What the arguments of a training script say of nodes and devices: those of PyTorch Lightning's Trainer.

NeMo, BioNeMo and others take them as Hydra does (`trainer.num_nodes=2`), LightningCLI as options
(`--trainer.num_nodes=2`), and scripts by their short names, which count beside another option of the Trainer alone:
`--num_nodes` may be nodes of a graph. Lightning-AI/pytorch-lightning 2.5 fabric/utilities/device_parser.py
refuses more devices than there are, and pytorch/strategies/ddp.py counts nodes times devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.command_lines.command import MPI
from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import LaunchedContainer, PodsTrainingTogether
from webhook.problem import Problem
from webhook.wording import counted

TRAINER_NODES: Final = LAUNCH.rule(
    "launch/trainer-nodes",
    title="A trainer is told of as many nodes as there are pods.",
    why="The trainer waits for nodes that never come, or divides the data among nodes that are not there.",
    refused_by="nobody, the trainer waits or trains on parts of the data",
    source="Lightning-AI/pytorch-lightning 2.5 src/lightning/pytorch/strategies/ddp.py",
    function="distributed_sampler_kwargs",
)
TRAINER_DEVICES: Final = LAUNCH.rule(
    "launch/trainer-devices",
    title="A trainer is told of as many devices as its container has.",
    why="The trainer fails if it is told of more GPUs than it sees, and leaves some idle if it is told of fewer.",
    refused_by="PyTorch Lightning, when the pods start",
    source="Lightning-AI/pytorch-lightning 2.5 src/lightning/fabric/utilities/device_parser.py",
    function="_sanitize_gpu_ids",
    fails="start",
)

_SAID: Final = re.compile(
    r"(?:^|\s)(?:\+{0,2}trainer\.|--trainer\.|(--))(num[_-]nodes|devices)(?:=|\s+)['\"]?([0-9]{1,6})['\"]?(?=\s|$|;|\\)"
)
_OF_LIGHTNING: Final = re.compile(r"(?:^|\s)--(?:accelerator|strategy|devices)(?:=|\s)")
_LONGEST: Final = 128 * 1024
"""Characters: Linux MAX_ARG_STRLEN, as for scripts elsewhere."""


def check_trainer_devices_and_nodes(
    members: Sequence[LaunchedContainer], together: PodsTrainingTogether | None
) -> Iterator[Problem]:
    """Report trainers whose options name another number of devices or nodes than there is; of nodes only where their
    pods train together.
    """
    for member in members:
        said = _read_trainer_number_options(member)
        devices, nodes = said.get("devices"), said.get("num-nodes")
        if devices is not None:
            yield from _check_number_of_devices(member, devices)
        if nodes is not None and together is not None:
            yield from _check_number_of_nodes(member, nodes, together)


def _check_number_of_devices(member: LaunchedContainer, devices: int) -> Iterator[Problem]:
    gpus = member.gpus
    if gpus and devices not in (0, gpus):
        outcome = "so the trainer fails" if devices > gpus else "so some GPUs stay idle"
        message = f"tells the trainer of {counted(devices, 'device')}, but the container has {counted(gpus, 'GPU')}"
        yield TRAINER_DEVICES.problem(member.path, f"{message}, {outcome}", f"set devices to {gpus}")


def _check_number_of_nodes(member: LaunchedContainer, nodes: int, together: PodsTrainingTogether) -> Iterator[Problem]:
    pods = together.pods
    if pods is None or nodes == pods or (together.is_alone and pods < 2):
        return
    if nodes > pods or together.is_one:
        outcome = "so the trainer waits for the others" if nodes > pods else "so the data is divided wrongly"
        message = f"tells the trainer of {counted(nodes, 'node')}, but there {_pod_count_with_verb(pods)}, {outcome}"
        yield TRAINER_NODES.problem(member.path, message, f"set num_nodes to {pods}")


def _pod_count_with_verb(pods: int) -> str:
    return f"{'is' if pods == 1 else 'are'} {counted(pods, 'pod')}"


def _read_trainer_number_options(member: LaunchedContainer) -> dict[str, int]:
    """Return the numbers that its words say once, or the same each time; mpirun starts its program in other pods."""
    text = " ".join(member.words)
    if member.launch.by in MPI or len(text) > _LONGEST:
        return {}
    is_lightning = _OF_LIGHTNING.search(text) is not None
    given: dict[str, set[int]] = {}
    for is_short, name, number in _SAID.findall(text):
        if not is_short or is_lightning:
            given.setdefault(name.replace("_", "-"), set()).add(int(number))
    return {name: next(iter(numbers)) for name, numbers in given.items() if len(numbers) == 1}
