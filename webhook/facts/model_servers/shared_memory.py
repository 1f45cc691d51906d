"""Shared memory of model servers with several processes.

A container runtime gives /dev/shm 64 MiB. NCCL and the queues between processes use it, and often do without more of it
where GPUs are connected directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.model_servers.groups import MODEL_SERVER
from webhook.facts.model_servers.servers_of_object import ServerContainer
from webhook.facts.model_servers.started_servers import LLAMA
from webhook.rules.problem import Problem
from webhook.text.wording import counted

SHARED_MEMORY: Final = MODEL_SERVER.rule(
    "model-server/shared-memory",
    title="A model server with several GPUs has only 64 MiB of shared memory",
    why="NCCL and the queues between the processes use /dev/shm. The server may fail with a bus error when it is full.",
    source="https://github.com/vllm-project/vllm/issues/7466",
    level="advice",
    issues=("https://github.com/vllm-project/production-stack/issues/276",),
)
_PATH: Final = "/dev/shm"  # noqa: S108 - a mount inside a container


def advise_shared_memory(member: ServerContainer) -> Iterator[Problem]:
    """Advise on a server of several processes in a container with no more shared memory than any other has."""
    gpus, processes = member.gpus.count or 0, member.processes.here
    is_one_process = processes == 1 or member.server.name == LLAMA
    if gpus < 2 or is_one_process or member.spec.host_ipc or member.pod_set.elsewhere:
        return
    if not any(each.mount_path.rstrip("/") == _PATH for each in member.container.volume_mounts):
        message = f"has {counted(gpus, 'GPU')} but only 64 MiB of /dev/shm, which may be too little for NCCL"
        yield SHARED_MEMORY.problem(member.path, message, "mount an emptyDir with medium Memory at /dev/shm")
