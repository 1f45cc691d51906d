"""The number of processes with their own GPU that a model server starts, compared with the number of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.paths import FieldPath
from webhook.facts.model_servers.gpus import ContainerGpus
from webhook.facts.model_servers.server_candidates import MODEL_SERVER
from webhook.facts.model_servers.started_servers import TRITON
from webhook.rules.problem import Problem
from webhook.text.wording import counted

PARALLEL_SIZE_ABOVE_GPUS: Final = MODEL_SERVER.rule(
    "model-server/parallel-size-above-gpus",
    title="tensor-parallel-size is above the number of GPUs of the pod",
    why=(
        "A model server starts one process for each rank, and each process needs a GPU. With fewer GPUs the server "
        "exits at start, and the container restarts for ever."
    ),
    refused_by="the server, when it starts",
    function="ParallelConfig.__post_init__",
    issues=(
        "https://github.com/vllm-project/vllm/pull/30140",
        "https://github.com/vllm-project/vllm/issues/15217",
        "https://github.com/vllm-project/vllm/issues/8908",
    ),
)
DATA_PARALLEL_SIZE_ABOVE_GPUS: Final = MODEL_SERVER.rule(
    "model-server/data-parallel-size-above-gpus",
    title="All data parallel ranks start in one pod that has too few GPUs",
    why="Without --data-parallel-size-local, vLLM starts all ranks in this pod, and exits if a rank has no GPU.",
    refused_by="the server, when it starts",
    source="vllm-project/vllm vllm/engine/arg_utils.py",
    function="EngineArgs.create_engine_config",
)
PARALLEL_SIZE_MAY_EXCEED_GPUS: Final = MODEL_SERVER.rule(
    "model-server/parallel-size-may-exceed-gpus",
    title="The parallel sizes of a server may need more GPUs than the pod has",
    why=(
        "The server starts a process for each rank. Depending on engine, release and image, the server runs several "
        "processes on one GPU, waits, or exits."
    ),
    source="NVIDIA/TensorRT-LLM@00209af1 tensorrt_llm/commands/serve.py",
    level="advice",
    fails="start",
)
GPUS_UNUSED: Final = MODEL_SERVER.rule(
    "model-server/gpus-unused",
    title="A model server leaves GPUs of its container unused",
    why="A model server uses as many GPUs as its parallel sizes need, and the other GPUs stay idle.",
    level="advice",
    severity="low",
    fails="silent",
)
SEVERAL_SLICES: Final = MODEL_SERVER.rule(
    "model-server/several-slices",
    title="A model server requests several MIG slices",
    why="Before driver 570 a CUDA process sees only one MIG slice, so the other slices of the container stay idle.",
    source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    level="advice",
    fails="silent",
    issues=("https://github.com/vllm-project/vllm/issues/7211",),
)
NO_GPU: Final = MODEL_SERVER.rule(
    "model-server/no-gpu",
    title="A model server requests 0 GPUs",
    why=(
        "A container with 0 GPUs may be placed on a node without GPUs. On a node with NVIDIA's runtime it may see "
        "every GPU, also the GPUs of other pods."
    ),
    source="https://github.com/NVIDIA/k8s-device-plugin",
    level="advice",
    fails="start",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcesses:
    """The processes of a server that need a GPU each.

    Args:
        here: the number of processes in this container; None if the number is not known.
        total: the number of processes of all nodes; None if the number is not known.
        nodes: the number of nodes that share the processes.
        noun: the name of one process in messages.
        plural: the name of several processes in messages.
        sizes: the sizes that decide the number of processes, such as `tensor 4 times pipeline 2`.
        data_ranks: the number of data parallel ranks in this container.
        lower: the settings for fewer processes; `{}` is the number of GPUs of the container.
        outcome: what the server does without enough GPUs.
        is_advice: whether the server may run without enough GPUs.
        is_anywhere: whether Ray places the processes in any pod of the Ray cluster.
        unknown: why the number is not known; "" for a known number.
    """

    here: int | None = None
    total: int | None = None
    nodes: int = 1
    noun: str = "worker"
    plural: str = "workers"
    sizes: str = ""
    data_ranks: int = 1
    lower: str = ""
    outcome: str = "exits at start"
    is_advice: bool = False
    is_anywhere: bool = False
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAtPath:
    """What the rules of this module read about one container.

    Args:
        server: the name of the server.
        path: the path of the container.
        processes: the processes of the server.
        gpus: the GPUs of the container.
        flags: the flags that set the number of processes, as written.
        may_see_others: whether the container may see GPUs of its node that it does not request.
    """

    server: str
    path: FieldPath
    processes: ServerProcesses
    gpus: ContainerGpus
    flags: tuple[str, ...] = ()
    may_see_others: bool = False


def check_processes_against_gpus(at: ServerAtPath) -> Iterator[Problem]:
    """Report processes without a GPU in their container, and GPUs without a process."""
    processes, gpus, most = at.processes, at.gpus.count, at.gpus.most
    if processes.here is None or most is None or processes.is_anywhere:
        return
    if processes.here > most:
        yield _problem_of_lacking_gpus(at, processes.here, most)
    elif gpus is not None and processes.here < gpus:
        uses = f"{at.server} uses {processes.here} of {counted(gpus, 'GPU')}"
        uses += f" on each of {processes.nodes} nodes" if processes.nodes > 1 else ""
        message = f"{uses}, so the other GPUs stay idle"
        lower = f"{processes.lower.format(gpus)}, or " if processes.lower else ""
        fix = f"{lower}request {counted(processes.here, 'GPU')}"
        yield GPUS_UNUSED.problem(at.path, message, fix, words=at.flags)


def _problem_of_lacking_gpus(at: ServerAtPath, here: int, gpus: int) -> Problem:
    processes = at.processes
    has = f"the container has {counted(gpus, 'GPU')}"
    if at.gpus.count is None:
        has = f"the container has {counted(gpus, 'share')} of GPUs and sees at most {counted(gpus, 'GPU')}"
    request = f"request {counted(here, 'GPU')}"
    outcome = processes.outcome + (" unless it sees other GPUs of its node" if at.may_see_others else "")
    if processes.data_ranks > 1:
        ranks = counted(processes.data_ranks, "data parallel rank")
        each = here // processes.data_ranks
        needs = f" and need {counted(here, 'GPU')}" if each > 1 else ""
        message = f"{ranks} of {at.server} start in this pod{needs}, but {has}, so {at.server} {outcome}"
        local = f"--data-parallel-size-local {max(1, gpus // each)}"
        fix = f"{request}, or set {local} and --data-parallel-address, and add pods"
        if not processes.is_advice:
            rule, is_conditional = DATA_PARALLEL_SIZE_ABOVE_GPUS, at.may_see_others
            return rule.problem(at.path, message, fix, words=at.flags, is_conditional=is_conditional)
        return problem_of_parallel_size(at.path, message, fix, at.flags, is_advice=True)
    sizes = f" ({processes.sizes})" if processes.sizes else ""
    starts = f"{at.server} starts {counted(here * processes.nodes, processes.noun, processes.plural)}{sizes}"
    lower = processes.lower.format(gpus)
    if processes.nodes > 1:
        starts = f"{starts}, {here} on each of {processes.nodes} nodes"
        lower = f"set parallel sizes whose product is {gpus * processes.nodes}"
    fix = f"{lower}, or {request}" if lower else request
    message = f"{starts}, but {has}, so {at.server} {outcome}"
    problem = problem_of_parallel_size(at.path, message, fix, at.flags, is_advice=processes.is_advice)
    return replace(problem, is_conditional=at.may_see_others)


def problem_of_parallel_size(
    path: FieldPath, message: str, fix: str, flags: tuple[str, ...] = (), *, is_advice: bool = False
) -> Problem:
    """Return the problem of parallel sizes above the GPUs of a pod."""
    rule = PARALLEL_SIZE_MAY_EXCEED_GPUS if is_advice else PARALLEL_SIZE_ABOVE_GPUS
    return rule.problem(path, message, fix, words=flags)


def check_slices_and_absent_gpus(at: ServerAtPath) -> Iterator[Problem]:
    """Report several MIG slices in one container, and a request of 0 GPUs."""
    number = sum(count for _, count in at.gpus.slices)
    if number > 1:
        name = at.gpus.slices[0][0]
        sees = "but before driver 570 a process sees one MIG slice, so the other slices stay idle"
        message = f"requests {number} of {name}, {sees}"
        yield SEVERAL_SLICES.problem(at.path, message, "request one larger MIG slice, or whole GPUs")
    if at.gpus.requested_zero and at.gpus.count is None and not at.gpus.by_claims and at.server != TRITON:
        name = at.gpus.requested_zero
        message = (
            f"requests 0 of {name}, so {at.server} may start on a node without a GPU, or see the GPUs of other pods"
        )
        yield NO_GPU.problem((*at.path, "resources", "limits", name), message, f"request at least 1 of {name}")
