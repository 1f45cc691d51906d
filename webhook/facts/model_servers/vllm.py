"""vLLM: the processes that its arguments start, and the arguments that it refuses.

Each data parallel rank has tensor times pipeline times prefill context parallel workers, with a GPU each. Without
--data-parallel-size-local, all data parallel ranks start in one pod. Ray places workers in any pod of the Ray
cluster. If the command line names a configuration file and no sizes, the sizes are not known.

Source: vllm-project/vllm vllm/config/parallel.py@00193b82 __post_init__; vllm/engine/arg_utils.py create_engine_config;
vllm/v1/executor/ray_utils.py@0057add1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from webhook.apimachinery.images import parse_image_name
from webhook.facts.model_servers.arguments import Arguments
from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import LLAMA, StartedServer
from webhook.text.wording import some_of

_DATA_TYPES: Final = {
    **dict.fromkeys(("fp16", "float16", "half"), "float16"),
    **dict.fromkeys(("bf16", "bfloat16"), "bfloat16"),
    **dict.fromkeys(("fp32", "float32"), "float32"),
}
"""Data types that users pass to --quantization by mistake, with the value for --dtype. No release of vLLM has a method
of quantization with one of these names.
"""
_BELOW_ONE: Final = re.compile(r"[+-]?0+|-[0-9]+", re.ASCII)
_LONGEST_SIZE: Final = 10
_SIZES: Final = ("tensor", "pipeline", "prefill-context", "data")
_EXCLUDING: Final = (
    *("data-local", "data-external", "data-hybrid", "data-ports", "data-rank", "decode-context", "nodes", "backend"),
    *("headless", "auto-tools", "prefill-context"),
)
"""The meanings of flags that vLLM refuses together with some other flags."""
_Release: TypeAlias = tuple[int, int, int]
_PREFILL_WITH_DATA: Final[_Release] = (0, 32, 0)
"""Releases before this release refuse prefill context ranks together with data parallel ranks."""
_FIRST_READ: Final[_Release] = (0, 6, 6)
_LAST_READ: Final[_Release] = (0, 29, 0)
"""servers.yaml has all flags of the releases from the first to the last of these two."""
_LOCAL_BACKENDS: Final = frozenset(("", "mp", "uni"))
_CPU: Final = re.compile(r"(?i)(^|[-/:_])cpu([-/:_.]|$)")
_LLAMA_CPU_IMAGE: Final = re.compile(r"ghcr\.io/(?:ggml-org|ggerganov)/llama\.cpp:server(?:-b[0-9]{1,6})?", re.ASCII)
"""The builds of llama.cpp without a library for GPUs (ggml-org/llama.cpp docs/docker.md)."""
_CUDA_IMAGE: Final = "vllm/vllm-openai"
_REMOVE: Final = "remove the flag"
_MOST_NAMED: Final = 4
_UNKNOWN_SIZES: Final = "the parallel sizes of vLLM are not in the manifest"


def processes_of_vllm(server: StartedServer, *, joins_ray: bool = False, vendor: str = "") -> ServerProcesses:
    """Return the processes that vLLM starts.

    Args:
        server: the started server.
        joins_ray: whether the pod of the server is part of a Ray cluster of several pods.
        vendor: the vendor of the container's GPUs: `nvidia`, `amd` or "".
    """
    arguments = server.arguments
    if arguments.has("omni"):
        return ServerProcesses(unknown="a configuration file of vLLM-Omni places the stages of its model")
    sizes = [arguments.number(name) for name in _SIZES]
    backend = arguments.text("backend")
    nodes = arguments.number("nodes")
    is_of_file = arguments.has("config") and not arguments.has("tensor")
    if is_of_file or None in sizes or backend is None or nodes is None:
        return ServerProcesses(unknown=_UNKNOWN_SIZES)
    tensor, pipeline, context, data = (size or 1 for size in sizes)
    world = tensor * pipeline * context
    if backend == "ray" and nodes > 1:
        return ServerProcesses(unknown="vLLM refuses several nodes together with the executor ray")
    is_ray = backend == "ray" or arguments.text("data-backend") == "ray"
    if is_ray or (joins_ray and backend == "" and nodes == 1):
        if vendor == "amd" and not joins_ray:
            return ServerProcesses(unknown="on AMD GPUs vLLM starts a Ray that assumes a GPU for each worker")
        return _processes_by_ray(server, world, joins_ray=joins_ray, is_named=is_ray)
    if backend == "external_launcher":
        return ServerProcesses()
    if backend not in _LOCAL_BACKENDS:
        return ServerProcesses(unknown=f"the executor {backend} of vLLM places its workers itself")
    local = _local_data_ranks(arguments, data, nodes)
    if local is None:
        return ServerProcesses(unknown=_UNKNOWN_SIZES)
    total = world * data
    here = -(-total // nodes) if nodes > 1 else local * world
    return ServerProcesses(
        here=here,
        total=total,
        nodes=nodes,
        sizes=_words_for_sizes(tensor, pipeline, context),
        data_ranks=local if nodes == 1 else 1,
        lower=_lower_size(arguments, tensor, pipeline * context) if nodes == 1 else "",
    )


def _local_data_ranks(arguments: Arguments, data: int, nodes: int) -> int | None:
    if arguments.has("data-rank", "data-external"):
        return 1
    return arguments.number("data-local", data) if nodes == 1 else 1


def _lower_size(arguments: Arguments, tensor: int, others: int) -> str:
    """Return the fix with a lower size; `{}` is the number of GPUs of the container."""
    if others > 1:
        return "set parallel sizes whose product is {}"
    return f"set {arguments.spelling('tensor', '--tensor-parallel-size')} " + "{}" if tensor else ""


def _words_for_sizes(tensor: int, pipeline: int, context: int) -> str:
    named = {"tensor": tensor, "pipeline": pipeline, "prefill context": context}
    return " times ".join(f"{name} {size}" for name, size in named.items() if name == "tensor" or size > 1)


def _processes_by_ray(server: StartedServer, world: int, *, joins_ray: bool, is_named: bool) -> ServerProcesses:
    """Return the workers that Ray places: on GPUs of this container if no other pod joins the Ray cluster."""
    arguments = server.arguments
    is_alone = (
        is_named and not joins_ray and not arguments.has("data") and "RAY_ADDRESS" not in server.variables
    )  # server.variables includes variables that a script sets
    return ServerProcesses(
        here=world if is_alone else None,
        total=world if is_named and not arguments.has("data") else None,
        sizes=_words_for_sizes(arguments.number("tensor") or 1, arguments.number("pipeline") or 1, 1),
        lower=_lower_size(arguments, arguments.number("tensor") or 1, arguments.number("pipeline") or 1),
        outcome="waits half an hour and exits",
        is_anywhere=not is_alone,
        unknown="" if is_alone else "Ray places the workers of vLLM in any pod of its cluster",
    )


def wants_no_gpu(server: StartedServer, image: str) -> bool:
    """Return whether an argument, a variable or the image makes a server run on the CPU.

    VLLM_TARGET_DEVICE chooses the device when vLLM is built. A server does not read the variable (vllm/platforms
    cpu_platform_plugin), so the variable only shows how an image of unknown origin was built.
    """
    if _CPU.search(image.rsplit("/", 1)[-1]) is not None or "vllm-cpu" in image:
        return True
    if server.name == LLAMA:
        return _LLAMA_CPU_IMAGE.fullmatch(image) is not None
    built_for = "" if parse_image_name(image).short_name == _CUDA_IMAGE else server.variables.get("VLLM_TARGET_DEVICE")
    return (server.arguments.values.get("device") or built_for) == "cpu"


def refusals_of_vllm(server: StartedServer, release: _Release | None = None) -> Iterator[tuple[str, str]]:
    """Yield arguments that vLLM refuses, with the fix; nothing if a shell or a configuration file may add arguments.

    Args:
        server: the started server.
        release: the release of vLLM; None if the release is not known.
    """
    arguments = server.arguments
    if arguments.is_open or arguments.has("config"):
        return
    number = arguments.number
    for name, option in (("tensor", "--tensor-parallel-size"), ("pipeline", "--pipeline-parallel-size")):
        size = arguments.text(name) or ""
        if len(size) <= _LONGEST_SIZE and _BELOW_ONE.fullmatch(size):
            yield f"vLLM refuses {option} {size} because vLLM starts at least one worker", f"set {option} 1 or more"
    if memory := arguments.refused_fraction("memory"):
        yield (
            f"vLLM refuses --gpu-memory-utilization {memory} because the value must be above 0 and at most 1",
            "set a fraction such as 0.9",
        )
    if (method := arguments.text("quantization") or "") in _DATA_TYPES:
        flag = arguments.spelling("quantization", "--quantization")
        message = f"vLLM refuses {flag} {method} because {method} is a data type, not a method of quantization"
        yield message, f"remove {flag}, or set --dtype {_DATA_TYPES[method]}"
    if not arguments.has(*_EXCLUDING):
        return
    tensor, pipeline, context, data = (number(name) for name in _SIZES)
    nodes, rank = number("nodes"), number("node-rank", 0)
    local, decode = number("data-local", data or 0), number("decode-context")
    if data is not None and local is not None and arguments.has("data-local") and local > data:
        yield (
            f"vLLM refuses --data-parallel-size-local {local} above --data-parallel-size {data}",
            f"set --data-parallel-size-local to at most {data}",
        )
    if arguments.has("auto-tools") and not arguments.has("tool-parser"):
        yield "vLLM refuses --enable-auto-tool-choice without --tool-call-parser", "add --tool-call-parser"
    yield from _refusals_of_load_balancing(arguments, data, local)
    yield from _refusals_of_context((tensor, data, context, decode), release)
    if nodes is not None and nodes > 1:
        yield from _refusals_of_several_nodes(arguments, nodes, rank, (tensor, pipeline, data, context))
    if arguments.text("backend") == "uni" and pipeline is not None and pipeline > 1:
        yield (
            f"vLLM refuses --distributed-executor-backend uni with --pipeline-parallel-size {pipeline}",
            "set --distributed-executor-backend mp",
        )
    if arguments.has("headless"):
        if (number("api-servers", 0) or 0) > 0:
            yield "vLLM refuses --headless together with --api-server-count", "remove --api-server-count, or --headless"
        if arguments.has("data-hybrid"):
            yield "vLLM refuses --headless together with --data-parallel-hybrid-lb", "remove one of them"


def has_known_flags(release: _Release | None) -> bool:
    """Return whether servers.yaml has all flags of a release. The release certainly refuses any other flag."""
    return release is not None and _FIRST_READ <= release <= _LAST_READ


def flags_removed_from_vllm(server: StartedServer, release: _Release | None) -> tuple[Sequence[str], str, str]:
    """Return the flags that a release of vLLM no longer has, with the message and the fix; no flags if the release is
    not known.
    """
    removed = {
        name: flag.fix
        for name, flag in server.arguments.removed.items()
        if release is not None and release >= flag.release
    }
    if not removed or release is None:
        return (), "", ""
    names, words = [*removed], "this flag" if len(removed) == 1 else "these flags"
    message = (
        f"vLLM {'.'.join(map(str, release))} refuses {some_of(names, _MOST_NAMED)} because this release no longer has "
        f"{words}"
    )
    instead = [f"{fix} in place of {name}" for name, fix in removed.items() if not fix.startswith(_REMOVE)]
    several = "; ".join([f"{_REMOVE}s", *instead])
    return names, message, removed[names[0]] if len(names) == 1 else several


def _refusals_of_context(sizes: Sequence[int | None], release: _Release | None) -> Iterator[tuple[str, str]]:
    """Yield context parallel sizes that vLLM refuses. `sizes`: tensor, data, prefill context and decode context."""
    tensor, data, prefill, decode = sizes
    if tensor is None or prefill is None or decode is None:
        return
    if prefill > 1 and data and data > 1 and release is not None and release < _PREFILL_WITH_DATA:
        others = f"--prefill-context-parallel-size {prefill} together with --data-parallel-size {data}"
        yield f"vLLM before 0.32 refuses {others}", "remove one of them"
    if prefill == 1 and decode and tensor % decode:
        size = f"--decode-context-parallel-size {decode}"
        message = f"vLLM refuses --tensor-parallel-size {tensor} because it is not a multiple of {size}"
        yield message, f"set a multiple of {decode}"


def _refusals_of_load_balancing(arguments: Arguments, data: int | None, local: int | None) -> Iterator[tuple[str, str]]:
    """Yield modes of load balancing that vLLM refuses: external, hybrid, or with a port for each rank."""
    if arguments.has("data-external") and data == 1:
        yield "vLLM refuses --data-parallel-external-lb with one data parallel rank", "set --data-parallel-size"
    given = [name for name in ("data-external", "data-hybrid", "data-ports") if arguments.has(name)]
    if len(given) > 1:
        others = " and ".join(arguments.written(*given[1:]))
        yield "vLLM refuses two modes of load balancing", f"remove {others} or {arguments.written(given[0])[0]}"
    elif arguments.has("data-ports") and (data == 1 or local == 1 or not arguments.has("data-local")):
        flag = arguments.written("data-ports")[0]
        message = f"vLLM refuses {flag} without several data parallel ranks in the pod"
        yield message, "set --data-parallel-size and --data-parallel-size-local to 2 or more"
    if arguments.has("data-rank", "data-external") and arguments.has("data-local") and local is not None and local > 1:
        message = f"vLLM refuses --data-parallel-size-local {local} in a pod with one rank"
        yield message, "remove --data-parallel-size-local"


def _refusals_of_several_nodes(
    arguments: Arguments, nodes: int, rank: int | None, sizes: Sequence[int | None]
) -> Iterator[tuple[str, str]]:
    for name, option in (("backend", "--distributed-executor-backend"), ("data-backend", "--data-parallel-backend")):
        if arguments.text(name) == "ray":
            yield (
                f"vLLM refuses --nnodes {nodes} together with {option} ray",
                f"remove --nnodes to use Ray, or {option} to use --nnodes",
            )
    if None not in sizes:
        tensor, pipeline, data, context = (size or 0 for size in sizes)
        total = tensor * pipeline * data
        if total % nodes and (total * context) % nodes:  # older releases do not count prefill context ranks
            product = f"tensor {tensor} times pipeline {pipeline} times data {data}"
            message = f"vLLM refuses --nnodes {nodes} because {nodes} does not divide its {total} workers ({product})"
            yield message, f"set parallel sizes whose product is a multiple of {nodes}"
    if rank is not None and rank >= nodes and arguments.has("node-rank"):
        yield (
            f"vLLM refuses --node-rank {rank} because ranks of --nnodes {nodes} end at {nodes - 1}",
            f"set --node-rank below {nodes}",
        )
