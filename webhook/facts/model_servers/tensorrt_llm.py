"""TensorRT-LLM: the ranks that trtllm-serve starts, and those of Triton's model servers that mpirun starts.

`--config` names a file that overrides the flags. Devices are compared with the ranks of one node: by default the
visible GPUs count as the GPUs of a node, so more ranks mean several nodes.

Source: NVIDIA/TensorRT-LLM@00209af1 tensorrt_llm/commands/serve.py and tensorrt_llm/llmapi/llm.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import StartedServer


def processes_of_tensorrt_llm(server: StartedServer) -> ServerProcesses:
    """Return the ranks that trtllm-serve starts in one container."""
    arguments = server.arguments
    tensor, pipeline, context = (arguments.number(name) for name in ("tensor", "pipeline", "context"))
    per_node = arguments.number("gpus-per-node", 0)
    if tensor is None or pipeline is None or context is None or per_node is None or arguments.has("config"):
        return ServerProcesses(unknown="a file may override the parallel sizes of trtllm-serve")
    world = tensor * pipeline * context
    named = {"tensor": tensor, "pipeline": pipeline, "context": context}
    nodes = -(-world // per_node) if per_node else 1
    return ServerProcesses(
        here=-(-world // nodes) if nodes else world,
        total=world,
        noun="rank",
        plural="ranks",
        sizes=" times ".join(f"{name} {size}" for name, size in named.items() if name == "tensor" or size > 1),
        lower="set sizes whose product is {}",
        outcome="exits at start" if per_node else "treats them as processes of several nodes, or fails",
        is_advice=not per_node,
    )


def refusals_of_tensorrt_llm(server: StartedServer) -> Iterator[tuple[str, str]]:
    """Yield arguments that TensorRT-LLM refuses, with the fix; a configuration file overrides them."""
    memory = "" if server.arguments.has("config") else server.arguments.refused_fraction("memory")
    if memory and memory.strip("0."):
        flag = server.arguments.spelling("memory", "--kv_cache_free_gpu_memory_fraction")
        yield f"trtllm-serve refuses {flag} {memory} because it is a fraction from 0 to 1", "set a fraction such as 0.9"
