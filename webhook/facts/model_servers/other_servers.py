"""The processes that TGI, TensorRT-LLM, LMDeploy, NIM and Triton start, and arguments that TGI and TensorRT-LLM
refuse.

- TGI starts shards, each a process with its own GPU. If no number is set, TGI starts a shard for every visible GPU. A
  variable can set each option of the launcher. `--sharded true` without a number fails with a single visible GPU.
- TensorRT-LLM: `--config` names a file that overrides the flags of trtllm-serve. The GPUs of the container are
  compared with the ranks of one node. By default TensorRT-LLM counts the visible GPUs as one node, so more ranks need
  several nodes.
- LMDeploy: with too few GPUs, the engine TurboMind fails, and the PyTorch engine waits for Ray.
- NIM: variables choose a profile with a number of GPUs. Without these variables, NIM chooses a profile for the
  available GPUs.
- Triton: mpirun, or a script that calls mpirun, starts one rank of the server for each GPU that the engine was built
  for.

Source: huggingface/text-generation-inference@db931fcf launcher/src/main.rs find_num_shards and
server/text_generation_server/utils/dist.py; NVIDIA/TensorRT-LLM@00209af1 tensorrt_llm/commands/serve.py and
tensorrt_llm/llmapi/llm.py; InternLM/lmdeploy@1263d5cd8 lmdeploy/turbomind/parallel_config.py,
lmdeploy/pytorch/engine/executor; NVIDIA/k8s-nim-operator@f63f74d7 api/apps/v1alpha1/nimservice_types.go;
triton-inference-server/tensorrtllm_backend scripts/launch_triton_server.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.model_servers.arguments import Arguments
from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import TRITON, StartedServer
from webhook.facts.subject import Subject
from webhook.typed.pods import Container

NIM_TENSOR: Final = "NIM_TENSOR_PARALLEL_SIZE"
NIM_PIPELINE: Final = "NIM_PIPELINE_PARALLEL_SIZE"
NIM_PROFILE: Final = "NIM_MODEL_PROFILE"
_NIM_OF_SEVERAL_NODES: Final = frozenset(("NIM_NUM_COMPUTE_NODES", "NIM_LEADER_ROLE", "NIM_MULTI_NODE"))
_SIZES_OF_PROFILE: Final = re.compile(
    r"[a-z][a-z0-9_.-]{0,80}?-tp([0-9]{1,3})(?:-pp([0-9]{1,3}))?(?:-[a-z0-9_.-]{0,80})?", re.ASCII
)
_SIZE: Final = re.compile(r"[0-9]{1,3}", re.ASCII)
_TRITON_SERVER: Final = re.compile(r"\btritonserver\b")


def processes_of_tgi(server: StartedServer) -> ServerProcesses:
    """Return the shards that TGI starts; unknown if no flag and no variable sets their number."""
    shards = _shards_of_tgi(server)
    is_single = (server.arguments.text("sharded") or server.variables.get("SHARDED", "")).lower() == "false"
    if shards is None:
        if is_single and not server.arguments.is_open:
            return ServerProcesses(here=1, total=1, noun="shard", plural="shards", lower="set --num-shard {}")
        return ServerProcesses()
    name = server.arguments.spellings.get("shards", "NUM_SHARD")
    return ServerProcesses(
        here=shards,
        total=shards,
        noun="shard",
        plural="shards",
        sizes=f"{name} {shards}",
        lower=f"set {name} " + "{}",
    )


def _shards_of_tgi(server: StartedServer) -> int | None:
    written = server.arguments.values.get("shards") or server.variables.get("NUM_SHARD") or ""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 5 else None


def refusals_of_tgi(server: StartedServer, gpus: int | None) -> Iterator[tuple[str, str]]:
    """Yield the refusals of a flag that is given twice, and of `--sharded true` without a number on one GPU."""
    for flag in server.arguments.repeated[:1]:
        yield f"TGI refuses {flag} because it is given twice", f"give {flag} once"
    by_flag = server.arguments.text("sharded")
    sharded, name = (by_flag, "--sharded true") if by_flag else (server.variables.get("SHARDED", ""), "SHARDED=true")
    visible = server.variables.get("CUDA_VISIBLE_DEVICES", "")
    counted = len(visible.split(",")) if visible else gpus
    if sharded.lower() == "true" and _shards_of_tgi(server) is None and counted == 1 and not server.arguments.is_open:
        has = f"the one GPU of CUDA_VISIBLE_DEVICES={visible[:40]}" if visible else "1 GPU"
        message = f"TGI refuses {name} with {has} because sharding needs several GPUs"
        lower = "remove --sharded" if by_flag else "remove SHARDED"
        yield message, "remove CUDA_VISIBLE_DEVICES" if visible else f"{lower}, or request more GPUs"


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
        lower="set parallel sizes whose product is {}",
        outcome="exits at start" if per_node else "expects several nodes, or fails",
        is_advice=not per_node,
    )


def refusals_of_tensorrt_llm(server: StartedServer) -> Iterator[tuple[str, str]]:
    """Yield an argument that TensorRT-LLM refuses, with the fix; nothing with a configuration file, which may
    override the argument.
    """
    memory = "" if server.arguments.has("config") else server.arguments.refused_fraction("memory")
    if memory and memory.strip("0."):
        flag = server.arguments.spelling("memory", "--kv_cache_free_gpu_memory_fraction")
        yield (
            f"trtllm-serve refuses {flag} {memory} because the value must be a fraction from 0 to 1",
            "set a fraction such as 0.9",
        )


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
        outcome="fails or waits, depending on the engine",
        is_advice=True,
    )


def processes_of_nim(server: StartedServer) -> ServerProcesses:
    """Return the workers of the profile that the variables choose."""
    variables = server.variables
    if not _NIM_OF_SEVERAL_NODES.isdisjoint(variables):
        return ServerProcesses(unknown="NIM runs on several nodes")
    profile = _SIZES_OF_PROFILE.fullmatch(variables.get(NIM_PROFILE, ""))
    sizes = [variables.get(name, "") for name in (NIM_TENSOR, NIM_PIPELINE)]
    if profile is not None:
        tensor, pipeline, written = profile[1], profile[2] or "1", f"{NIM_PROFILE} {profile[0]}"
        lower = "choose a profile with parallel sizes whose product is {}"
    elif any(sizes) and all(_SIZE.fullmatch(size or "1") for size in sizes):
        tensor, pipeline = (size or "1" for size in sizes)
        written = " times ".join(
            f"{name} {size}" for name, size in zip((NIM_TENSOR, NIM_PIPELINE), sizes, strict=True) if size
        )
        lower = f"set {NIM_TENSOR} " + "{}" if pipeline == "1" else "set parallel sizes whose product is {}"
    else:
        return ServerProcesses()
    total = int(tensor) * int(pipeline)
    return ServerProcesses(
        here=total, total=total, sizes=written, lower=lower, outcome="finds no profile and exits", is_advice=True
    )


def triton_of_container(container: Container, subject: Subject) -> StartedServer | None:
    """Return the server of Triton that mpirun starts in a container; None without mpirun or Triton."""
    launch = cached_launch_of_container(container, subject)
    if launch.by != "mpirun" or launch.ranks is None or not container.runs(_TRITON_SERVER):
        return None
    return StartedServer(name=TRITON, arguments=Arguments(values={"ranks": str(launch.ranks)}))


def processes_of_triton(server: StartedServer) -> ServerProcesses:
    """Return the ranks that mpirun starts."""
    ranks = server.arguments.number("ranks", 0)
    return ServerProcesses(
        here=ranks or None,
        total=ranks or None,
        noun="rank",
        plural="ranks",
        sizes=f"{server.arguments.spelling('ranks', 'mpirun -n')} {ranks}",
        lower=f"set {server.arguments.spelling('ranks', '-n')} " + "{}",
        outcome="fails, or runs two ranks on one GPU",
        is_advice=True,
    )
