"""Arguments that a server refuses, single or combined, and images of vLLM without Ray."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath
from webhook.facts.model_servers.server_candidates import MODEL_SERVER
from webhook.facts.model_servers.servers_of_object import ServerContainer, refusals_of_server
from webhook.facts.model_servers.sglang import last_gpu_of_sglang
from webhook.facts.model_servers.started_servers import (
    SGLANG,
    VLLM,
    StartedServer,
    release_of_vllm,
    starts_ray,
)
from webhook.facts.model_servers.vllm import flags_removed_from_vllm
from webhook.rules.problem import Problem
from webhook.text.wording import counted, some_of
from webhook.typed.pods import Container

REFUSED_ARGUMENTS: Final = MODEL_SERVER.rule(
    "model-server/refused-arguments",
    title="A model server refuses its arguments",
    why="The server exits before it loads a model, and the container restarts for ever.",
    refused_by="the server, when it starts",
    source="vllm-project/vllm vllm/config/parallel.py@00193b82; PyPI sglang 0.5.23 sglang/srt/arg_groups",
    function="__post_init__",
)
GPU_NUMBER: Final = MODEL_SERVER.rule(
    "model-server/gpu-number",
    title="--base-gpu-id or --gpu-id-step makes SGLang use a GPU that the container lacks",
    why="SGLang numbers the GPUs of its processes from --base-gpu-id, and exits if the container has no such GPU.",
    refused_by="the server, when it starts",
    source="PyPI sglang 0.5.23 sglang/srt/managers",
    function="Engine._launch_subprocesses",
)
RAY_NOT_IN_IMAGE: Final = MODEL_SERVER.rule(
    "model-server/ray-not-in-image",
    title="The image of vLLM has no Ray",
    why=(
        "Since v0.19.0, images of vLLM do not contain Ray. `ray start` is not found, and vLLM refuses the executor ray."
    ),
    refused_by="the container, when it starts",
    source="https://github.com/vllm-project/vllm/issues/38113",
    issues=("https://github.com/kubernetes-sigs/lws/issues/835", "https://github.com/vllm-project/vllm/issues/39400"),
)
RAY_NOT_NAMED: Final = MODEL_SERVER.rule(
    "model-server/ray-not-named",
    title="vLLM may not use Ray because no argument names Ray",
    why=(
        "Before 0.11.1 vLLM chose Ray if its workers needed more GPUs than the pod has. Since 0.11.1 it starts all "
        "workers in the pod unless --distributed-executor-backend ray is set."
    ),
    source="https://github.com/vllm-project/vllm/issues/29447",
    level="advice",
    fails="start",
)
RAY_NOT_USED: Final = MODEL_SERVER.rule(
    "model-server/ray-not-used",
    title="vLLM needs more GPUs than its pod has, but no argument names Ray",
    why=(
        "Since 0.11.1 vLLM counts the GPUs of its own pod unless --distributed-executor-backend ray is set. With too "
        "few GPUs in the pod, vLLM exits at start."
    ),
    source="vllm-project/vllm vllm/config/parallel.py@00193b82",
    function="__post_init__",
    fails="start",
    issues=("https://github.com/vllm-project/vllm/issues/29447",),
)
_WITHOUT_RAY: Final = (0, 19, 0)
_RAY_IS_NAMED: Final = (0, 11, 1)
_INSTALLS: Final = re.compile(r"\binstall\b")
_MOST_NAMED: Final = 4
_NO_RAY: Final = "use an image with Ray, or --nnodes, --node-rank, --master-addr and, above node 0, --headless"


def check_refused_arguments(member: ServerContainer) -> Iterator[Problem]:
    """Report arguments that the server refuses, and numbers of GPUs that the container does not have."""
    if member.server.name == VLLM:
        flags, message, fix = flags_removed_from_vllm(member.server, release_of_vllm(member.container))
        if flags:
            yield problem_of_refused_arguments(member.path, message, fix, flags)
    if words := member.server.arguments.undashed:
        verb = "has" if len(words) == 1 else "have"
        message = f"{member.server.name} refuses {some_of([f'`{each}`' for each in words], _MOST_NAMED)}, which {verb}"
        fix = f"write --{words[0]}" if len(words) == 1 else "write -- before the name of each flag"
        yield problem_of_refused_arguments(member.path, f"{message} the name of a flag without --", fix, words)
        return
    for message, fix in refusals_of_server(member):
        yield problem_of_refused_arguments(member.path, message, fix, member.size_flags)
    here, gpus = member.processes.here, member.gpus.count
    if member.server.name == SGLANG and here and gpus and here <= gpus:
        last = last_gpu_of_sglang(member.server, here)
        if last is not None and last >= gpus:
            flag = "--base-gpu-id" if member.server.arguments.has("first-gpu") else "--gpu-id-step"
            message = f"{flag} makes SGLang use GPU {last}, but the container has {counted(gpus, 'GPU')}"
            words = member.server.arguments.written("first-gpu", "gpu-step")
            yield GPU_NUMBER.problem(member.path, f"{message}, numbered from 0", f"remove {flag}", words=words)


def problem_of_refused_arguments(path: FieldPath, message: str, fix: str, words: Sequence[str]) -> Problem:
    """Return the problem of arguments that the server refuses; `words`: the refused words of the command."""
    return REFUSED_ARGUMENTS.problem(path, message, fix, words=tuple(words))


def check_ray_in_image(
    container: Container, server: StartedServer | None, path: FieldPath, *, is_ray_node: bool = False
) -> Iterator[Problem]:
    """Report an image of vLLM without Ray, if the command of the container or KubeRay needs Ray."""
    release = release_of_vllm(container)
    if release is None or release < _WITHOUT_RAY or container.runs(_INSTALLS):
        return
    tag = parse_image_name(container.image).tag
    if starts_ray(container):
        message = f"runs `ray start`, but the image {tag} of vLLM has no Ray, so the command is not found"
        yield RAY_NOT_IN_IMAGE.problem(path, message, _NO_RAY)
    elif is_ray_node:
        message = f"is a node of Ray, but the image {tag} of vLLM has no Ray, so KubeRay's `ray start` is not found"
        yield RAY_NOT_IN_IMAGE.problem(path, message, "use an image with Ray, such as rayproject/ray-llm")
    elif server is not None and "ray" in (server.arguments.text("backend"), server.arguments.text("data-backend")):
        message = f"sets the executor ray, but the image {tag} of vLLM has no Ray, so vLLM exits at start"
        yield RAY_NOT_IN_IMAGE.problem(path, message, _NO_RAY)


def check_ray_is_named(member: ServerContainer) -> Iterator[Problem]:
    """Report that no argument names Ray if the pods form a Ray cluster and vLLM starts more workers than GPUs.

    If the release of vLLM is not known, this is advice.

    Source: vllm-project/vllm vllm/config/parallel.py@00193b82 ParallelConfig.__post_init__.
    """
    arguments, gpus = member.server.arguments, member.gpus.count
    if member.server.name != VLLM or not member.joins_ray or arguments.is_open or gpus is None:
        return
    release = release_of_vllm(member.container)
    if release is not None and not _RAY_IS_NAMED <= release < _WITHOUT_RAY:
        return
    tensor, pipeline = arguments.number("tensor"), arguments.number("pipeline")
    if arguments.has("backend", "nodes", "data") or tensor is None or pipeline is None or tensor * pipeline <= gpus:
        return
    needs, named = f"vLLM needs {tensor * pipeline} GPUs and the pod has {gpus}", "--distributed-executor-backend"
    fix, words = f"add {named} ray", member.size_flags
    is_open = member.container.security_context.privileged or member.container.runs(_INSTALLS)
    if release is None or is_open:  # a privileged container may see more GPUs
        message = f"{needs}, and since 0.11.1 vLLM uses Ray only if {named} names Ray"
        yield RAY_NOT_NAMED.problem(member.path, message, fix, words=words)
    else:
        message = f"{needs}, but release {'.'.join(map(str, release))} uses Ray only if {named} names Ray"
        yield RAY_NOT_USED.problem(member.path, f"{message}, so vLLM exits at start", fix, words=words)
