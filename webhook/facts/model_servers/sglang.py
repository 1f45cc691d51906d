"""SGLang: the processes that its arguments start, and the arguments that it refuses.

The number of processes is data times tensor times pipeline. Attention data parallelism adds no processes. Several
nodes share the tensor and pipeline processes.

Source: PyPI sglang 0.5.23 sglang/srt/server_args.py compute_world_size and arg_groups/validation_hook.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import StartedServer


def processes_of_sglang(server: StartedServer) -> ServerProcesses:
    """Return the processes that SGLang starts."""
    arguments = server.arguments
    sizes = [arguments.number(name) for name in ("tensor", "pipeline", "data", "nodes")]
    is_of_file = arguments.has("config") and not arguments.has("tensor")
    if None in sizes or is_of_file:
        return ServerProcesses(unknown="the parallel sizes of SGLang are not in the manifest")
    tensor, pipeline, data, nodes = (size or 1 for size in sizes)
    if arguments.has("data-attention"):
        data = 1
    if data > 1 and nodes > 1:
        return ServerProcesses(unknown="SGLang refuses data parallel ranks on several nodes")
    here = -(-tensor * pipeline // nodes) if nodes > 1 else data * tensor * pipeline
    named = {"tensor": tensor, "pipeline": pipeline, "data": data}
    return ServerProcesses(
        here=here,
        total=data * tensor * pipeline,
        nodes=nodes,
        noun="process",
        plural="processes",
        sizes=" times ".join(f"{name} {size}" for name, size in named.items() if name == "tensor" or size > 1),
        lower=f"set {arguments.spelling('tensor', '--tp-size')} " + "{}" if data * pipeline * nodes == 1 else "",
    )


def refusals_of_sglang(server: StartedServer) -> Iterator[tuple[str, str]]:
    """Yield arguments that SGLang refuses, with the fix."""
    arguments = server.arguments
    tensor, pipeline, data = (arguments.number(name) for name in ("tensor", "pipeline", "data"))
    nodes, attention = arguments.number("nodes"), arguments.number("attention-data")
    if (
        tensor is None
        or pipeline is None
        or data is None
        or nodes is None
        or arguments.is_open
        or arguments.has("config")
    ):
        return
    world = tensor * pipeline
    if nodes > 1 and world % nodes:
        sizes = f"tensor {tensor} times pipeline {pipeline}"
        message = f"SGLang refuses --nnodes {nodes} because {nodes} does not divide its {world} processes ({sizes})"
        yield message, f"set parallel sizes whose product is a multiple of {nodes}"
    rank = arguments.number("node-rank", 0)
    if nodes > 1 and rank is not None and rank >= nodes:
        message = f"SGLang fails with --node-rank {rank} because ranks of --nnodes {nodes} end at {nodes - 1}"
        yield message, f"set --node-rank below {nodes}"
    if nodes > 1 and data > 1 and not arguments.has("data-attention"):
        message = f"SGLang refuses --dp-size {data} together with --nnodes {nodes}"
        yield message, "add --enable-dp-attention, or remove --dp-size"
    option = "--attn-dp-size"
    if arguments.has("data-attention") and not arguments.has("attention-data"):
        option, attention = "--dp-size", data  # --enable-dp-attention turns data into attention data parallelism
    if attention and attention > 1 and tensor % attention:
        message = f"SGLang refuses --tp-size {tensor} because it is not a multiple of {option} {attention}"
        yield message, f"set a multiple of {attention}"
    if memory := arguments.refused_fraction("memory"):
        message = (
            f"SGLang fails with --mem-fraction-static {memory} because the value must be a fraction of the GPU memory"
        )
        yield message, "set a fraction such as 0.85"


def last_gpu_of_sglang(server: StartedServer, here: int) -> int | None:
    """Return the index of the last GPU that SGLang uses; None if the index is not known, or if no flag shifts the
    index.
    """
    first, step = server.arguments.number("first-gpu", 0), server.arguments.number("gpu-step", 1)
    if first is None or step is None or (first == 0 and step == 1):
        return None
    return first + (here - 1) * step
