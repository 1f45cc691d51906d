"""How many nodes a launcher waits for, and how many pods an object makes of them.

torchrun takes a number or a range: pytorch/pytorch@010929fd torch/distributed/run.py parse_min_max_nnodes; with static
rendezvous, its default, --node_rank says which of the nodes a pod is. accelerate and deepspeed call both otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.facts.command_lines.node_limits import OPTIONS, limits_of
from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import Member
from webhook.problem import Problem
from webhook.wording import counted

MORE_NODES_THAN_PODS: Final = LAUNCH.rule(
    "launch/more-nodes-than-pods",
    title="A launcher waits for no more nodes than there are pods.",
    why="The missing nodes never come, so the training never begins.",
    refused_by="nobody, the launcher waits",
    function="parse_min_max_nnodes",
)
FEWER_NODES_THAN_PODS: Final = LAUNCH.rule(
    "launch/fewer-nodes-than-pods",
    title="A launcher is told of all pods that start it.",
    why="The pods beyond the number of nodes are left out, train alone, or take the place of others.",
    function="parse_min_max_nnodes",
    fails="silent",
)
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
SAME_NODE_RANK: Final = LAUNCH.rule(
    "launch/same-node-rank",
    title="Each pod of a training has a node rank of its own.",
    why=(
        "With static rendezvous the rank in the command decides which node a pod is. Several pods with one rank never "
        "meet."
    ),
    function="run",
)

_RANK: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


_LOCAL: Final = re.compile(r"(localhost|127\.0\.0\.1|\[?::1\]?)(:[0-9]+)?")
_ADDRESSES: Final = frozenset(("PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The pods of an object that may train together.

    Args:
        pods: all pods of one group; None where nobody can tell.
        is_one: whether the object is one training, so that a pod that trains alone is not meant.
        is_alone: whether pods of other objects may belong to it.
        is_ranked: whether its operator tells each launcher how many nodes there are and which it is.
        index: where a pod finds its number.
    """

    pods: int | None
    is_one: bool
    is_alone: bool
    is_ranked: bool
    index: str


def validate_nodes(members: Sequence[Member], together: Together) -> Iterator[Problem]:
    """Launchers that wait for more pods than there are, or that leave some out, and ranks that several pods have."""
    starting: dict[str, int] = {}
    for member in members:
        starting[member.launch.by] = starting.get(member.launch.by, 0) + (member.pods or 0)
    for member in members:
        limits = limits_of(member.launch)
        if limits is not None and together.pods is not None:
            group = starting[member.launch.by] if together.is_one else member.pods or 0
            yield from _count(member, limits, group, together)
        if limits is not None and limits[0] > 1 and not together.is_ranked:
            yield from _address(member)
    yield from _ranks(members, together)


def _count(member: Member, limits: tuple[int, int], group: int, together: Together) -> Iterator[Problem]:
    launch, pods = member.launch, together.pods or 0
    option = OPTIONS[launch.by][0]
    if limits[0] > pods and not (together.is_alone and pods < 2) and launch.by != "deepspeed":
        message = f"{launch.by} waits for {launch.nodes} nodes, but there {_are(pods)}"
        yield MORE_NODES_THAN_PODS.problem(member.path, message, f"set {option} to {pods}, or make more pods")
    elif limits[1] < group and (limits[1] > 1 or together.is_one):
        alone = "each pod trains on its own" if limits[1] == 1 else "some of the pods do not take part"
        nodes = counted(limits[1], "node")
        message = f"{launch.by} expects {nodes}, but {counted(group, 'pod')} start {launch.by}, so {alone}"
        yield FEWER_NODES_THAN_PODS.problem(member.path, message, f"set {option} to {group}")


def _address(member: Member) -> Iterator[Problem]:
    """Nodes that never find each other: torchrun meets at 127.0.0.1 unless it is told of another place."""
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


def _are(pods: int) -> str:
    return f"{'is' if pods == 1 else 'are'} {counted(pods, 'pod')}"


def _ranks(members: Sequence[Member], together: Together) -> Iterator[Problem]:
    """Numbers of nodes that more than one pod has."""
    fixed = [member for member in members if _has_fixed_rank(member, together)]
    holders: dict[tuple[str, int], int] = {}
    for member in fixed:
        key = member.launch.by, int(member.launch.node_rank)
        holders[key] = holders.get(key, 0) + (member.pods or 0)
    for member in fixed:
        rank = int(member.launch.node_rank)
        pods = holders[member.launch.by, rank]
        if pods > 1:
            option = OPTIONS[member.launch.by][1]
            message = f"{option} gives all {pods} pods the node rank {rank}, so these pods cannot train together"
            fix = f"remove {option}" if together.is_ranked else f"set the node rank from {together.index}"
            yield SAME_NODE_RANK.problem(member.path, message, fix)


def _has_fixed_rank(member: Member, together: Together) -> bool:
    launch = member.launch
    if launch.by not in OPTIONS or not _RANK.fullmatch(launch.node_rank) or launch.rendezvous not in ("", "static"):
        return False
    return launch.nodes != "1" and (launch.nodes != "" or together.is_ranked)
