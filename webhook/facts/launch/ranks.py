"""Ranks that several pods have: in the commands of their launchers, and in their variables.

torchrun with static rendezvous, its default, takes --node_rank for the number of the pod: pytorch/pytorch@010929fd
torch/distributed/run.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.command_lines.node_limits import OPTIONS
from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import LaunchedContainer, PodsTrainingTogether
from webhook.problem import Problem

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

SAME_RANK: Final = LAUNCH.rule(
    "launch/same-rank",
    title="Pods of one template do not share a fixed rank or task.",
    why="All pods of a template have the same variables, and the processes wait for the ranks that nobody has.",
    source="https://pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
)
_RANKS: Final[Mapping[str, Collection[str]]] = {
    "RANK": ("", "python"),
    "NODE_RANK": ("",),
    "PET_NODE_RANK": ("torchrun",),
}
"""Variables that number pods, with the launchers that leave them as they are."""
_MEETING: Final = frozenset(("MASTER_ADDR", "PET_MASTER_ADDR"))
_TASK: Final = re.compile(r'"task"\s*:')


def check_duplicate_node_ranks(
    members: Sequence[LaunchedContainer], together: PodsTrainingTogether
) -> Iterator[Problem]:
    """Report numbers of nodes that more than one pod has."""
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


def _has_fixed_rank(member: LaunchedContainer, together: PodsTrainingTogether) -> bool:
    launch = member.launch
    if launch.by not in OPTIONS or not _RANK.fullmatch(launch.node_rank) or launch.rendezvous not in ("", "static"):
        return False
    return launch.nodes != "1" and (launch.nodes != "" or together.is_ranked)


def check_rank_fixed_in_template(member: LaunchedContainer, owned: Collection[str], index: str) -> Iterator[Problem]:
    """Report one rank or one task for all pods of a template."""
    if (member.pods or 0) < 2 or not member.env:
        return
    for name, launchers in _RANKS.items():
        value = member.env.get(name) or ""
        if (
            name not in owned
            and member.launch.by in launchers
            and _RANK.fullmatch(value)
            and _has_rendezvous_address(member)
        ):
            message = f"sets {name} to {value} in all {member.pods} pods, so these pods cannot train together"
            yield SAME_RANK.problem(member.path, message, f"set {name} from {index}")
    if "TF_CONFIG" not in owned and _TASK.search(member.env.get("TF_CONFIG") or ""):
        message = f"sets the same TF_CONFIG in all {member.pods} pods, so all of them are the same task"
        yield SAME_RANK.problem(member.path, message, "give each pod a TF_CONFIG with its own task")


def _has_rendezvous_address(member: LaunchedContainer) -> bool:
    """Return whether the pods are to meet at one address; alone, RANK may mean something else."""
    return not _MEETING.isdisjoint(member.env)
