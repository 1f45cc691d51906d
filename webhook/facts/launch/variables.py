"""Variables by which the pods of a training find each other: those that a controller sets itself, and fixed ones.

Sources: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework pytorch.go and tensorflow.go
OnPodCreate, which append theirs, of which the last counts; kubernetes-sigs/lws@060ab4da pkg/utils/pod/pod_utils.go
addEnvVarsIfNotExists, which puts its own first and leaves out others of their names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import LaunchedContainer
from webhook.problem import Problem

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


def check_overwritten_variables(member: LaunchedContainer, owned: Collection[str], owner: str) -> Iterator[Problem]:
    """Report variables of a container that its controller overwrites."""
    for name in owned:
        if name in member.env:
            message = f"sets variable {name}, but this value is ignored because {owner} sets the variable too"
            yield OPERATOR_VARIABLE.problem(member.path, message, f"remove {name}")
