"""How many nodes a launcher waits for, and how many pods an object makes of them.

torchrun takes a number or a range: pytorch/pytorch@010929fd torch/distributed/run.py parse_min_max_nnodes; with static
rendezvous, its default, --node_rank says which of the nodes a pod is. accelerate and deepspeed call both otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.command_lines.node_limits import OPTIONS, node_count_range_of_launch
from webhook.facts.launch.address import check_torchrun_rendezvous_address
from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import LaunchedContainer, PodsTrainingTogether
from webhook.facts.launch.ranks import check_duplicate_node_ranks
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


def check_launcher_nodes_match_pods(
    members: Sequence[LaunchedContainer], together: PodsTrainingTogether
) -> Iterator[Problem]:
    """Report launchers that wait for more pods than there are, or leave some out, and ranks that several pods have."""
    starting: dict[str, int] = {}
    for member in members:
        starting[member.launch.by] = starting.get(member.launch.by, 0) + (member.pods or 0)
    for member in members:
        limits = node_count_range_of_launch(member.launch)
        if limits is not None and together.pods is not None:
            group = starting[member.launch.by] if together.is_one else member.pods or 0
            yield from _check_number_of_nodes(member, limits, group, together)
        if limits is not None and limits[0] > 1 and not together.is_ranked:
            yield from check_torchrun_rendezvous_address(member)
    yield from check_duplicate_node_ranks(members, together)


def _check_number_of_nodes(
    member: LaunchedContainer, limits: tuple[int, int], group: int, together: PodsTrainingTogether
) -> Iterator[Problem]:
    launch, pods = member.launch, together.pods or 0
    option = OPTIONS[launch.by][0]
    if limits[0] > pods and not (together.is_alone and pods < 2) and launch.by != "deepspeed":
        message = f"{launch.by} waits for {launch.nodes} nodes, but there {_pod_count_with_verb(pods)}"
        yield MORE_NODES_THAN_PODS.problem(member.path, message, f"set {option} to {pods}, or make more pods")
    elif limits[1] < group and (limits[1] > 1 or together.is_one):
        alone = "each pod trains on its own" if limits[1] == 1 else "some of the pods do not take part"
        nodes = counted(limits[1], "node")
        message = f"{launch.by} expects {nodes}, but {counted(group, 'pod')} start {launch.by}, so {alone}"
        yield FEWER_NODES_THAN_PODS.problem(member.path, message, f"set {option} to {group}")


def _pod_count_with_verb(pods: int) -> str:
    return f"{'is' if pods == 1 else 'are'} {counted(pods, 'pod')}"
