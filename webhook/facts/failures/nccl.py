"""Settings of NCCL that contradict the pod that they are set in.

https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html; that a topology file which is not there is passed
over: NVIDIA/nccl v2.27 src/graph/xml.cc ncclTopoGetXmlFromFile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from webhook import yamlfile
from webhook.facts.check import Group
from webhook.facts.command_lines.command import launched
from webhook.facts.gpu.device_pods import LAUNCHERS, DevicePods, path_of, workload
from webhook.facts.pods.containers import Container, environment, variables
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, names, text
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("device-failures").problem
FILE: Final = Path(__file__).with_name("rdma.yaml")
_LOOKED_AT: Final = ("NCCL_IB_DISABLE", "NCCL_TOPO_FILE")
_INTERFACE: Final = "NCCL_SOCKET_IFNAME"
_CONFIGURATION: Final = "nccl.conf"


def advise_nccl(subject: Subject) -> Iterator[Problem]:
    """Every container with devices that sets NCCL against its pod."""
    made = subject.once(workload)
    for pods in made.device_pods:
        for container in pods.containers:
            known = _variables(container, subject)
            if known.get("NCCL_IB_DISABLE") == "1":
                yield from _no_infiniband(pods, container, subject)
            if value := known.get("NCCL_TOPO_FILE"):
                yield from _topology_file(pods, container, value, subject)
            if pods.spec.get("hostNetwork") is True and made.count > 1 and _starts_nccl(container, subject):
                yield from _interface(pods, container, subject)


def _variables(container: Container, subject: Subject) -> Mapping[str, str | None]:
    """The variables of a container if it has one of those that are looked at."""
    listed = names(container.value.get("env"))
    subject.deadline.spend(len(listed))
    return variables(container.value, subject) if any(name in listed for name in _LOOKED_AT) else {}


def _at(pods: DevicePods, container: Container, name: str, subject: Subject) -> str:
    """Where the variable of a name stands that counts, which is the last."""
    listed = list(environment(container.value, subject).names)
    return path_of(pods, container, "env", len(listed) - 1 - listed[::-1].index(name))


def _no_infiniband(pods: DevicePods, container: Container, subject: Subject) -> Iterator[Problem]:
    requested = next((name for name in container.amounts("limits") if _is_rdma(name)), "")
    if requested:
        message = f"turns InfiniBand and RoCE off, but the container requests `{requested}`, which then stays unused"
        at = _at(pods, container, "NCCL_IB_DISABLE", subject)
        yield problem(
            "nccl-ib-disable", at, message, "remove the variable, or do not request the resource", "NCCL_IB_DISABLE=1"
        )


@cache
def _rdma() -> tuple[str, ...]:
    """Resources of network devices that NCCL uses through InfiniBand verbs; read on first use."""
    (document,) = yamlfile.read(FILE)
    return tuple(document.value["resources"])


def _is_rdma(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _rdma())


def _topology_file(pods: DevicePods, container: Container, value: str, subject: Subject) -> Iterator[Problem]:
    if not value.startswith("/") or is_placeholder(value):
        return
    targets = (text(mapping(each).get("mountPath")) for each in items(container.value.get("volumeMounts")))
    if not any(target and PurePosixPath(value).is_relative_to(target) for target in targets):
        message = (
            f"names `{value}`, where no volume is mounted, so NCCL ignores the variable if the image does "
            f"not have the file"
        )
        at = _at(pods, container, "NCCL_TOPO_FILE", subject)
        yield problem(
            "nccl-topology-file",
            at,
            message,
            "mount a volume with the file, put the file into the image, or remove the variable",
            "NCCL_TOPO_FILE",
        )


def _starts_nccl(container: Container, subject: Subject) -> bool:
    return launched(container.value, subject).by in LAUNCHERS


def _interface(pods: DevicePods, container: Container, subject: Subject) -> Iterator[Problem]:
    """No word of the interface in the container: neither a variable, nor a command, nor a file of settings."""
    value = container.value
    written = [*(text(mapping(each).get("name")) for each in items(value.get("env"))), *container.words]
    mounted = [text(mapping(each).get("mountPath")) for each in items(value.get("volumeMounts"))]
    subject.deadline.spend(len(written) + len(mounted))
    if value.get("envFrom") or any(_INTERFACE in each for each in written):
        return
    if not any(_CONFIGURATION in each for each in mounted):
        message = (
            "is not set although the pod uses the network of its node, so NCCL may choose an interface that other "
            "nodes cannot reach"
        )
        fix = f"set {_INTERFACE}, such as to eth0"
        yield problem("nccl-socket-ifname", path_of(pods, container, "env"), message, fix, shown=_INTERFACE)
