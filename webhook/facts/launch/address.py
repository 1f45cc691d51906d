"""Where the nodes of a training meet: torchrun waits at 127.0.0.1 unless it is told of another address.

Source: pytorch/pytorch@010929fd torch/distributed/run.py get_rdzv_endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import LaunchedContainer
from webhook.problem import Problem

NO_ADDRESS: Final = LAUNCH.rule(
    "launch/no-address",
    title="Launchers on several nodes are told where to meet.",
    why=(
        "torchrun does not read MASTER_ADDR. Without --master_addr, --rdzv_endpoint or their variables "
        "PET_MASTER_ADDR and PET_RDZV_ENDPOINT every node waits for the others at 127.0.0.1. The operators of "
        "PyTorchJobs and TrainJobs set them."
    ),
    refused_by="nobody, the launcher waits",
    function="get_rdzv_endpoint",
)
_LOCAL: Final = re.compile(r"(localhost|127\.0\.0\.1|\[?::1\]?)(:[0-9]+)?")
_ADDRESSES: Final = frozenset(("PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"))


def check_torchrun_rendezvous_address(member: LaunchedContainer) -> Iterator[Problem]:
    """Report nodes that never find each other: torchrun meets at 127.0.0.1 unless it is told of another place."""
    launch = member.launch
    if launch.by != "torchrun" or not launch.whole or launch.node_rank == "0":  # node 0 may be where the others meet it
        return
    if member.has_other_env or not _ADDRESSES.isdisjoint(member.env):
        return
    if not launch.address or _LOCAL.fullmatch(launch.address):
        said = f"uses the address {launch.address}" if launch.address else "has no address and uses 127.0.0.1"
        message = f"torchrun waits for {launch.nodes} nodes, but {said}, where each pod finds only itself"
        yield NO_ADDRESS.problem(
            member.path, message, "set --master_addr, or --rdzv_endpoint, to the address of the first pod"
        )
