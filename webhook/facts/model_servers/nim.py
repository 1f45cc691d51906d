"""NIM: variables choose a profile with a number of GPUs; without them NIM chooses a profile for the available GPUs.

Source: NVIDIA/k8s-nim-operator@f63f74d7 api/apps/v1alpha1/nimservice_types.go.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import StartedServer

TENSOR: Final = "NIM_TENSOR_PARALLEL_SIZE"
PIPELINE: Final = "NIM_PIPELINE_PARALLEL_SIZE"
PROFILE: Final = "NIM_MODEL_PROFILE"
_OF_SEVERAL_NODES: Final = frozenset(("NIM_NUM_COMPUTE_NODES", "NIM_LEADER_ROLE", "NIM_MULTI_NODE"))
_SIZES_OF_PROFILE: Final = re.compile(
    r"[a-z][a-z0-9_.-]{0,80}?-tp([0-9]{1,3})(?:-pp([0-9]{1,3}))?(?:-[a-z0-9_.-]{0,80})?", re.ASCII
)
_SIZE: Final = re.compile(r"[0-9]{1,3}", re.ASCII)


def processes_of_nim(server: StartedServer) -> ServerProcesses:
    """Return the workers of the profile that the variables choose."""
    variables = server.variables
    if not _OF_SEVERAL_NODES.isdisjoint(variables):
        return ServerProcesses(unknown="NIM runs on several nodes")
    profile = _SIZES_OF_PROFILE.fullmatch(variables.get(PROFILE, ""))
    sizes = [variables.get(name, "") for name in (TENSOR, PIPELINE)]
    if profile is not None:
        tensor, pipeline, written = profile[1], profile[2] or "1", f"{PROFILE} {profile[0]}"
        lower = "choose a profile of {}"
    elif any(sizes) and all(_SIZE.fullmatch(size or "1") for size in sizes):
        tensor, pipeline = (size or "1" for size in sizes)
        written = " times ".join(f"{name} {size}" for name, size in zip((TENSOR, PIPELINE), sizes, strict=True) if size)
        lower = f"set {TENSOR} " + "{}" if pipeline == "1" else "set sizes whose product is {}"
    else:
        return ServerProcesses()
    total = int(tensor) * int(pipeline)
    return ServerProcesses(
        here=total, total=total, sizes=written, lower=lower, outcome="has no profile for them and exits", is_advice=True
    )
