"""How many nodes a launcher is told to wait for: a number or a range.

pytorch/pytorch@010929fd torch/distributed/run.py parse_min_max_nnodes; accelerate and deepspeed call both otherwise.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.facts.command_lines.command import LaunchedProgram

OPTIONS: Final = {
    "torchrun": ("--nnodes", "--node_rank"),
    "accelerate": ("--num_machines", "--machine_rank"),
    "deepspeed": ("--num_nodes", "--node_rank"),
}
"""The options of each launcher for the number of nodes, and for which of them a pod is."""
_NODES: Final = re.compile(r"([0-9]{1,9})(?::([0-9]{1,9}))?", re.ASCII)


def node_count_range_of_launch(launch: LaunchedProgram) -> tuple[int, int] | None:
    """Return the least and the most nodes that a command asks for; None where it does not say so."""
    match = _NODES.fullmatch(launch.nodes) if launch.by in OPTIONS else None
    return None if match is None else (int(match[1]), int(match[2] or match[1]))
