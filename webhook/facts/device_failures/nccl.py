"""Settings of NCCL that contradict the pod.

Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, and NVIDIA/nccl v2.27 src/graph/xml.cc
ncclTopoGetXmlFromFile, which ignores a missing topology file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.device_failures.types import DEVICE_FAILURES
from webhook.facts.gpu.device_pods import LAUNCHERS, DevicePods, read_device_workload
from webhook.facts.gpu.devices import device_of_resource_name
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.pods import Container, Variable
from webhook.yamltext import yamlfile
from webhook.yamltext.placeholders import is_placeholder

NCCL_IB_DISABLE: Final = DEVICE_FAILURES.rule(
    "device-failures/nccl-ib-disable",
    title="NCCL_IB_DISABLE is set although the container has RDMA devices",
    why=(
        "NCCL falls back to TCP sockets, which are many times slower. The devices stay idle unless another library "
        "uses them."
    ),
    source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-disable",
    fails="silent",
)
NCCL_SOCKET_IFNAME: Final = DEVICE_FAILURES.rule(
    "device-failures/nccl-socket-ifname",
    title="NCCL_SOCKET_IFNAME is missing on the host network",
    why=(
        "A node also has bridges and interfaces of containers. If NCCL chooses such an interface, the ranks wait for "
        "each other for ever."
    ),
    source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname",
    severity="low",
    fails="waiting",
)
NCCL_TOPOLOGY_FILE: Final = DEVICE_FAILURES.rule(
    "device-failures/nccl-topology-file",
    title="NCCL_TOPO_FILE names a file that the container does not have",
    why="NCCL ignores a topology file that it cannot open, and chooses slower paths between devices.",
    source="NVIDIA/nccl v2.27 src/graph/xml.cc",
    function="ncclTopoGetXmlFromFile",
    severity="low",
    fails="silent",
)
EFA_DEVICE: Final = DEVICE_FAILURES.rule(
    "device-failures/efa-device",
    title="FI_PROVIDER is efa, but the container has no EFA device",
    why=(
        "libfabric finds no provider without a device of the Elastic Fabric Adapter. NCCL falls back to TCP sockets, "
        "or the program stops."
    ),
    source="https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html",
    fails="silent",
)

FILE: Final = Path(__file__).with_name("rdma.yaml")
_PROVIDER: Final = "FI_PROVIDER"
_EFA: Final = "efa"
_EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"
_OF_NODE: Final = ("/dev", "/dev/infiniband")
"""Folders of a node with its EFA devices."""
_LOOKED_AT: Final = frozenset(("NCCL_IB_DISABLE", "NCCL_TOPO_FILE", _PROVIDER))
_INTERFACE: Final = "NCCL_SOCKET_IFNAME"
_PUBLISHED: Final = (
    *("nvcr.io/nvidia/", "nvidia/", "pytorch/", "tensorflow/", "rayproject/", "vllm/", "lmsysorg/", "huggingface/"),
    *("ghcr.io/huggingface/", "mosaicml/"),
)
"""How the names of public images begin. A public image has no file about the devices of one kind of node."""
_CONFIGURATION: Final = "nccl.conf"
_OTHER_LIBRARIES: Final = re.compile(r"(?i)nixl|nvshmem|mooncake|deepep|lmcache|disaggregation-ib-device")
"""Parts of the names of libraries that use RDMA devices without NCCL, and of their variables."""
_UCX: Final = re.compile(r"(?i)ucx")
_TLS_OF_RDMA: Final = ("rc", "ud", "dc", "ib", "all", "^")
"""The prefixes of UCX transports that may use RDMA. `^` begins a list of transports that UCX does not use."""


def advise_nccl(subject: Subject) -> Iterator[Problem]:
    """Warn of settings of NCCL that contradict the pod, in containers with devices."""
    work = subject.once(read_device_workload)
    for pods in work.device_pods:
        for container in pods.containers:
            variables = _nccl_variables(container)
            if (disabled := variables.get("NCCL_IB_DISABLE")) and disabled.value == "1":
                yield from _check_nccl_ib_disable(pods, container, disabled)
            if (topology := variables.get("NCCL_TOPO_FILE")) and topology.value:
                yield from _check_nccl_topology_file(pods, container, topology)
            if (provider := variables.get(_PROVIDER)) and provider.value == _EFA:
                yield from _check_efa_device(pods, container, provider)
            if (
                pods.spec.host_network
                and work.count_device_pods > 1
                and _may_use_gpus(pods)
                and cached_launch_of_container(container, subject).by in LAUNCHERS
            ):
                yield from _check_nccl_socket_ifname(pods, container)


def _may_use_gpus(pods: DevicePods) -> bool:
    """Return whether a device of a pod may be a GPU. TPUs and similar devices do not use NCCL."""
    return not pods.devices or any(device_of_resource_name(name).gpu for name in pods.devices)


def _nccl_variables(container: Container) -> Mapping[str, Variable]:
    """Return the variables that are checked in a container. If a name occurs twice, the last variable counts."""
    if not container.env_names.has_any_of(_LOOKED_AT):  # this test is fast for hundreds of other variables
        return {}
    return {variable.name: variable for variable in container.env if variable.name in _LOOKED_AT}


def _check_nccl_ib_disable(pods: DevicePods, container: Container, variable: Variable) -> Iterator[Problem]:
    requested = next((name for name in container.resources.limits if _is_rdma_resource(name)), "")
    if requested and not _may_other_library_use_rdma(container):
        message = f"turns InfiniBand and RoCE off, so NCCL does not use the requested `{requested}`"
        fix = "remove the variable or the request"
        yield NCCL_IB_DISABLE.problem(pods.locate(variable.at), message, fix, "NCCL_IB_DISABLE=1")


def _may_other_library_use_rdma(container: Container) -> bool:
    """Return whether a library other than NCCL may use RDMA devices.

    UCX uses no RDMA device if UCX_TLS has `tcp` and no transport of RDMA, or if UCX_NET_DEVICES has only interfaces
    such as eth0. The name of an RDMA device has a port, such as mlx5_0:1.
    """
    texts = ("\n".join((container.command_line, *container.environment.names)),)
    if container.is_found_in(_OTHER_LIBRARIES, texts):
        return True
    if not container.is_found_in(_UCX, texts):
        return False
    variables = container.environment.by_name()
    transports, devices = (variables.get(name) or "" for name in ("UCX_TLS", "UCX_NET_DEVICES"))
    has_only_tcp = "tcp" in transports.split(",") and not any(
        each.strip().startswith(_TLS_OF_RDMA) for each in transports.split(",")
    )
    has_only_interfaces = bool(devices) and not any(sign in devices for sign in (":", "all", "$", "^"))
    return not has_only_tcp and not has_only_interfaces


def _check_efa_device(pods: DevicePods, container: Container, variable: Variable) -> Iterator[Problem]:
    """Warn of a variable that requires EFA in a container without an EFA device. A container may get an EFA device by a
    resource, by a claim, or from its node.
    """
    resources = container.resources
    is_open = resources.claims or container.security_context.privileged or container.is_omitted("resources")
    names = (*resources.limits, *resources.requests)
    mounted = {volume.host_path.path_on_host.rstrip("/") for volume in pods.spec.volumes}
    if is_open or any(_EFA in name for name in names) or not mounted.isdisjoint(_OF_NODE):
        return
    message = f"asks libfabric for EFA, but the container requests no `{_EFA_RESOURCE}`, so it has no EFA device"
    fix = f"request `{_EFA_RESOURCE}`, or remove the variable"
    yield EFA_DEVICE.problem(pods.locate(variable.at), message, fix, f"{_PROVIDER}={_EFA}")


@cache
def _rdma_resources() -> tuple[str, ...]:
    """Return the resources of network devices that NCCL uses through InfiniBand verbs. They are read on first use."""
    (document,) = yamlfile.read(FILE)
    return tuple(document.value["resources"])


def _is_rdma_resource(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _rdma_resources())


def _check_nccl_topology_file(pods: DevicePods, container: Container, variable: Variable) -> Iterator[Problem]:
    """Warn of a topology file that is on no volume, if the image is public. A private image may have the file."""
    value, image = variable.value, container.image.removeprefix("docker.io/")
    if not value.startswith("/") or is_placeholder(value) or not image.startswith(_PUBLISHED):
        return
    targets = [mount.mount_path for mount in container.volume_mounts if mount.mount_path]
    if not any(PurePosixPath(value).is_relative_to(target) for target in targets):
        message = (
            f"names `{value}`, where no volume is mounted, so NCCL ignores the variable if the image does "
            f"not have the file"
        )
        fix = "mount a volume with the file, put the file into the image, or remove the variable"
        yield NCCL_TOPOLOGY_FILE.problem(pods.locate(variable.at), message, fix, "NCCL_TOPO_FILE")


def _check_nccl_socket_ifname(pods: DevicePods, container: Container) -> Iterator[Problem]:
    """Warn of a container that does not choose NCCL's network interface by a variable, a command or a configuration
    file.
    """
    words = [*(variable.name for variable in container.env), *container.words]
    if container.env_from or any(_INTERFACE in word for word in words):
        return
    if not any(_CONFIGURATION in mount.mount_path for mount in container.volume_mounts):
        message = (
            "is not set although the pod uses the network of its node, so NCCL may choose an interface that other "
            "nodes cannot reach"
        )
        fix = f"set {_INTERFACE} to the interface that connects the nodes, for example eth0"
        path = pods.locate(container.path("env"))
        yield NCCL_SOCKET_IFNAME.problem(path, message, fix, shown=_INTERFACE, is_conditional=True)
