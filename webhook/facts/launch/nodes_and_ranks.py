"""How many nodes a launcher waits for, where the nodes meet, and which rank each pod has.

torchrun accepts a number of nodes or a range. The nodes meet at 127.0.0.1 unless an option or a PET_ variable sets
another address. With static rendezvous, which is the default, --node_rank is the index of the pod. accelerate and
deepspeed have other names for these options.

The address is mostly the DNS name of a pod (pods/pod_addresses.py).

Source: pytorch/pytorch@010929fd torch/distributed/run.py parse_min_max_nnodes and get_rdzv_endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.command_lines.command import OPTIONS, node_count_range_of_launch
from webhook.facts.launch.member import LAUNCH, LaunchedContainer, PodsTrainingTogether, pod_count_with_verb
from webhook.facts.pods.pod_addresses import NamesOfPods, PodAddress, names_of_pods, read_pod_address
from webhook.facts.subject import Subject
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
ADDRESS_OF_NO_POD: Final = LAUNCH.rule(
    "launch/address-of-no-pod",
    title="No pod has the address where the pods meet",
    why=(
        "DNS knows a pod only by its host name and its subdomain. A Job without completionMode Indexed has pods with "
        "random host names. A Job sets no subdomain, so its pod template must set the subdomain. DNS does not find "
        "any other name."
    ),
    refused_by="nothing; the pods wait for each other and then fail",
    source="kubernetes/kubernetes v1.36.2 staging/src/k8s.io/endpointslice/util/controller_utils.go",
    function="ShouldSetHostname",
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
RENDEZVOUS_ID: Final = LAUNCH.rule(
    "launch/rendezvous-id",
    title="Each pod has its own rendezvous id",
    why=(
        "The nodes of one training have the same rendezvous id. A shell computes a random number, a time or a host "
        "name in each pod, so the nodes do not find each other."
    ),
    refused_by="nothing; the launcher waits",
    source="pytorch/pytorch@010929fd torch/distributed/elastic/rendezvous",
)
_ID_COMPUTED_IN_POD: Final = re.compile(
    r"--rdzv[-_]id[ =][\"']?("
    r"\$\{?(?:RANDOM|SRANDOM|HOSTNAME|EPOCHSECONDS)\b\}?|\$\$"
    r"|(?:\$\(|`) ?(?:uuidgen|hostname|date|date \+[\"']?%s[\w%.-]{0,9}[\"']?|cat /proc/sys/kernel/random/uuid) ?"
    r"(?:\)|`))"
)
"""Matches an id that a shell computes in each pod. A date without seconds is equal in all pods, and is not matched."""
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


def check_torchrun_rendezvous_address(container: LaunchedContainer) -> Iterator[Problem]:
    """Report nodes of torchrun that never find each other, because each node waits at its own 127.0.0.1."""
    launch = container.launch
    if launch.by != "torchrun" or not launch.whole or launch.node_rank == "0":  # the other nodes may meet at node 0
        return
    if container.has_other_env or not _TORCHRUN_ADDRESS_VARIABLES.isdisjoint(container.env):
        return
    if not launch.address or _LOCAL.fullmatch(launch.address):
        clause = f"uses the address {launch.address}" if launch.address else "has no address and uses 127.0.0.1"
        message = f"torchrun waits for {launch.nodes} nodes, but {clause}, where each pod finds only itself"
        option = "--master_addr" if launch.rendezvous in ("", "static") else "--rdzv_endpoint"
        fix = (
            "write the address of the first pod" if launch.address else f"set {option} to the address of the first pod"
        )
        yield NO_ADDRESS.problem(container.path, message, fix, words=("--rdzv_endpoint", "--master_addr", "--nnodes"))


def check_address_of_pod(
    container: LaunchedContainer, together: PodsTrainingTogether, subject: Subject
) -> Iterator[Problem]:
    """Report an address at which the pods cannot meet.

    The address names a pod of this object with another subdomain or index, so DNS does not have the address. Or the
    address names a pod of another object, although all nodes are pods of this object.
    """
    names = subject.once(names_of_pods) if (container.pods or 0) > 1 else {}
    for address in _rendezvous_addresses(container) if names else ():
        named = read_pod_address(address, subject.namespace)
        if named is None:
            continue
        clause, fix = _fault_of_address(named, names) or _fault_of_other_owner(named, container, together, subject)
        if clause:
            message = f"the pods meet at {named.pod}.{named.subdomain}, but {clause}"
            yield ADDRESS_OF_NO_POD.problem(container.path, message, fix, words=(address,))
            return


def _fault_of_address(address: PodAddress, names: Mapping[str, NamesOfPods]) -> tuple[str, str] | None:
    """Return why no pod has the address, and a fix.

    Return two empty texts if a pod may have the address. Return None if the address names no pod of the object.
    """
    host, job = address.host, ""
    pods = names.get(host)
    if pods is None:
        host, _, job = host.rpartition("-")
        pods = names.get(host)
    if pods is None or bool(job) != (pods.replicas is not None):
        return None
    subdomain, actual = address.subdomain, pods.subdomain
    service = f"set subdomain {subdomain} in {pods.place}, and create a headless Service {subdomain} for the pods"
    if not pods.indexes:
        fix = "set completionMode: Indexed and completions"
        clause = "the Job is not Indexed, so its pods have random host names"
        return clause, fix if actual == subdomain else f"{fix}, {service}"
    if actual != subdomain:
        clause = (
            f"the pods have names below `{actual}`" if actual else "the pods have no subdomain, so DNS has no such name"
        )
        return clause, f"write {actual} in place of {subdomain}" if actual else service
    if address.index >= pods.indexes:
        return f"the indexes of the pods end with {pods.indexes - 1}", "write the index of the first pod, 0"
    if pods.replicas is not None and job.isdecimal() and int(job[:9]) >= pods.replicas:
        return f"the indexes of the jobs end with {pods.replicas - 1}", "write the index of the first job, 0"
    return "", ""


def _fault_of_other_owner(
    address: PodAddress, container: LaunchedContainer, together: PodsTrainingTogether, subject: Subject
) -> tuple[str, str]:
    """Return why a pod of another object cannot be the first node, and a fix.

    Return two empty texts if the pod may be the first node. The pod is excluded only if all nodes are pods of this
    object. With static rendezvous the first node has the address. With other rendezvous another program may have the
    address, so only the name of a renamed JobSet is reported.
    """
    limits, subdomain = node_count_range_of_launch(container.launch), address.subdomain
    if limits is None or limits[0] < 2 or limits[0] != together.pods:
        return "", ""
    job = address.host.rpartition("-")[0]
    is_renamed = job.startswith(f"{subdomain}-") and (
        f"{subject.metadata.name}{job.removeprefix(subdomain)}" in subject.once(names_of_pods)
    )
    is_first_node = address.host == subdomain and container.launch.rendezvous in ("", "static")
    if not is_renamed and not is_first_node:
        return "", ""
    return f"all {limits[0]} nodes are pods of this object", "write the name of the first pod of this object"


def _rendezvous_addresses(container: LaunchedContainer) -> Iterator[str]:
    """Yield the addresses where the pods meet: from the options of the launcher, and from variables."""
    yield container.launch.address
    yield from (container.env.get(name) or "" for name in ("MASTER_ADDR", *sorted(_TORCHRUN_ADDRESS_VARIABLES)))


def _check_rendezvous_id(container: LaunchedContainer) -> Iterator[Problem]:
    """Report a rendezvous id of torchrun that a shell computes in each pod."""
    if container.launch.by != "torchrun" or container.launch.address == "localhost":
        return
    scripts = (word for word in container.words if "torch" in word)  # a script is one word of a shell's command
    computed = next((match for script in scripts if (match := _ID_COMPUTED_IN_POD.search(script))), None)
    if computed is not None:
        rendezvous_id = computed[1].strip("`")
        message = f"--rdzv_id is `{rendezvous_id}`, which is different in each pod, so the pods do not find each other"
        fix = "set one text for all pods, such as the name of the job"
        yield RENDEZVOUS_ID.problem(container.path, message, fix, words=("--rdzv_id", "--rdzv-id"))


def check_duplicate_node_ranks(
    containers: Sequence[LaunchedContainer], together: PodsTrainingTogether
) -> Iterator[Problem]:
    """Report a node rank that several pods have."""
    fixed = [container for container in containers if _has_fixed_rank(container, together)]
    holders: dict[tuple[str, int], int] = {}
    for container in fixed:
        key = container.launch.by, int(container.launch.node_rank)
        holders[key] = holders.get(key, 0) + (container.pods or 0)
    for container in fixed:
        rank = int(container.launch.node_rank)
        pods = holders[container.launch.by, rank]
        if pods > 1:
            option = OPTIONS[container.launch.by][1]
            message = f"{option} gives all {pods} pods the node rank {rank}, so these pods cannot train together"
            fix = f"remove {option}" if together.is_ranked else f"set {option} to {together.index}"
            yield SAME_NODE_RANK.problem(container.path, message, fix, words=(option,))


def _has_fixed_rank(container: LaunchedContainer, together: PodsTrainingTogether) -> bool:
    launch = container.launch
    if launch.by not in OPTIONS or not _RANK.fullmatch(launch.node_rank) or launch.rendezvous not in ("", "static"):
        return False
    return launch.nodes != "1" and (launch.nodes != "" or together.is_ranked)


def check_rank_fixed_in_template(container: LaunchedContainer, owned: Collection[str], index: str) -> Iterator[Problem]:
    """Report a fixed rank or a fixed task for all pods of a template. `index` says for a fix where a variable gets the
    index of the pod.
    """
    if (container.pods or 0) < 2 or not container.env or container.env.get("WORLD_SIZE") == "1":
        return  # with a world of one process, each pod trains alone
    for name, launchers in _RANKS.items():
        value = container.env.get(name) or ""
        if (
            name not in owned
            and container.launch.by in launchers
            and _RANK.fullmatch(value)
            and _has_rendezvous_address(container)
        ):
            message = f"sets {name} to {value} in all {container.pods} pods, so these pods cannot train together"
            yield SAME_RANK.problem(container.path, message, f"set {name} {index}", words=(name,))
    if "TF_CONFIG" not in owned and _TASK.search(container.env.get("TF_CONFIG") or ""):
        message = f"sets the same TF_CONFIG in all {container.pods} pods, so all pods are the same task"
        fix = "give each pod a TF_CONFIG with its own task"
        yield SAME_RANK.problem(container.path, message, fix, words=("TF_CONFIG",))


def _has_rendezvous_address(container: LaunchedContainer) -> bool:
    """Return whether the pods have an address where they meet. Without an address, RANK may have another meaning."""
    return not _MASTER_ADDRESS_VARIABLES.isdisjoint(container.env)


def check_launcher_nodes_match_pods(
    containers: Sequence[LaunchedContainer], together: PodsTrainingTogether
) -> Iterator[Problem]:
    """Report launchers that wait for more or fewer pods than exist, and ranks that several pods share."""
    starting: dict[str, int] = {}
    for container in containers:
        starting[container.launch.by] = starting.get(container.launch.by, 0) + (container.pods or 0)
    for container in containers:
        limits = node_count_range_of_launch(container.launch)
        if limits is not None and together.pods is not None:
            group = starting[container.launch.by] if together.is_one else container.pods or 0
            yield from _check_number_of_nodes(container, limits, group, together)
        if limits is not None and limits[0] > 1 and not together.is_ranked:
            yield from check_torchrun_rendezvous_address(container)
        if limits is not None and limits[0] > 1:
            yield from _check_rendezvous_id(container)
    yield from check_duplicate_node_ranks(containers, together)


def _check_number_of_nodes(
    container: LaunchedContainer, limits: tuple[int, int], group: int, together: PodsTrainingTogether
) -> Iterator[Problem]:
    launch, pods = container.launch, together.pods or 0
    option = OPTIONS[launch.by][0]
    if limits[0] > pods and not (together.may_train_with_other_objects and pods < 2) and launch.by != "deepspeed":
        message = f"{launch.by} waits for {launch.nodes} nodes, but there {pod_count_with_verb(pods)}"
        fix = f"set {option} to {pods}, or create more pods"
        yield MORE_NODES_THAN_PODS.problem(container.path, message, fix, words=(option,))
    elif limits[1] < group and (limits[1] > 1 or together.is_one):
        alone = "each pod trains on its own" if limits[1] == 1 else "some of the pods do not take part"
        nodes = counted(limits[1], "node")
        message = f"{launch.by} expects {nodes}, but {counted(group, 'pod')} start {launch.by}, so {alone}"
        yield FEWER_NODES_THAN_PODS.problem(container.path, message, f"set {option} to {group}", words=(option,))
