"""The containers of an object that start model servers, with the GPUs of each container and the pods of its group.

Whole pod templates are read here; parts_of_pods.py reads containers that a controller merges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from webhook.apimachinery.paths import FieldPath, get
from webhook.facts.model_servers import other_servers, sglang, vllm
from webhook.facts.model_servers.configuration_files import with_configuration_file, with_variables_of_config_maps
from webhook.facts.model_servers.gpus import ContainerGpus, gpus_of_container
from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.server_candidates import ServerCandidate, server_candidates
from webhook.facts.model_servers.started_servers import (
    LMDEPLOY,
    NIM,
    SGLANG,
    TENSORRT_LLM,
    TGI,
    TRITON,
    VLLM,
    StartedServer,
    may_start_ray,
    release_of_vllm,
    started_server,
    started_servers,
)
from webhook.facts.subject import Subject
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodSpec
from webhook.typed.worker_sets import LeaderWorkerTemplate
from webhook.workloads.podsets import PodSet

_SEVERAL: Final = 2
SUBMITTER: Final = "submitter"
_OWN_COMMAND: Final = "ray.io/overwrite-container-cmd"
WORKER_SET_TEMPLATE: Final = ("leaderWorkerTemplate",)
"""The field that contains the templates of a LeaderWorkerSet, also inside another kind."""
_GROUP_SIZE: Final = "LWS_GROUP_SIZE"
_USES_GROUP_SIZE: Final = re.compile(rf"\b{_GROUP_SIZE}\b")
RAY_KINDS: Final = frozenset(
    (
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService", "RayCronJob")),
        ("orchestration.aibrix.ai", "RayClusterFleet"),
    )
)


_SIZES: Final = (
    *("tensor", "shards", "ranks", "pipeline", "data", "data-local", "prefill-context", "decode-context", "context"),
    *("attention-data", "gpus-per-node", "sharded"),
)
"""Meanings of flags for numbers of processes, the most common meaning first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContainer:
    """One container that starts a model server.

    Args:
        server: the server that the container starts.
        container: the container; its paths begin at the template.
        spec: the PodSpec with the container.
        pod_set: the pod set of the container.
        path: the path of the container in the object.
        processes: the processes of the server.
        gpus: the GPUs of the container.
        joins_ray: whether the pod may be one of several pods of a Ray cluster.
    """

    server: StartedServer
    container: Container
    spec: PodSpec
    pod_set: PodSet
    path: FieldPath
    processes: ServerProcesses
    gpus: ContainerGpus
    joins_ray: bool = False

    @property
    def size_flags(self) -> tuple[str, ...]:
        """Return the flags that set the number of processes, as written."""
        return self.server.arguments.written(*_SIZES)

    @property
    def lacks_gpus(self) -> bool:
        """Return whether the container starts more processes than it has GPUs."""
        here, gpus = self.processes.here, self.gpus.most
        return here is not None and gpus is not None and here > gpus and not self.processes.is_anywhere

    def locate(self, path: FieldPath) -> FieldPath:
        """Return the path in the object for a path in the template."""
        return self.pod_set.locate(path)


def pods_of_template_in_group(podset: PodSet, subject: Subject) -> int | None:
    """Return how many pods of a template run together; None if the number is not known. In a LeaderWorkerSet, these
    are the pods of one group; elsewhere, all pods of the template.
    """
    if podset.path[-2:-1] != WORKER_SET_TEMPLATE:
        return podset.count
    group = _group_of_template(podset, subject)
    if podset.path[-1] == "leaderTemplate":
        return 1
    return group.size if group.size is None or not group.json.get("leaderTemplate") else group.size - 1


def _group_of_template(podset: PodSet, subject: Subject) -> LeaderWorkerTemplate:
    at = podset.path[:-1]
    return LeaderWorkerTemplate.of(get(subject.object, at), at, subject.reading_context)


def _with_group_size(container: Container, podset: PodSet, subject: Subject) -> Container:
    """Return a container with the variable for the size of its group. LeaderWorkerSet puts this variable first."""
    if podset.path[-2:-1] != WORKER_SET_TEMPLATE or not container.runs(_USES_GROUP_SIZE):
        return container
    size = _group_of_template(podset, subject).size
    variables = [{"name": _GROUP_SIZE, "value": str(size)}, *(container.json.get("env") or ())]
    return Container({**container.json, "env": variables}, container.at, container.reading)


def is_node_of_ray(candidate: ServerCandidate, subject: Subject) -> bool:
    """Return whether KubeRay runs `ray start` in a container: in the first container of each pod of a Ray cluster,
    unless an annotation forbids it.
    """
    if subject.group_kind not in RAY_KINDS or candidate.pod_set.name == SUBMITTER:
        return False
    is_first = next(iter(candidate.spec.containers)).name == candidate.container.name
    return is_first and subject.metadata.annotations.get(_OWN_COMMAND) != "true"


def read_servers(subject: Subject) -> Items[ServerContainer]:
    """Return the containers of an object that start model servers; call it through `Subject.once`."""
    return Items(tuple(_servers_of_templates(subject)), subject.deadline)


def _servers_of_templates(subject: Subject) -> Iterator[ServerContainer]:
    for container, spec, podset in subject.once(server_candidates):
        server = _server_of_container(_with_group_size(container, podset, subject), subject)
        if server is not None:
            joins_ray = subject.once(_may_join_ray)
            yield server_container(server, container, spec, podset, subject, joins_ray=joins_ray)


def _may_join_ray(subject: Subject) -> bool:
    """Return whether the pods of an object may be a Ray cluster; call it through `Subject.once`."""
    candidates = subject.once(server_candidates)
    is_of_group = any(each.pod_set.path[-2:-1] == WORKER_SET_TEMPLATE for each in candidates)
    return subject.group_kind in RAY_KINDS or any(
        may_start_ray(each.container, is_of_group=is_of_group) for each in candidates
    )


def read_alternatives(candidate: ServerCandidate, subject: Subject) -> Sequence[ServerContainer]:
    """Return one ServerContainer for each server that a container may start; nothing if the container starts fewer than
    two servers.
    """
    container, spec, podset = candidate
    is_whole = not container.is_omitted("args")
    servers = started_servers(_with_group_size(container, podset, subject), is_whole=is_whole)
    if len(servers) < _SEVERAL:
        return ()
    ray = subject.once(_may_join_ray)
    return [server_container(each, container, spec, podset, subject, joins_ray=ray) for each in servers]


def _server_of_container(container: Container, subject: Subject) -> StartedServer | None:
    server = started_server(container, is_whole=not container.is_omitted("args"))
    if server is None or server.name == TRITON:
        return other_servers.triton_of_container(container, subject) or server
    return server


def server_container(
    server: StartedServer,
    container: Container,
    spec: PodSpec,
    podset: PodSet,
    subject: Subject,
    *,
    joins_ray: bool = False,
) -> ServerContainer:
    """Return a container with the processes of its server and its GPUs."""
    server = with_configuration_file(server, container, spec, subject)
    server = with_variables_of_config_maps(server, container, subject)
    wants_gpus = not vllm.wants_no_gpu(server, container.image)
    gpus = gpus_of_container(container, podset.name, subject)
    if not wants_gpus:
        gpus = replace(gpus, requested_zero="")
    return ServerContainer(
        server=server,
        container=container,
        spec=spec,
        pod_set=podset,
        path=podset.locate(container.at),
        processes=processes_of_server(server, gpus.vendor, joins_ray=joins_ray) if wants_gpus else ServerProcesses(),
        gpus=gpus,
        joins_ray=joins_ray,
    )


def processes_of_server(server: StartedServer, vendor: str = "", *, joins_ray: bool) -> ServerProcesses:
    """Return the processes that a server starts. The number is unknown for llama-server, which spreads layers over all
    GPUs, and for servers without flags for numbers of processes.
    """
    if server.arguments.has_unknown_words:
        return ServerProcesses(unknown=f"{server.name} refuses a word of its command")
    match server.name:
        case name if name == VLLM:
            return vllm.processes_of_vllm(server, joins_ray=joins_ray, vendor=vendor)
        case name if name == SGLANG:
            return sglang.processes_of_sglang(server)
        case name if name == TGI:
            return other_servers.processes_of_tgi(server)
        case name if name == TENSORRT_LLM:
            return other_servers.processes_of_tensorrt_llm(server)
        case name if name == LMDEPLOY:
            return other_servers.processes_of_lmdeploy(server)
        case name if name == NIM:
            return other_servers.processes_of_nim(server)
        case name if name == TRITON:
            return other_servers.processes_of_triton(server)
    return ServerProcesses()


def refusals_of_server(member: ServerContainer) -> Sequence[tuple[str, str]]:
    """Return the arguments that a server refuses, each with its fix."""
    if not (member.server.arguments.is_open or member.server.arguments.has("config")):
        mistyped = [
            (
                f"{member.server.name} refuses {flag} {written or 'without a value'} because {flag} must be a number",
                f"write {flag} with a number such as 1",
            )
            for flag, written in member.server.arguments.mistyped_numbers()
        ]
        if mistyped:
            return mistyped
    match member.server.name:
        case name if name == VLLM:
            return tuple(vllm.refusals_of_vllm(member.server, release_of_vllm(member.container)))
        case name if name == SGLANG:
            return tuple(sglang.refusals_of_sglang(member.server))
        case name if name == TGI:
            return tuple(other_servers.refusals_of_tgi(member.server, member.gpus.count))
        case name if name == TENSORRT_LLM:
            return tuple(other_servers.refusals_of_tensorrt_llm(member.server))
    return ()
