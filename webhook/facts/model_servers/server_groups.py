"""Pods that form one model server: their GPUs together, how they find each other, and whether they can all start.

The pods of a LeaderWorkerSet's group are one server if Ray or --nnodes joins them. The replicas of a StatefulSet are
one server if --nnodes joins them.

Source: vllm-project/vllm vllm/config/parallel.py@00193b82 and vllm/v1/executor/ray_utils.py@0057add1; PyPI sglang
0.5.23 sglang/srt/server_args.py; kubernetes-sigs/lws@060ab4d pkg/controllers/pod_controller.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.facts.gpu.device_pods import BATCH
from webhook.facts.kinds import STATEFUL_SET
from webhook.facts.model_servers.gpus import gpus_of_container
from webhook.facts.model_servers.server_candidates import MODEL_SERVER, container_of_entrypoint
from webhook.facts.model_servers.servers_of_object import (
    RAY_KINDS,
    SUBMITTER,
    WORKER_SET_TEMPLATE,
    ServerContainer,
    pods_of_template_in_group,
    processes_of_server,
    read_servers,
)
from webhook.facts.model_servers.started_servers import SGLANG, VLLM, started_server
from webhook.facts.pods.pod_addresses import read_pod_address, subdomain_of_pods
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.cluster_objects import LimitRange, Service, StatefulSet
from webhook.typed.objects import Namespace
from webhook.typed.ray import RayClusterSpec, RayJob
from webhook.workloads.podsets import PodSet

GROUP_TOO_SMALL: Final = MODEL_SERVER.rule(
    "model-server/group-too-small",
    title="The pods of a model server have too few GPUs for its parallel sizes",
    why=(
        "Ray and torch.distributed wait ten to thirty minutes for GPUs and nodes that the group never has. Then the "
        "server exits."
    ),
    refused_by="nothing; the server waits and exits",
    fails="start",
    issues=(
        "https://github.com/vllm-project/vllm/issues/13909",
        "https://github.com/kubernetes-sigs/lws/issues/184",
    ),
)
MORE_NODES_THAN_PODS: Final = MODEL_SERVER.rule(
    "model-server/more-nodes-than-pods",
    title="A model server waits for more nodes than there are pods",
    why="The missing nodes never join, so the server waits about ten minutes and exits.",
    refused_by="nothing; the server waits and exits",
)
NO_ADDRESS: Final = MODEL_SERVER.rule(
    "model-server/no-address",
    title="The nodes of a model server lack the address of the first node",
    why="Without an address every node looks for the first node on its own loopback address, and finds only itself.",
    refused_by="nothing; the server waits and exits",
)
ADDRESS_OF_OTHER_SERVICE: Final = MODEL_SERVER.rule(
    "model-server/address-of-other-service",
    title="The address of the first pod has the name of another Service",
    why=(
        "A pod has a name in DNS only below its subdomain: the name of its LeaderWorkerSet, or serviceName of its "
        "StatefulSet. Below another Service the name does not exist."
    ),
    refused_by="nothing; the server waits and exits",
    source="kubernetes-sigs/lws@060ab4d pkg/utils/pod/pod_utils.go",
    function="AddLWSVariables",
)
SAME_NODE_RANK: Final = MODEL_SERVER.rule(
    "model-server/same-node-rank",
    title="Several pods of a model server have the same node rank",
    why="All pods of a template have the same arguments, so every node has the same rank.",
    refused_by="nothing; the server waits and exits",
)
NOT_HEADLESS: Final = MODEL_SERVER.rule(
    "model-server/not-headless",
    title="A later node of vLLM runs without --headless",
    why=(
        "With --nnodes, node 0 starts the engine and the load balancer for all nodes. On another node, vLLM without "
        "--headless starts its own engine and ends with an assertion, so the ranks of that node never start."
    ),
    source="vllm-project/vllm vllm/entrypoints/cli/serve.py@00a5fdd2",
    function="run_headless",
    issues=("https://github.com/vllm-project/vllm/pull/36875",),
)
LEADER_WITHOUT_GPU: Final = MODEL_SERVER.rule(
    "model-server/leader-without-gpu",
    title="vLLM starts on Ray in a pod without a GPU",
    why="vLLM needs a GPU on the Ray node where vLLM starts, and exits at once without a GPU.",
    source="vllm-project/vllm vllm/v1/executor/ray_utils.py@0057add1",
    issues=("https://github.com/vllm-project/vllm/issues/29265", "https://github.com/ray-project/kuberay/issues/3436"),
)
WAITS_FOR_ITSELF: Final = MODEL_SERVER.rule(
    "model-server/waits-for-itself",
    title="Pods of a model server are created one after the other, but start only together",
    why=(
        "The next pod is created when the previous pod is ready. But a pod becomes ready only when all pods have "
        "joined, so no pod ever becomes ready."
    ),
    refused_by="nothing; the pods wait",
    source="kubernetes-sigs/lws@060ab4d pkg/controllers/pod_controller.go",
    fails="waiting",
    issues=("https://github.com/kubernetes-sigs/lws/issues/135", "https://github.com/sgl-project/sglang/issues/5553"),
)
SIDECAR_IN_GROUP: Final = MODEL_SERVER.rule(
    "model-server/sidecar-in-group",
    title="The pods of one model server get the sidecar of a mesh",
    why="The ranks choose ports when they start, and the sidecar may refuse connections to these ports.",
    source="https://github.com/istio/istio/issues/7495",
    level="advice",
)
_INJECT: Final = "sidecar.istio.io/inject"
_YES: Final = frozenset(("y", "yes", "true", "on"))
_INJECTION: Final = "istio-injection"
_REVISION: Final = "istio.io/rev"
_DATA_PLANE: Final = "istio.io/dataplane-mode"
_LINKERD: Final = "linkerd.io/inject"
_KUMA: Final = "kuma.io/sidecar-injection"
_WITH_ALL_PODS: Final = BATCH | {STATEFUL_SET}
"""Kinds in which one object usually creates all pods of a server."""
_ADDRESS: Final = {VLLM: "--master-addr", SGLANG: "--dist-init-addr"}
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]", "::1")
_WITH_LEADER: Final = ("leader", "main")
"""Names of the pod sets of a LeaderWorkerSet that contain the leader. `leader` has only the leader, `main` has all
pods.
"""
_OTHER_BALANCING: Final = (
    *("headless", "config", "omni", "data-backend", "data-rank", "data-start-rank", "data-hybrid"),
    *("data-external", "data-ports"),
)
"""The meanings of some flags. With one of these flags, a node above 0 starts, or it is not known whether it starts."""
_CONDITION: Final = re.compile(r"(?:^|[\s;(!])(?:if|case|test|\[\[?|exit|return|function)(?:$|[\s;])|\|\||\(\)")
"""Matches the parts of a script with which some of the pods may run other commands."""
_OTHER_ADDRESSES: Final = ("config", "data-backend", "data-rank", "data-hybrid", "data-external", "data-ports")
"""The meanings of flags with which the ranks may meet elsewhere, or need not meet."""
_WITH_POD_GROUPS: Final = frozenset(
    (("orchestration.aibrix.ai", "StormService"), ("orchestration.aibrix.ai", "RoleSet"))
)
"""Kinds of AIBrix in which each replica of a role has podGroupSize pods."""
_HEAD_GROUP: Final = "headGroupSpec"
_MOST_NAMED: Final = 4
_LEADER_ADDRESS: Final = "$(LWS_LEADER_ADDRESS)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsOfServer:
    """The pods that may form one server.

    Args:
        pods: the number of pods; None if the number is not known.
        gpus: the number of GPUs of all pods together; None if the number is not known.
        written: pods and GPUs in words, such as `2 pods with 4 GPUs`.
    """

    pods: int | None = None
    gpus: int | None = None
    written: str = ""


def pods_of_worker_set_groups(subject: Subject) -> Mapping[FieldPath, PodsOfServer]:
    """Return the pods of one group of each LeaderWorkerSet in an object, with the path of `leaderWorkerTemplate` as
    key. Call this function through `Subject.once`.
    """
    templates: dict[FieldPath, list[PodSet]] = {}
    for podset in subject.once(pod_sets).all:
        if podset.path[-2:-1] == WORKER_SET_TEMPLATE:
            templates.setdefault(podset.path[:-1], []).append(podset)
    return {at: _pods_of_group(listed, subject) for at, listed in templates.items()}


def _pods_of_group(listed: Sequence[PodSet], subject: Subject) -> PodsOfServer:
    pods, gpus, words, is_known = 0, 0, list[str](), True
    for podset in listed:
        count, own = pods_of_template_in_group(podset, subject), 0
        if count is None:
            return PodsOfServer()
        for container in template_of(podset, subject).spec.containers:
            known = gpus_of_container(container, podset.name, subject)
            is_known = is_known and (known.count is not None or known.is_without)
            own += known.count or 0
        pods, gpus = pods + count, gpus + count * own
        words += [f"{counted(count, 'pod')} with {counted(own, 'GPU')}" if count else ""]
    is_known = is_known and gpus > 0 and not _has_limit_range(subject)
    return PodsOfServer(pods=pods, gpus=gpus if is_known else None, written=" and ".join(filter(None, words)))


def _has_limit_range(subject: Subject) -> bool:
    return any(True for _ in subject.cluster_view().typed_here(LimitRange))


def check_server_groups(member: ServerContainer, subject: Subject) -> Iterator[Problem]:
    """Report servers of several pods that never find the GPUs, the nodes or the address that they wait for."""
    nodes = member.server.arguments.number("nodes")
    group = _group_of_worker_set(member, subject)
    if group is not None:
        yield from _check_worker_set(member, group, nodes, subject)
    elif subject.group_kind in RAY_KINDS and member.processes.is_anywhere and member.processes.total is not None:
        is_head = _HEAD_GROUP in member.pod_set.path
        if is_head and member.gpus.is_without and not _has_limit_range(subject):
            yield _problem_of_leader(member.path, member.server.name, "head", member.processes.total)
        elif (cluster := subject.once(pods_of_ray_cluster)).gpus is not None and member.processes.total > cluster.gpus:
            yield _problem_of_ray_cluster(member, cluster)
    if nodes == 1:
        yield from _check_data_address(member, subject)
    if nodes is None or nodes < 2 or member.server.name not in _ADDRESS:
        return
    if refusal := _refusal_of_sidecar(member, subject):
        message = f"joins {nodes} nodes, but the sidecar of the mesh may refuse the connections between the pods"
        yield SIDECAR_IN_GROUP.problem(
            member.path, f"{member.server.name} {message}", f"set {refusal} on the pod templates"
        )
    yield from _check_address(member, nodes, subject)
    yield from _check_node_rank(member, nodes, subject)
    pods = _pods_of_kind(member, subject) if group is None else group.pods
    yield from _check_headless(member, nodes, pods, subject)
    if pods is not None and nodes > pods:
        total, gpus = member.processes.total, None if group is None else group.gpus
        waits = f"{member.server.name} waits for --nnodes {nodes}"
        size = (*member.pod_set.path[:-1], "size")
        create = f"create {nodes} pods" if group is None else f"set {path_as_text(size)} {nodes}"
        if gpus is not None and total is not None and total > gpus:
            waits, has = f"{waits} and {total} GPUs", f"{counted(pods, 'pod')} with {counted(gpus, 'GPU')} in all"
            fix = f"{create}, or set --nnodes {pods} and parallel sizes whose product is {gpus}"
        else:
            has = counted(pods, "pod")
            fix = f"set --nnodes {pods}, or {create}"
        message = f"{waits}, but {has} can join"
        yield MORE_NODES_THAN_PODS.problem(member.path, message, fix, words=member.server.arguments.written("nodes"))


def _refusal_of_sidecar(member: ServerContainer, subject: Subject) -> str:
    """Return the setting with which the pods would get no sidecar of a mesh; "" for pods without a sidecar, and for
    pods on the host network.

    Source: istio/istio@00af2c5549d5 pkg/kube/inject/inject.go injectRequired; linkerd/linkerd2 pkg/k8s/labels.go;
    kumahq/kuma pkg/plugins/runtime/k8s/webhooks/injector.
    """
    if member.spec.host_network:
        return ""
    metadata = template_of(member.pod_set, subject).metadata
    known = subject.cluster_view().find_namespace(subject.namespace)
    of_namespace: Mapping[str, str] = {} if known is None else Namespace.of(known).metadata.labels
    own = metadata.labels.get(_INJECT, metadata.annotations.get(_INJECT, ""))
    if own.lower() in _YES or (not own and _has_injection(of_namespace)):
        return "" if of_namespace.get(_INJECTION) == "disabled" else f'the label {_INJECT}: "false"'
    if metadata.annotations.get(_LINKERD) in ("enabled", "ingress"):
        return f"the annotation {_LINKERD}: disabled"
    if metadata.labels.get(_KUMA, of_namespace.get(_KUMA)) in ("enabled", "true"):
        return f"the label {_KUMA}: disabled"
    return ""


def _has_injection(of_namespace: Mapping[str, str]) -> bool:
    """Return whether the labels of a namespace let Istio add its sidecar to every pod."""
    if of_namespace.get(_DATA_PLANE) == "ambient":
        return False
    return of_namespace.get(_INJECTION, "enabled" if _REVISION in of_namespace else "") == "enabled"


def _group_of_worker_set(member: ServerContainer, subject: Subject) -> PodsOfServer | None:
    """Return the group of a LeaderWorkerSet that a server belongs to; None for a server outside LeaderWorkerSets."""
    return subject.once(pods_of_worker_set_groups).get(member.pod_set.path[:-1])


def _check_worker_set(
    member: ServerContainer, group: PodsOfServer, nodes: int | None, subject: Subject
) -> Iterator[Problem]:
    processes = member.processes
    is_joined = nodes is not None and nodes > 1 and processes.total is not None
    is_by_ray = processes.is_anywhere and processes.total is not None
    if is_by_ray and member.gpus.is_without and group.gpus:
        yield _problem_of_leader(member.path, member.server.name, "leader", member.processes.total)
    elif (
        (is_by_ray or is_joined)
        and group.gpus is not None
        and (processes.total or 0) > group.gpus
        and (nodes or 1) <= (group.pods or 1)  # MORE_NODES_THAN_PODS reports a group with too few pods
        and not _has_pod_with_too_few_gpus(member, subject)  # PARALLEL_SIZE_ABOVE_GPUS reports such a pod
    ):
        yield _problem_of_group(member, group)


def check_entrypoint_of_ray_job(subject: Subject) -> Iterator[Problem]:
    """Report a RayJob with an entrypoint that starts vLLM on Ray, if the entrypoint runs on a head without a GPU.

    Source: ray-project/ray@007c8cdf python/ray/dashboard/modules/job/job_manager.py submit_job: without requested
    resources, the entrypoint runs on the head.
    """
    spec = subject.typed(RayJob).spec
    head = spec.ray_cluster_spec.head_group_spec
    container = next(iter(head.template.spec.containers), None)
    if container is None or head.resources or head.ray_start_params.num_gpus or _has_limit_range(subject):
        return
    at = spec.path("entrypoint")
    server = started_server(container_of_entrypoint(spec, container))
    pod_set = next((each.name for each in subject.once(pod_sets).all if _HEAD_GROUP in each.path), "")
    if server is None or spec.requests_resources or not gpus_of_container(container, pod_set, subject).is_without:
        return
    processes = processes_of_server(server, joins_ray=True)
    if processes.is_anywhere and processes.total is not None:
        yield _problem_of_leader(at, server.name, "head", processes.total)


def _has_pod_with_too_few_gpus(member: ServerContainer, subject: Subject) -> bool:
    """Return whether a pod in the group of a server starts more processes than it has GPUs."""
    at = member.pod_set.path[:-1]
    return any(each.lacks_gpus for each in subject.once(read_servers) if each.pod_set.path[:-1] == at)


def _problem_of_leader(path: FieldPath, name: str, who: str, total: int | None) -> Problem:
    message = f"{name} starts on Ray in the {who}, which has no GPU, so {name} exits at once"
    fix = f"request at least 1 GPU for the {who}"
    if total is not None and total > 1:
        fix += f", and {total} GPUs for the {who} and the workers together"
    return LEADER_WITHOUT_GPU.problem(path, message, fix)


def _problem_of_group(member: ServerContainer, group: PodsOfServer) -> Problem:
    total, sizes = member.processes.total, member.processes.sizes
    has = f"{group.gpus} ({group.written})"
    message = f"{member.server.name} waits for {total} GPUs ({sizes}), but the group has {has}"
    fix = f"set parallel sizes whose product is {group.gpus}, or create a larger group"
    return problem_of_small_group(member.path, message, fix, member.size_flags)


def problem_of_small_group(path: FieldPath, message: str, fix: str, flags: tuple[str, ...]) -> Problem:
    """Return the problem of a group with fewer GPUs than its server waits for."""
    return GROUP_TOO_SMALL.problem(path, message, fix, words=flags)


def pods_of_ray_cluster(subject: Subject) -> PodsOfServer:
    """Return the pods of a Ray cluster with the GPUs that Ray counts: the GPUs of the first container of each pod. Call
    this function through `Subject.once`.

    The GPUs are not known if Ray's autoscaler is on, or if a group sets another number of GPUs for Ray.
    """
    listed = subject.once(pod_sets).all
    listed = listed.of([each for each in listed if each.name != SUBMITTER])
    at = next((each.path[: each.path.index(_HEAD_GROUP)] for each in listed if _HEAD_GROUP in each.path), ())
    cluster = RayClusterSpec.of(get(subject.object, at), at, subject.reading_context)
    groups = {group.at: group for group in cluster.groups()}
    gpus, words = 0, list[str]()
    for podset in listed:
        group = groups.get(podset.path[:-1])
        container = next(iter(template_of(podset, subject).spec.containers), None)
        if group is None or container is None or podset.count is None or cluster.enable_in_tree_autoscaling:
            return PodsOfServer()
        if group.resources or group.ray_start_params.num_gpus:
            return PodsOfServer()
        known = gpus_of_container(container, podset.name, subject)
        if known.count is None and not known.is_without:
            return PodsOfServer()
        gpus += podset.count * (known.count or 0)
        words += [f"{counted(podset.count, 'pod')} with {counted(known.count or 0, 'GPU')}"] if podset.count else []
    is_known = bool(gpus) and not _has_limit_range(subject)
    return PodsOfServer(gpus=gpus if is_known else None, written=" and ".join(words[:_MOST_NAMED]))


def _problem_of_ray_cluster(member: ServerContainer, cluster: PodsOfServer) -> Problem:
    total, sizes = member.processes.total, member.processes.sizes
    has = f"{cluster.gpus} ({cluster.written})"
    message = f"{member.server.name} waits for {total} GPUs ({sizes}), but the Ray cluster has {has}"
    fix = f"set parallel sizes whose product is {cluster.gpus}, or add pods"
    return problem_of_small_group(member.path, message, fix, member.size_flags)


def _check_address(member: ServerContainer, nodes: int, subject: Subject) -> Iterator[Problem]:
    arguments, option = member.server.arguments, _ADDRESS[member.server.name]
    is_first = arguments.number("node-rank", 0) == 0 and not _are_arguments_shared(member, subject)
    if arguments.is_open or member.container.env_from or is_first:
        return
    address = arguments.values.get("address")
    if address is not None and address.split(":")[0] not in _LOOPBACK:
        return
    has = f"has {option} {address}" if address else f"has no {option}"
    where = _LEADER_ADDRESS if _group_of_worker_set(member, subject) else "the address of the first pod"
    message = f"{member.server.name} joins {nodes} nodes, but {has}, so each pod finds only itself"
    yield _problem_of_address(member, message, f"set {option} to {where}", ("address", "nodes"))


def _check_data_address(member: ServerContainer, subject: Subject) -> Iterator[Problem]:
    """Report pods that run a part of vLLM's data parallel ranks, if each pod looks for the first pod at its own
    address.

    Source: vllm-project/vllm vllm/engine/arg_utils.py create_engine_config, and vllm/config/parallel.py
    data_parallel_master_ip.
    """
    arguments = member.server.arguments
    ranks, here = arguments.number("data"), arguments.number("data-local", 0)
    is_closed = not (arguments.is_open or arguments.has(*_OTHER_ADDRESSES) or member.container.env_from)
    if member.server.name != VLLM or member.server.is_of_dynamo or not is_closed or ranks is None or here is None:
        return
    is_part = arguments.has("data-local") and here < ranks and not _shares_loopback(member, subject)
    addresses = [arguments.values.get(each) for each in ("data-address", "address")]
    if not is_part or any(each is not None and each.split(":")[0] not in _LOOPBACK for each in addresses):
        return
    has = f"has --data-parallel-address {addresses[0]}" if addresses[0] else "has no --data-parallel-address"
    where = _LEADER_ADDRESS if _group_of_worker_set(member, subject) else "the address of the first pod"
    message = f"vLLM spreads {ranks} data parallel ranks over several pods, but {has}, so each pod finds only itself"
    fix = f"set --data-parallel-address to {where}"
    yield _problem_of_address(member, message, fix, ("data-address", "data-local"))


def _problem_of_address(member: ServerContainer, message: str, fix: str, meanings: Sequence[str]) -> Problem:
    return NO_ADDRESS.problem(member.path, message, fix, words=member.server.arguments.written(*meanings))


def _shares_loopback(member: ServerContainer, subject: Subject) -> bool:
    """Return whether another server may have the loopback address of a server: in its pod, or in the host network."""
    servers = subject.once(read_servers)
    return member.spec.host_network or any(each.spec is member.spec and each is not member for each in servers)


def check_address_of_service(member: ServerContainer, subject: Subject) -> Iterator[Problem]:
    """Report the address of a pod below a Service that does not give the pods their names.

    `chat-0.x` may also be the Service chat-0 of a namespace x. So the address is reported only in two cases. In the
    first case, the namespace has a Service x. In the second case, the address names a pod of another object, such as
    `old-0.old`, although all nodes are pods of this object.
    """
    name, own = subject.metadata.name, subdomain_of_pods(subject)
    for meaning in ("address", "data-address") if name and own else ():
        address = read_pod_address(member.server.arguments.values.get(meaning, ""), subject.namespace)
        if address is None or address.subdomain in (own, address.pod):
            continue
        words = member.server.arguments.written(meaning)
        looks, service = f"looks for the first pod at {address.pod}.{address.subdomain}", address.subdomain
        if address.host == name and subject.cluster_view().get_without_noting(Service.gvk, subject.namespace, service):
            message = f"{looks}, but the pods have names below `{own}`"
            yield ADDRESS_OF_OTHER_SERVICE.problem(member.path, message, f"write {address.pod}.{own}", words=words)
        elif address.host == service and meaning == "address" and _are_all_nodes_own(member, subject):
            message = f"{looks}, but all nodes are pods of `{name}`"
            yield ADDRESS_OF_OTHER_SERVICE.problem(member.path, message, f"write {name}-0.{own}", words=words)


def _are_all_nodes_own(member: ServerContainer, subject: Subject) -> bool:
    """Return whether the server has as many nodes as the object, or the group of a LeaderWorkerSet, has pods."""
    group = _group_of_worker_set(member, subject)
    pods = _pods_of_kind(member, subject) if group is None else group.pods
    return pods is not None and member.server.arguments.number("nodes") == pods


def _problem_of_waiting(path: FieldPath | str, message: str, fix: str) -> Problem:
    return WAITS_FOR_ITSELF.problem(path, message, fix)


def _check_published_addresses(member: ServerContainer, subject: Subject) -> Iterator[Problem]:
    """Report a headless Service that publishes the address of the first pod only after the pod is ready."""
    name, address = subdomain_of_pods(subject), member.server.arguments.values.get("address", "")
    if not name or f".{name}" not in address:
        return
    existing = subject.cluster_view().get_without_noting(Service.gvk, subject.namespace, name)
    service = Service.of(existing)
    if service and service.spec.cluster_ip == "None" and not service.spec.publish_not_ready_addresses:
        message = f"the pods meet at {address[:80]}, which Service `{name}` publishes only when pod 0 is ready, but "
        message += "pod 0 waits for the other pods"
        fix = f"set publishNotReadyAddresses: true in Service `{name}`"
        yield _problem_of_waiting(member.path, message, fix)


def _are_arguments_shared(member: ServerContainer, subject: Subject) -> bool:
    """Return whether several pods of one group have the same arguments."""
    return (pods_of_template_in_group(member.pod_set, subject) or 0) > 1


def _check_node_rank(member: ServerContainer, nodes: int, subject: Subject) -> Iterator[Problem]:
    arguments, pods = member.server.arguments, pods_of_template_in_group(member.pod_set, subject) or 0
    rank = arguments.number("node-rank", 0)
    if rank is None or arguments.has("config") or member.server.is_of_dynamo or pods < 2:
        return
    if arguments.has("node-rank"):
        message = f"--node-rank {rank} gives all {pods} pods the same rank of --nnodes {nodes}, so the pods never meet"
    else:
        message = f"has no --node-rank, so all {pods} pods are rank 0 of --nnodes {nodes} and never meet"
    fix = "set --node-rank from the number of the pod"
    if (group := _group_of_worker_set(member, subject)) is not None:
        fix = "set --node-rank $(LWS_WORKER_INDEX)"
        if member.server.name == VLLM and not arguments.has("backend", *_OTHER_BALANCING):
            is_leader_too = pods == group.pods
            fix += f"{' here and in a new leaderTemplate' if is_leader_too else ''}, and add --headless here"
    yield SAME_NODE_RANK.problem(member.path, message, fix, words=arguments.written("node-rank", "nodes"))


def _check_headless(member: ServerContainer, nodes: int, pods: int | None, subject: Subject) -> Iterator[Problem]:
    """Report a node above 0 of vLLM that starts an engine, or a load balancer for its data parallel ranks.

    A template with a computed rank contains the last node if the template has pods other than the leader, and the group
    has a pod for each node. A script with a condition may start another server on that node, and is not reported.

    Source: vllm-project/vllm vllm/v1/executor/multiproc_executor.py collective_rpc, and vllm/v1/engine/utils.py
    launch_core_engines.
    """
    arguments = member.server.arguments
    data, rank = arguments.number("data"), arguments.number("node-rank", 0)
    total = member.processes.total
    if member.server.name != VLLM or member.server.is_of_dynamo or arguments.is_open or not data:
        return
    if arguments.values.get("backend", "mp") != "mp" or arguments.has(*_OTHER_BALANCING):
        return
    if total is None or total % nodes:
        return
    if rank is None:
        if member.server.is_in_script and member.container.runs(_CONDITION):
            return
        is_later = member.pod_set.path[-1:] == ("workerTemplate",) or _are_arguments_shared(member, subject)
        rank = nodes - 1 if is_later and pods is not None and pods >= nodes else 0
    elif _are_arguments_shared(member, subject):
        return  # SAME_NODE_RANK reports these pods
    if rank < nodes and (rank * data // nodes > 0 or (data == 1 and rank > 0)):
        has = f"has {arguments.spelling('data', '--data-parallel-size')} {data} and" if data > 1 else "has"
        message = f"{has} no --headless, so vLLM ends at its start on node {rank} of --nnodes {nodes}"
        fix = "add --headless on the nodes above 0"
        if (group := _group_of_worker_set(member, subject)) is not None:
            is_leader_too = pods_of_template_in_group(member.pod_set, subject) == group.pods
            fix = "add a leaderTemplate without --headless, and --headless here" if is_leader_too else "add --headless"
        yield NOT_HEADLESS.problem(member.path, message, fix, words=arguments.written("nodes", "data"))


def _pods_of_kind(member: ServerContainer, subject: Subject) -> int | None:
    """Return how many pods may join a server; None if the number is not known, or if pods of other objects may join."""
    if subject.group_kind in _WITH_POD_GROUPS:
        size = get(subject.object, (*member.pod_set.path[:-1], "podGroupSize"))
        return size if isinstance(size, int) and size > 1 else None
    if subject.group_kind not in _WITH_ALL_PODS:
        return None
    counts = [each.pods for each in subject.once(pod_sets).all]
    pods = sum(each or 0 for each in counts)
    return pods if None not in counts and pods > 1 and member.pod_set.pods else None


def check_pods_that_wait_for_each_other(member: ServerContainer, subject: Subject) -> Iterator[Problem]:
    """Report a leader that becomes ready only with its workers, if the workers are created only after the leader is
    ready.
    """
    nodes = member.server.arguments.number("nodes")
    if not member.container.readiness_probe and not member.container.startup_probe:
        return
    group = _group_of_worker_set(member, subject)
    if group is not None:
        at = (*member.pod_set.path[:-2], "startupPolicy")
        own = member.gpus.count or 0
        needs_others = (nodes or 1) > 1 or (member.processes.is_anywhere and (member.processes.total or 0) > own)
        is_leader = member.pod_set.name in _WITH_LEADER or member.server.arguments.number("node-rank", 0) == 0
        if get(subject.object, at) == "LeaderReady" and needs_others and is_leader and (group.pods or 0) > 1:
            message = (
                "is LeaderReady, so workers start only when the leader is ready, but the leader waits for the workers"
            )
            yield _problem_of_waiting(at, message, "set startupPolicy: LeaderCreated")
    elif subject.group_kind == STATEFUL_SET and (nodes or 1) > 1 and (member.pod_set.count or 0) > 1:
        if subject.typed(StatefulSet).spec.pod_management_policy not in ("", "OrderedReady"):
            yield from _check_published_addresses(member, subject)
        else:
            message = "starts pod 1 only when pod 0 is ready, but pod 0 waits for pod 1 (OrderedReady)"
            yield _problem_of_waiting("spec.podManagementPolicy", message, "set podManagementPolicy: Parallel")
