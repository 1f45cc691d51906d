"""The ports and the address on which a model server listens, and ports that two servers of a pod use.

Triton has three ports: for HTTP, for gRPC, and for metrics. Other servers have one port. A port is known only if the
command line or the server's default sets the port. The port of a NIM is not known: NIMs for speech listen on 9000, NIMs
for embeddings also on 8080. The image does not say what a NIM is for.

Source: vllm-project/vllm vllm/entrypoints/openai/cli_args.py@00522333; PyPI sglang 0.5.23 sglang/srt/server_args.py;
huggingface/text-generation-inference@db931fcf Dockerfile; NVIDIA/TensorRT-LLM@00209af1 tensorrt_llm/commands/serve.py;
triton-inference-server/server@0299e638 src/command_line_parser.cc; ai-dynamo/dynamo
components/frontend/src/dynamo/frontend/main.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.facts.model_servers.server_candidates import MODEL_SERVER
from webhook.facts.model_servers.servers_of_object import ServerContainer
from webhook.facts.model_servers.started_servers import (
    DYNAMO_FRONTEND,
    LLAMA,
    LMDEPLOY,
    SGLANG,
    TENSORRT_LLM,
    TGI,
    TRITON,
    VLLM,
    release_of_vllm,
)
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import Service

CONTAINER_PORT: Final = MODEL_SERVER.rule(
    "model-server/container-port",
    title="A container lists another port than the one on which its model server listens",
    why="Kubernetes does not use the list of ports. Readers, dashboards and some meshes read the port from the list.",
    source="https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#ports",
    level="advice",
    severity="low",
    fails="silent",
)
PORT_TWICE: Final = MODEL_SERVER.rule(
    "model-server/port-twice",
    title="Two model servers of a pod listen on the same port",
    why="The containers of a pod share one address, so the second server finds the port in use and exits.",
    refused_by="the server, when it starts",
    source="https://kubernetes.io/docs/concepts/workloads/pods/#pod-networking",
)
SERVICE_VARIABLE: Final = MODEL_SERVER.rule(
    "model-server/service-variable",
    title="A Service named vllm sets VLLM_PORT to a value that vLLM refuses",
    why=(
        "If a Service named vllm exists when a pod starts, Kubernetes sets VLLM_PORT=tcp://… in the pod. vLLM refuses "
        "a VLLM_PORT that is not a number."
    ),
    refused_by="vLLM, when it starts",
    source="vllm-project/vllm vllm/envs.py",
    function="get_vllm_port",
    issues=("https://github.com/vllm-project/vllm/issues/34199",),
)
API_PORT_VARIABLE: Final = MODEL_SERVER.rule(
    "model-server/api-port-variable",
    title="VLLM_PORT is set to the port of the API",
    why="The processes of vLLM talk to each other on VLLM_PORT and higher ports. --port sets the port of the API.",
    source="vllm-project/vllm vllm/envs.py",
    function="get_vllm_port",
    level="advice",
)
_READS_PORT_VARIABLE: Final = (0, 4, 3)
"""The first release of vLLM that reads VLLM_PORT (PyPI vllm 0.4.3 vllm/envs.py)."""
_SETS_PORT_VARIABLE: Final = re.compile(r"\bVLLM_PORT=|(?:\bunset\b|\s-u)[^\n;&|]{0,200}?\bVLLM_PORT\b")
"""A part of a command that sets or unsets VLLM_PORT before the command starts vLLM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Default:
    """The default address and port of a server, and the variable that sets the port. The host is "" if the server
    listens on all addresses. The port is None if releases have different defaults.
    """

    port: int | None
    host: str = ""
    variable: str = ""


_DEFAULTS: Final[Mapping[str, _Default]] = {
    VLLM: _Default(port=8000),
    SGLANG: _Default(port=30000, host="127.0.0.1"),
    TGI: _Default(port=3000, variable="PORT"),
    TENSORRT_LLM: _Default(port=8000, host="localhost"),
    LMDEPLOY: _Default(port=23333),
    LLAMA: _Default(port=8080, host="127.0.0.1", variable="LLAMA_ARG_PORT"),
    DYNAMO_FRONTEND: _Default(port=None, variable="DYN_HTTP_PORT"),
}
_TGI_IMAGE_PORT: Final = 80
TRITON_PORTS: Final = (
    ("port", "allow-http", 8000),
    ("grpc-port", "allow-grpc", 8001),
    ("metrics-port", "allow-metrics", 8002),
)
"""For each port of Triton: the meaning of the flag that sets the port, the meaning of the flag that switches the port
off, and the default port. servers.yaml has the meanings of flags.
"""
_SWITCHED_OFF: Final = ("false", "False", "0")
SWITCHED_ON: Final = ("true", "True", "1")
_OF_VERTEX_AI: Final = "AIP_MODE"
"""If this variable is set, Triton serves Vertex AI on another port."""
_LOOPBACK: Final = frozenset(("127.0.0.1", "localhost", "::1"))
_PORT_FLAG: Final = {LMDEPLOY: "--server-port", TRITON: "--http-port", DYNAMO_FRONTEND: "--http-port"}
_PORT_OF_FLAG: Final = re.compile(r"-port[= ]+([0-9]{1,5})\b")
_STATUS_OF_DYNAMO: Final = frozenset(("DYN_SYSTEM_PORT", "DYN_SYSTEM_ENABLED"))
"""If one of these variables is set, a process of Dynamo answers health requests on a further port."""
_RAY_PORTS: Final = frozenset((6379, 8265, 10001, 44217, 44227, 52365))
"""Ports on which a node of Ray listens by default (https://docs.ray.io/en/latest/ray-core/configure.html)."""


def port_of_server(member: ServerContainer) -> int | None:
    """Return the port that a server listens on; None if the port is not known, or if the server has no port."""
    server, default = member.server, _DEFAULTS.get(member.server.name)
    arguments = server.arguments
    if default is None or arguments.is_open or arguments.joined or server.is_of_dynamo:
        return None
    if arguments.has("config", "socket", "headless"):
        return None
    if server.name == DYNAMO_FRONTEND and not _STATUS_OF_DYNAMO.isdisjoint(member.container.environment.names):
        return None
    if arguments.has("port"):
        return arguments.number("port")
    if default.variable and default.variable in member.container.environment.names:
        written = server.variables.get(default.variable, "")
        return int(written) if written.isascii() and written.isdigit() and len(written) < 6 else None
    if default.variable and member.container.env_from:
        return None
    if server.name == TGI:
        return _TGI_IMAGE_PORT if server.by_image else None
    return default.port


def ports_of_server(member: ServerContainer) -> Sequence[int]:
    """Return the ports that a server listens on, the port for requests first; () if the ports are not known."""
    if member.server.name == TRITON:
        return _ports_of_triton(member)
    port = port_of_server(member)
    return () if port is None else (port,)


def _ports_of_triton(member: ServerContainer) -> Sequence[int]:
    arguments, environment = member.server.arguments, member.container.environment
    is_of_mpirun = arguments.has("ranks") and not arguments.written("ranks")
    if arguments.has("other-endpoint") or _OF_VERTEX_AI in environment.names or is_of_mpirun or arguments.joined:
        return ()
    ports = []
    for meaning, switch, default in TRITON_PORTS:
        written, number = arguments.text(switch, "true"), arguments.number(meaning, default)
        if written in _SWITCHED_OFF:
            continue
        if written not in SWITCHED_ON or number is None:
            return ()
        ports.append(number)
    return ports


def words_for_ports(ports: Sequence[int]) -> str:
    """Return ports as a list in words, such as `8000, 8001 and 8002`."""
    return " and ".join(filter(None, (", ".join(map(str, ports[:-1])), str(ports[-1]))))


def port_flag(member: ServerContainer) -> str:
    """Return the flag that sets the port of a server."""
    return _PORT_FLAG.get(member.server.name, "--port")


def loopback_of_server(member: ServerContainer) -> str:
    """Return the loopback address that a server listens on; "" for another or an unknown address."""
    arguments, default = member.server.arguments, _DEFAULTS.get(member.server.name)
    if default is None or arguments.is_open or arguments.joined or arguments.has("config"):
        return ""
    if member.server.is_of_dynamo:
        return ""
    host = arguments.text("host", default.host)
    if member.server.name == LLAMA and not arguments.has("host"):
        return ""
    return host if host in _LOOPBACK else ""


def has_port_of_flag(member: ServerContainer, number: int) -> bool:
    """Return whether a flag of the command sets this port. The flag may be for vLLM's supervisor, for a gRPC server,
    or for a second server that a script starts.
    """
    text = member.container.command_line
    member.container.charge_search(text)
    return str(number) in _PORT_OF_FLAG.findall(text)


def may_other_process_listen(member: ServerContainer, *numbers: int) -> bool:
    """Return whether another process may listen on one of the ports. The process may be in a container that lists the
    port, or in a container that lists no ports. The process may also be Ray, if this container starts Ray too.
    """
    names, own = member.spec.names_of_listeners, member.container.name
    if member.joins_ray and not _RAY_PORTS.isdisjoint(numbers):
        return True
    return any(name != own for number in (None, *numbers) for name in names.get(number, ()))


def may_other_container_listen(member: ServerContainer, number: int, ports: Sequence[int]) -> bool:
    """Return whether another container of the pod, such as a proxy in front of the server, may listen on a port. The
    other container lists the port. If the port is not among the server's `ports`, the other container may also list no
    ports.
    """
    names, own = member.spec.names_of_listeners, member.container.name
    listeners = names.get(number, ()) if number in ports else (*names.get(number, ()), *names.get(None, ()))
    return bool({*listeners} - {own})


def advise_container_ports(member: ServerContainer, ports: Sequence[int]) -> Iterator[Problem]:
    """Advise on a container that lists ports, but not the port of its server. The list only informs readers and tools:
    probes and Services also reach ports that are not listed.
    """
    listed = [each.container_port for each in member.container.ports if each.container_port is not None]
    if not listed or not {*listed}.isdisjoint(ports) or any(has_port_of_flag(member, each) for each in listed):
        return
    message = f"lists port {listed[0]}, but {member.server.name} listens on {words_for_ports(ports)}"
    yield CONTAINER_PORT.problem(member.path, message, f"list {ports[0]}, or set {port_flag(member)} {listed[0]}")


def number_of_port(port: JSON, member: ServerContainer) -> int | None:
    """Return the number of a port that is given by number or by name; None if no port has the name."""
    if isinstance(port, int):
        return port
    listed = (each.container_port for each in member.container.ports if each.name and each.name == port)
    return next(listed, None)


def check_ports_of_servers(members: Sequence[ServerContainer], view: ClusterView) -> Iterator[Problem]:
    """Report a port that two servers of a pod use, and VLLM_PORT with a value for another port."""
    users: dict[tuple[str, int], str] = {}
    for member in members:
        for port in ports_of_server(member)[:1]:
            key = member.pod_set.name, port
            if key in users:
                message = f"{member.server.name} listens on {port}, where container `{users[key]}` of the pod listens"
                yield PORT_TWICE.problem(member.path, message, f"set another port with {port_flag(member)}")
            users.setdefault(key, member.container.name)
        if member.server.name == VLLM:
            yield from _check_port_variable(member, view)


def _check_port_variable(member: ServerContainer, view: ClusterView) -> Iterator[Problem]:
    container = member.container
    if "VLLM_PORT" in container.environment.names:
        written = member.server.variables.get("VLLM_PORT", "")
        if written and written == str(port_of_server(member)):
            message = f"sets VLLM_PORT to {written}, the port of the API, but vLLM uses VLLM_PORT between its processes"
            yield API_PORT_VARIABLE.problem(
                member.path, message, "remove VLLM_PORT, or set another port", words=("VLLM_PORT",)
            )
        return
    if member.spec.json.get("enableServiceLinks") is False or container.env_from or container.runs(_SETS_PORT_VARIABLE):
        return
    release = release_of_vllm(container)
    if release is not None and release < _READS_PORT_VARIABLE:
        return
    service = Service.of(view.get_without_noting(Service.gvk, view.namespace, "vllm"))
    if service and service.spec.cluster_ip != "None" and service.spec.type != "ExternalName":
        message = "gets VLLM_PORT=tcp://… from Kubernetes because of Service `vllm`, and vLLM refuses that value"
        fix = "rename the Service, or set enableServiceLinks: false"
        yield SERVICE_VARIABLE.problem(member.path, message, fix)
