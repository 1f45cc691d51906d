"""Model servers in kinds with a controller that builds the container from several parts.

This module reads only what the objects contain. The module does not know what the controllers add. Dynamo and NIM build
a container from fields of their own kinds. KServe appends the arguments of `model` to the arguments of the runtime, in
one container with the resources of both.

Source: ai-dynamo/dynamo deploy/operator/api/v1alpha1/common.go@015d780b; kserve/kserve@aaac4e294
pkg/controller/v1beta1/inferenceservice/components/predictor.go; NVIDIA/k8s-nim-operator@f63f74d7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath, get
from webhook.apimachinery.quantity import read_count
from webhook.facts.model_servers.clients import PROBES, check_probes_of_frontend
from webhook.facts.model_servers.gpus import COMPARABLE
from webhook.facts.model_servers.processes import GPUS_UNUSED, NO_GPU, problem_of_parallel_size
from webhook.facts.model_servers.server_candidates import MODEL_SERVER, may_start_server
from webhook.facts.model_servers.server_checks import check_server
from webhook.facts.model_servers.server_groups import problem_of_small_group
from webhook.facts.model_servers.servers_of_object import server_container
from webhook.facts.model_servers.started_servers import DYNAMO_FRONTEND, started_server
from webhook.facts.model_servers.words import check_words_of_command
from webhook.facts.pods.pod_sets import runtime_of_model
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.pods import Container, PodSpec
from webhook.typed.serving import (
    InferenceService,
    LlmInferenceService,
    ServingRuntime,
)
from webhook.workloads.podsets import PodSet

NIM_REQUESTS: Final = MODEL_SERVER.rule(
    "model-server/nim-requests",
    title="A NIMService sets only limits or only requests, but the operator adds GPUs to both",
    why="The operator writes the GPUs into both requests and limits, and fails if resources has only one of the two.",
    refused_by="the NIM operator, when it creates the pods",
    source="NVIDIA/k8s-nim-operator@f63f74d7 internal/controller/platform/standalone/nimservice.go addGPUResources",
    level="advice",
    fails="controller",
)
DYNAMO_TAG: Final = MODEL_SERVER.rule(
    "model-server/dynamo-tag",
    title="The tag of a Dynamo image names no version",
    why="Dynamo's webhook reads the version of Dynamo's runtime from the tag, and refuses a tag without a version.",
    refused_by="Dynamo's webhook",
    source="ai-dynamo/dynamo deploy/operator/api/v1beta1/dynamocomponentdeployment_types.go@006b6e10",
    level="advice",
)
_FORMATS: Final = ("huggingface", "vLLM")
"""Formats of models that a runtime with vLLM usually serves."""
_KSERVE: Final = "kserve-container"
_MAIN: Final = "main"
_ADDED_ARGUMENTS: Final = "VLLM_ADDITIONAL_ARGS"
"""The variable with arguments that KServe's presets pass to vLLM."""
_LONGEST: Final = 4096
_NIM_IMAGE: Final = "nvcr.io/nim/model"
"""The image that is assumed for every NIMService, because a NIMService always runs an image of NIM."""
_NVIDIA_GPU: Final = "nvidia.com/gpu"
"""The resource that the NIM operator writes."""
_SHIPPED_RUNTIME: Final = "kserve-huggingfaceserver"
_VERSION: Final = "0123456789"


def check_parts_of_inference_service(subject: Subject) -> Iterator[Problem]:
    """Check the server that results from an InferenceService and its runtime.

    The model names the runtime, or exactly one known runtime selects the format of the model. If that runtime is not
    known, `vllm serve` is assumed for KServe's shipped runtime for Hugging Face, and for formats that vLLM usually
    serves.
    """
    predictor = subject.typed(InferenceService).spec.predictor
    model = predictor.model
    if not model or predictor.worker_spec:
        return
    runtime, is_named = runtime_of_model(model, subject.cluster_view())
    if runtime is not None:
        main = next((each for each in runtime.spec.containers if each.name == _KSERVE), None)
        if main is not None:
            yield from _problems_of_part(
                _merged_container(main.json, model.json), model.at, subject, is_advice=not is_named
            )
        return
    named = model.runtime.lower()
    is_shipped = named.startswith(_SHIPPED_RUNTIME)
    is_assumed = get(model.json, ("modelFormat", "name"), "") in _FORMATS and (not named or "vllm" in named)
    if model.has("command") or not (is_shipped or is_assumed):
        return
    server = {"name": _KSERVE, "command": ["vllm", "serve"], "image": ""}
    yield from _problems_of_part(_merged_container(server, model.json), model.at, subject, is_advice=not is_shipped)


def _merged_container(main: Mapping[str, Any], model: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a runtime's container merged with the fields of an InferenceService. KServe appends arguments and
    variables, merges resources by name, and replaces the command, the image and envFrom.
    """
    merged = {**main, **{key: model[key] for key in ("command", "image", "envFrom") if model.get(key)}}
    merged["args"] = [*_list(main.get("args")), *_list(model.get("args"))]
    merged["env"] = [*_list(main.get("env")), *_list(model.get("env"))]
    own, amounts = _map(model.get("resources")), _map(main.get("resources"))
    merged["resources"] = {
        **amounts,
        **own,
        **{side: {**_map(amounts.get(side)), **_map(own.get(side))} for side in ("limits", "requests")},
    }
    return merged


def check_serving_runtime(subject: Subject) -> Iterator[Problem]:
    """Report servers of a runtime as advice, because an InferenceService may still change their arguments and GPUs."""
    spec = ServingRuntime.of(subject.object, (), subject.reading_context).spec
    for container in (*spec.containers, *spec.worker_spec.containers):
        for problem in _problems_of_part(container.json, container.at, subject, is_advice=True):
            if problem.code not in (GPUS_UNUSED.id, NO_GPU.id):
                yield problem


def check_parts_of_llm_service(subject: Subject) -> Iterator[Problem]:
    """Check containers of an LLMInferenceService that add arguments, or that have their own command."""
    spec = subject.typed(LlmInferenceService).spec
    for workload in (spec, spec.prefill):
        for pod in (workload.template, workload.worker):
            main = next((each for each in pod.containers if each.name == _MAIN), None)
            if main is None:
                continue
            added = main.environment.by_name().get(_ADDED_ARGUMENTS) or ""
            if main.command:
                yield from _problems_of_part(main.json, main.at, subject)
            elif main.args or "-parallel" in added or "-tp" in added:
                sizes = workload.parallelism
                words = [*main.args, *([f"--tensor-parallel-size={sizes.tensor}"] if sizes.tensor else ())]
                server = {**main.json, "command": ["vllm", "serve"], "args": [*words, *added[:_LONGEST].split()]}
                yield from _problems_of_part(server, main.at, subject, is_advice=True)


def _problems_of_part(
    obj: Mapping[str, Any],
    at: FieldPath,
    subject: Subject,
    nodes: int = 1,
    *,
    is_advice: bool = False,
    probes_at: FieldPath | None = None,
) -> Iterator[Problem]:
    """Yield the problems of a container in a part of a pod.

    Args:
        obj: the container.
        at: the path of the part.
        subject: the object.
        nodes: the number of pods that start the server together.
        is_advice: whether other parts may change the container, and add arguments.
        probes_at: the path with the probes of a Dynamo frontend; None if its probes are not checked.
    """
    container = Container.of(obj, (), subject.reading_context)
    if not may_start_server(container):
        return
    server = started_server(container)
    yield from check_words_of_command(container, server, at, subject.object)
    if server is None:
        return
    podset = PodSet(name="", path=at, template={}, elsewhere=True)
    member = server_container(server, container, PodSpec.of({}), podset, subject)
    if server.name == DYNAMO_FRONTEND and probes_at is not None:
        yield from check_probes_of_frontend(member, probes_at)
    if is_advice:
        outcome = member.processes.outcome.replace("exits", "may exit", 1)
        open_server = replace(server, arguments=replace(server.arguments, is_open=True))
        processes = replace(member.processes, is_advice=True, outcome=outcome)
        member = replace(member, server=open_server, processes=processes)
    if nodes == 1:
        yield from check_server(member)
        return
    total, gpus = member.processes.total, member.gpus.count
    if total is not None and gpus is not None and total > gpus * nodes:
        message = f"{server.name} waits for {total} GPUs ({member.processes.sizes}), but the group has {gpus * nodes} "
        message += f"({counted(nodes, 'pod')} with {counted(gpus, 'GPU')})"
        yield problem_of_small_group(
            at, message, f"set parallel sizes whose product is {gpus * nodes}, or raise nodeCount", member.size_flags
        )


def check_dynamo_graph(subject: Subject) -> Iterator[Problem]:
    """Check the servers of a DynamoGraphDeployment, in both versions of the API, or of a DynamoComponentDeployment."""
    if subject.group_kind[1] == "DynamoComponentDeployment":
        component = _map(subject.object.get("spec"))
        container = get(component, ("extraPodSpec", "mainContainer"))
        if isinstance(container, dict):
            merged, own = _with_gpus_of_service(container, component), ("spec", "extraPodSpec", "mainContainer")
            yield from _problems_of_part(merged, own, subject, _nodes(component))
        return
    services = get(subject.object, ("spec", "services"))
    for name, service in subject.deadline.charge_for_items(list(_map(services).items())):
        main = get(service, ("extraPodSpec", "mainContainer"))
        if isinstance(main, dict) and isinstance(name, str):
            of_service = ("spec", "services", name)
            at = (*of_service, "extraPodSpec", "mainContainer")
            probes = {each: service[each] for each in PROBES if each in service}
            merged = {**_with_gpus_of_service(main, service), **probes}
            probes_at = of_service if probes else at
            yield from _problems_of_part(merged, at, subject, _nodes(service), probes_at=probes_at)
    components = get(subject.object, ("spec", "components"))
    for index, component in enumerate(subject.deadline.charge_for_items(_list(components))):
        containers = get(component, ("podTemplate", "spec", "containers"))
        for number, main in enumerate(_list(containers)):
            if isinstance(main, dict) and main.get("name") == "main":
                place = ("spec", "components", index, "podTemplate", "spec", "containers", number)
                nodes, is_alone = _nodes(component), len(_list(containers)) == 1
                yield from _problems_of_part(main, place, subject, nodes, probes_at=place if is_alone else None)
                yield from _check_tag(main, place, component, subject)


def _map(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _nodes(service: Any) -> int:
    nodes = get(service, ("multinode", "nodeCount"), 1)
    return nodes if isinstance(nodes, int) and 1 <= nodes < 1000 else 1


def _with_gpus_of_service(main: Mapping[str, Any], service: Any) -> Mapping[str, Any]:
    """Return a container with the GPUs of the service's own field `resources` (Dynamo v1alpha1)."""
    limits = {**_map(get(service, ("resources", "requests"))), **_map(get(service, ("resources", "limits")))}
    gpus, kind = limits.get("gpu"), limits.get("gpuType") or "nvidia.com/gpu"
    own = _map(main.get("resources"))
    if gpus is None or kind not in COMPARABLE:
        return main
    return {**main, "resources": {**own, "limits": {**_map(own.get("limits")), kind: gpus}}}


def _check_tag(main: Mapping[str, Any], at: FieldPath, component: Any, subject: Subject) -> Iterator[Problem]:
    image = main.get("image")
    if not isinstance(image, str) or "runtimeVersionOverride" in str(list(_map(component))):
        return
    if get(subject.object, ("spec", "runtimeVersionOverride")) is not None:
        return
    tag = parse_image_name(image).tag
    if tag.lstrip("v")[:1] not in _VERSION or not tag:
        message = f"image tag `{tag or 'latest'}` names no version, which Dynamo refuses without runtimeVersionOverride"
        fix = "use a tag with a version, or set runtimeVersionOverride of the component"
        yield DYNAMO_TAG.problem((*at, "image"), message, fix)


def check_nim_service(subject: Subject) -> Iterator[Problem]:
    """Check the GPUs of a NIMService against its variables or, with several nodes, the tensor size of each pod."""
    spec = _map(subject.object.get("spec"))
    resources, parallelism = _map(spec.get("resources")), _map(get(spec, ("multiNode", "parallelism")))
    tensor = parallelism.get("tensor")
    if not parallelism:
        own = ("command", "args", "env", "resources")
        obj = {"image": _NIM_IMAGE, **{key: spec[key] for key in own if key in spec}}
        yield from _problems_of_part(obj, ("spec",), subject)
    if isinstance(tensor, int):
        limits = {**_map(resources.get("requests")), **_map(resources.get("limits"))}
        gpus = next((str(limits[name]) for name in COMPARABLE if name in limits), "")
        if 0 < (count := read_count(gpus) or 0) < tensor:
            has = f"but the pod has {counted(count, 'GPU')}"
            message = f"NIM starts {tensor} workers in each pod (tensor {tensor}), {has}"
            fix = f"set parallelism.tensor {gpus}, or remove the GPUs from resources; the operator sets them"
            yield problem_of_parallel_size(("spec", "multiNode", "parallelism", "tensor"), message, fix)
    profile = get(spec, ("storage", "nimCache", "profile"))
    if (isinstance(tensor, int) or profile) and not spec.get("draResources"):
        yield from _check_sides_of_nim(resources)


def _check_sides_of_nim(resources: JSON) -> Iterator[Problem]:
    """Report resources with only requests or only limits, if the operator writes the GPUs into requests and limits. The
    operator writes nothing if the user sets the number of GPUs, or if claims give the GPUs.
    """
    written = [side for side in ("requests", "limits") if resources.get(side) is not None]
    if len(written) == 1 and _NVIDIA_GPU not in _map(resources[written[0]]):
        [side] = written
        other = "limits" if side == "requests" else "requests"
        message = f"has {side} without {other}, but the operator writes the GPUs of each pod into both"
        yield NIM_REQUESTS.problem(("spec", "resources"), message, f"set {other} of the same amounts")


CHECK_OF_KIND: Final[Mapping[tuple[str, str], Callable[[Subject], Iterator[Problem]]]] = {
    ("serving.kserve.io", "InferenceService"): check_parts_of_inference_service,
    ("serving.kserve.io", "ServingRuntime"): check_serving_runtime,
    ("serving.kserve.io", "ClusterServingRuntime"): check_serving_runtime,
    ("serving.kserve.io", "LLMInferenceService"): check_parts_of_llm_service,
    ("nvidia.com", "DynamoGraphDeployment"): check_dynamo_graph,
    ("nvidia.com", "DynamoComponentDeployment"): check_dynamo_graph,
    ("apps.nvidia.com", "NIMService"): check_nim_service,
}
