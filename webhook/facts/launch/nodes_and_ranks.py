"""How many nodes a launcher waits for, where the nodes meet, and which rank each pod has.

torchrun accepts a number of nodes or a range. The nodes meet at 127.0.0.1 unless an option or a PET_ variable sets
another address. With static rendezvous, which is the default, --node_rank is the index of the pod. accelerate and
deepspeed have other names for these options.

Source: pytorch/pytorch@010929fd torch/distributed/run.py parse_min_max_nnodes and get_rdzv_endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.command_lines.command import OPTIONS, node_count_range_of_launch
from webhook.facts.launch.member import LAUNCH, LaunchedContainer, PodsTrainingTogether
from webhook.rules.problem import Problem
from webhook.text.wording import counted

NO_ADDRESS: Final = LAUNCH.rule(
    "launch/no-address",
    title="The launcher lacks the address of the first node",
    why=(
        "torchrun ignores MASTER_ADDR. Without --master_addr or --rdzv_endpoint, every node waits for the other nodes "
        "at its own address 127.0.0.1."
    ),
    refused_by="nothing; the launcher waits",
    function="get_rdzv_endpoint",
)
SAME_NODE_RANK: Final = LAUNCH.rule(
    "launch/same-node-rank",
    title="All pods have the same node rank",
    why=(
        "With static rendezvous each node needs its own rank. Several pods with the same rank do not find each other."
    ),
    function="run",
)
SAME_RANK: Final = LAUNCH.rule(
    "launch/same-rank",
    title="All pods have the same rank",
    why="All pods of a template have the same variables. The processes wait for ranks that do not exist.",
    source="https://pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
)
MORE_NODES_THAN_PODS: Final = LAUNCH.rule(
    "launch/more-nodes-than-pods",
    title="The launcher waits for more nodes than there are pods",
    why="The missing nodes never join, so the training never begins.",
    refused_by="nothing; the launcher waits",
    function="parse_min_max_nnodes",
)
FEWER_NODES_THAN_PODS: Final = LAUNCH.rule(
    "launch/fewer-nodes-than-pods",
    title="The launcher counts fewer nodes than there are pods",
    why="The additional pods do not take part, train alone, or replace other pods.",
    function="parse_min_max_nnodes",
    fails="silent",
)
_LOCAL: Final = re.compile(r"(localhost|127\.0\.0\.1|\[?::1\]?)(:[0-9]+)?")
_TORCHRUN_ADDRESS_VARIABLES: Final = frozenset(("PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"))
_RANK: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_RANKS: Final[Mapping[str, Collection[str]]] = {
    "RANK": ("", "python"),
    "NODE_RANK": ("",),
    "PET_NODE_RANK": ("torchrun",),
}
"""Variables with the index of a pod, each with the launchers that do not overwrite the variable."""
_MASTER_ADDRESS_VARIABLES: Final = frozenset(("MASTER_ADDR", "PET_MASTER_ADDR"))
_TASK: Final = re.compile(r'"task"\s*:')


def check_torchrun_rendezvous_address(member: LaunchedContainer) -> Iterator[Problem]:
    """Report nodes of torchrun that never find each other, because each waits at its own address 127.0.0.1."""
    launch = member.launch
    if launch.by != "torchrun" or not launch.whole or launch.node_rank == "0":  # the other nodes may meet at node 0
        return
    if member.has_other_env or not _TORCHRUN_ADDRESS_VARIABLES.isdisjoint(member.env):
        return
    if not launch.address or _LOCAL.fullmatch(launch.address):
        clause = f"uses the address {launch.address}" if launch.address else "has no address and uses 127.0.0.1"
        message = f"torchrun waits for {launch.nodes} nodes, but {clause}, where each pod finds only itself"
        fix = "set --master_addr, or --rdzv_endpoint, to the address of the first pod"
        yield NO_ADDRESS.problem(member.path, message, fix, words=("--rdzv_endpoint", "--master_addr", "--nnodes"))


def check_duplicate_node_ranks(
    members: Sequence[LaunchedContainer], together: PodsTrainingTogether
) -> Iterator[Problem]:
    """Report a node rank that several pods have."""
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
            yield SAME_NODE_RANK.problem(member.path, message, fix, words=(option,))


def _has_fixed_rank(member: LaunchedContainer, together: PodsTrainingTogether) -> bool:
    launch = member.launch
    if launch.by not in OPTIONS or not _RANK.fullmatch(launch.node_rank) or launch.rendezvous not in ("", "static"):
        return False
    return launch.nodes != "1" and (launch.nodes != "" or together.is_ranked)


def check_rank_fixed_in_template(member: LaunchedContainer, owned: Collection[str], index: str) -> Iterator[Problem]:
    """Report a fixed rank or a fixed task for all pods of a template."""
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
            yield SAME_RANK.problem(member.path, message, f"set {name} from {index}", words=(name,))
    if "TF_CONFIG" not in owned and _TASK.search(member.env.get("TF_CONFIG") or ""):
        message = f"sets the same TF_CONFIG in all {member.pods} pods, so all pods are the same task"
        fix = "give each pod a TF_CONFIG with its own task"
        yield SAME_RANK.problem(member.path, message, fix, words=("TF_CONFIG",))


def _has_rendezvous_address(member: LaunchedContainer) -> bool:
    """Return whether the pods have an address where they meet. Without an address, RANK may have another meaning."""
    return not _MASTER_ADDRESS_VARIABLES.isdisjoint(member.env)


def check_launcher_nodes_match_pods(
    members: Sequence[LaunchedContainer], together: PodsTrainingTogether
) -> Iterator[Problem]:
    """Report launchers that wait for more or fewer pods than exist, and ranks that several pods share."""
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
    if limits[0] > pods and not (together.may_train_with_other_objects and pods < 2) and launch.by != "deepspeed":
        message = f"{launch.by} waits for {launch.nodes} nodes, but there {_pod_count_with_verb(pods)}"
        fix = f"set {option} to {pods}, or create more pods"
        yield MORE_NODES_THAN_PODS.problem(member.path, message, fix, words=(option,))
    elif limits[1] < group and (limits[1] > 1 or together.is_one):
        alone = "each pod trains on its own" if limits[1] == 1 else "some of the pods do not take part"
        nodes = counted(limits[1], "node")
        message = f"{launch.by} expects {nodes}, but {counted(group, 'pod')} start {launch.by}, so {alone}"
        yield FEWER_NODES_THAN_PODS.problem(member.path, message, f"set {option} to {group}", words=(option,))


def _pod_count_with_verb(pods: int) -> str:
    return f"{'is' if pods == 1 else 'are'} {counted(pods, 'pod')}"
