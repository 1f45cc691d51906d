"""Variables by which the pods of a training find each other: those that a controller sets itself, and fixed ones.

Sources: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework pytorch.go and tensorflow.go
OnPodCreate, which append theirs, of which the last counts; kubernetes-sigs/lws@060ab4da pkg/utils/pod/pod_utils.go
addEnvVarsIfNotExists, which puts its own first and leaves out others of their names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import Member
from webhook.problem import Problem

SAME_RANK: Final = LAUNCH.rule(
    "launch/same-rank",
    title="Pods of one template do not share a fixed rank or task.",
    why="All pods of a template have the same variables, and the processes wait for the ranks that nobody has.",
    source="https://pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
)
OPERATOR_VARIABLE: Final = LAUNCH.rule(
    "launch/operator-variable",
    title="A container does not set the variables of its controller.",
    why="The controller sets them itself in every pod, and what the container says of them is ignored.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework",
    function="OnPodCreate",
    severity="low",
    fails="silent",
)

PYTORCH: Final = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
TENSORFLOW: Final = ("TF_CONFIG",)
LEADER_WORKER_SET: Final = ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX")
_RANKS: Final[Mapping[str, Collection[str]]] = {
    "RANK": ("", "python"),
    "NODE_RANK": ("",),
    "PET_NODE_RANK": ("torchrun",),
}
"""Variables that number pods, with the launchers that leave them as they are."""
_FIXED: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_MEETING: Final = frozenset(("MASTER_ADDR", "PET_MASTER_ADDR"))
_TASK: Final = re.compile(r'"task"\s*:')


def validate_owned(member: Member, owned: Collection[str], owner: str) -> Iterator[Problem]:
    """Variables of a container that its controller overwrites."""
    for name in owned:
        if name in member.env:
            message = f"sets variable {name}, but this value is ignored because {owner} sets the variable too"
            yield OPERATOR_VARIABLE.problem(member.path, message, f"remove {name}")


def validate_fixed(member: Member, owned: Collection[str], index: str) -> Iterator[Problem]:
    """One rank or one task for all pods of a template."""
    if (member.pods or 0) < 2 or not member.env:
        return
    for name, launchers in _RANKS.items():
        value = member.env.get(name) or ""
        if name not in owned and member.launch.by in launchers and _FIXED.fullmatch(value) and _meets(member):
            message = f"sets {name} to {value} in all {member.pods} pods, so these pods cannot train together"
            yield SAME_RANK.problem(member.path, message, f"set {name} from {index}")
    if "TF_CONFIG" not in owned and _TASK.search(member.env.get("TF_CONFIG") or ""):
        message = f"sets the same TF_CONFIG in all {member.pods} pods, so all of them are the same task"
        yield SAME_RANK.problem(member.path, message, "give each pod a TF_CONFIG with its own task")


def _meets(member: Member) -> bool:
    """Whether the pods are to meet at one address; alone, RANK may mean something else."""
    return not _MEETING.isdisjoint(member.env)
