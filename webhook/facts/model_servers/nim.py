"""NIM: variables choose a profile of so many GPUs; without them NIM chooses one by the GPUs that it finds.

Source: NVIDIA/k8s-nim-operator@f63f74d7 api/apps/v1alpha1/nimservice_types.go.
"""

from __future__ import annotations

from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import StartedServer

TENSOR = "NIM_TENSOR_PARALLEL_SIZE"
PIPELINE = "NIM_PIPELINE_PARALLEL_SIZE"


def processes_of_nim(server: StartedServer) -> ServerProcesses:
    """Return the workers of the profile that the variables choose."""
    tensor, pipeline = server.variables.get(TENSOR, ""), server.variables.get(PIPELINE, "1")
    if not (tensor.isdigit() and pipeline.isdigit() and len(tensor + pipeline) < 8) or int(pipeline) != 1:
        return ServerProcesses()
    return ServerProcesses(
        here=int(tensor),
        total=int(tensor),
        sizes=f"{TENSOR} {tensor}",
        lower=f"set {TENSOR} " + "{}",
        outcome="finds no profile for them",
        is_advice=True,
    )
