"""LMDeploy: TurboMind looks for a layout of its GPUs and finds none, the PyTorch engine asks Ray and waits.

Source: InternLM/lmdeploy@1263d5cd8 lmdeploy/turbomind/parallel_config.py, lmdeploy/pytorch/engine/executor.
"""

from __future__ import annotations

from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import StartedServer


def processes_of_lmdeploy(server: StartedServer) -> ServerProcesses:
    """Return the workers that LMDeploy starts in one container."""
    arguments = server.arguments
    tensor, nodes = arguments.number("tensor"), arguments.number("nodes")
    if tensor is None or nodes is None or nodes > 1 or arguments.has("data"):
        return ServerProcesses(unknown="the parallel sizes of LMDeploy are not in the manifest")
    return ServerProcesses(
        here=tensor,
        total=tensor,
        sizes=f"tensor {tensor}",
        lower="set --tp {}",
        outcome="finds no layout or waits, depending on the engine",
        is_advice=True,
    )
