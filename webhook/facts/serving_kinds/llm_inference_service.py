"""Checks LLMInferenceServices: settings of parallelism, adapters, router and autoscaler that KServe refuses, and
parallel sizes that do not match the pods and GPUs.

The number of pods of a group is data divided by dataLocal, rounded down, and at least 1. With a worker, the shipped
presets pass tensor, data and dataLocal to vLLM. Without a worker, the presets pass only tensor, from KServe 0.20 on. No
preset passes pipeline.

The configurations that an LLMInferenceService names in baseRefs are merged as in KServe. Each configuration overrides
all earlier configurations, and the object itself overrides all configurations. Containers are merged by name. A
configuration is in the namespace of the object, or in the namespace of KServe. KServe's own presets are overridden by
all configurations, and are not merged here.

Source: kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go and
llm_inference_service_types_func.go GetSize; config/llmisvcconfig; kserve/kserve@00bd5d06
pkg/controller/v1alpha2/llmisvc/config_merge.go combineBaseRefsConfig, mergeSpecs; config/crd/full/llmisvc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import get, parse_path
from webhook.apimachinery.quantity import read_count
from webhook.apimachinery.releases import Release
from webhook.cluster.controllers import KSERVE_LLM
from webhook.cluster.interest import interest_in_fields
from webhook.deadline import Deadline
from webhook.facts.assumptions import installed_release
from webhook.facts.serving_kinds.groups import SERVING_KIND, Refusal
from webhook.facts.subject import Subject
from webhook.patch.strategic import UnmergeableError, merge_patch
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.pods import Container
from webhook.typed.serving import KedaScaling, LlmInferenceService, LlmModel, LlmRouter, LlmSpec, LlmWorkload, Scaling
from webhook.yamltext.placeholders import is_placeholder

LLM_PARALLELISM: Final = SERVING_KIND.rule(
    "serving-kind/llm-parallelism",
    title="The sizes in parallelism are incomplete or exclude each other",
    why="The webhook of KServe refuses sizes that do not determine how many pods form a group.",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go",
    function="validateParallelism",
)
LLM_REPLICAS: Final = SERVING_KIND.rule(
    "serving-kind/llm-replicas",
    title="An LLMInferenceService sets both replicas and scaling",
    why="The webhook of KServe accepts a fixed number of replicas or scaling, but not both.",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go",
)
LLM_GPUS: Final = SERVING_KIND.rule(
    "serving-kind/llm-gpus",
    title="parallelism.tensor is above the GPUs of the pod",
    why="The presets of KServe pass parallelism.tensor to vLLM, and vLLM starts a worker for each rank in one pod.",
    refused_by="vLLM, when it starts",
    source="kserve/kserve@aaac4e294 config/llmisvcconfig/config-llm-template.yaml",
    fails="start",
)
LLM_RANKS: Final = SERVING_KIND.rule(
    "serving-kind/llm-ranks",
    title="parallelism.data is not a multiple of dataLocal",
    why="KServe rounds down the number of pods, so some ranks never start, and vLLM waits for these ranks.",
    refused_by="nothing; vLLM waits",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_types_func.go",
    function="GetSize",
    fails="waiting",
)
LLM_PIPELINE: Final = SERVING_KIND.rule(
    "serving-kind/llm-pipeline",
    title="No shipped preset of KServe reads parallelism.pipeline",
    why="The presets pass tensor, data and dataLocal to vLLM. Only a preset of your own can pass pipeline.",
    refused_by="",
    source="kserve/kserve@aaac4e294 config/llmisvcconfig",
    level="advice",
    fails="silent",
    issues=("https://github.com/kserve/kserve/issues/6044",),
)
LLM_GPUS_UNUSED: Final = SERVING_KIND.rule(
    "serving-kind/llm-gpus-unused",
    title="parallelism.tensor is below the GPUs of the pod",
    why="The presets of KServe pass parallelism.tensor, which is 1 by default, to vLLM. The other GPUs stay idle.",
    refused_by="",
    source="kserve/kserve@aaac4e294 config/llmisvcconfig/config-llm-template.yaml",
    level="advice",
    severity="low",
    fails="silent",
)
LLM_SCALING: Final = SERVING_KIND.rule(
    "serving-kind/llm-scaling",
    title="The scaling of an LLMInferenceService is refused",
    why="minReplicas must not be above maxReplicas, and KServe accepts exactly one of wva and keda.",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go",
    function="ValidateWorkloadScaling",
)
LLM_MODEL: Final = SERVING_KIND.rule(
    "serving-kind/llm-model",
    title="model.uri of an LLMInferenceService has a form that KServe does not read",
    why="The controller reads hf, s3, pvc and oci. It reports another form in the status and creates no pods.",
    refused_by="KServe's controller, in the status",
    source="kserve/kserve@aaac4e294 pkg/controller/v1alpha2/llmisvc/workload_storage.go",
    function="attachModelArtifacts",
    fails="controller",
)
_MAIN: Final = "main"
_SCHEMES: Final = frozenset(("hf", "s3", "pvc", "oci", "oci+native"))
_ADDED_ARGUMENTS: Final = "VLLM_ADDITIONAL_ARGS"
"""A variable with more arguments for vLLM, which may contain sizes."""
_LONGEST: Final = 200
_GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu")
_CONFIG: Final = GroupVersionKind("serving.kserve.io", "v1alpha2", "LLMInferenceServiceConfig")
_NAMESPACE: Final = "kserve"
_PODS: Final = ("template", "worker")
_PASSES_TENSOR: Final[Release] = (0, 20)
"""The first release of KServe with presets that pass tensor to vLLM in a pod without workers."""
LOOKUPS: Final = (
    interest_in_fields(_CONFIG, "spec.parallelism", "spec.template", "spec.worker", "spec.prefill"),
    KSERVE_LLM.deployment_interest,
)


def check_llm_inference_service(subject: Subject) -> Iterator[Problem]:
    """Report what KServe refuses in an LLMInferenceService, and sizes that do not match the pods and GPUs."""
    spec = subject.typed(LlmInferenceService).spec
    yield from _check_model(spec)
    yield from _check_workload(spec)
    if spec.prefill:
        yield from _check_workload(spec.prefill)
    whole = spec_with_base_refs(subject)
    if whole is not None:
        release = installed_release(subject.cluster_view(), KSERVE_LLM)
        for workload in (whole, whole.prefill) if whole.prefill else (whole,):
            for problem in _check_sizes(workload, release):
                yield _located_in_object(problem, subject)


def _located_in_object(problem: Problem, subject: Subject) -> Problem:
    """Return a problem at the path of its field, or at baseRefs if only a configuration has the field."""
    if get(subject.object, parse_path(problem.path)) is not None:
        return problem
    return structs.replace(problem, path="spec.baseRefs", message=f"with these configurations, {problem.message}")


def _check_model(spec: LlmSpec) -> Iterator[Problem]:
    """Report a URI of the model that the controller cannot read."""
    scheme, separator, _ = spec.model.uri[:_LONGEST].partition("://")
    if not scheme or is_placeholder(scheme):
        return
    if not separator:
        message = f"`{scheme}` has no scheme, so KServe creates no pods"
        yield LLM_MODEL.problem(spec.model.path("uri"), message, "write a scheme such as hf://")
    elif scheme not in _SCHEMES and spec.storage_initializer.enabled is not False:
        message = f"has the scheme {scheme}, which KServe does not read in an LLMInferenceService, so no pod is created"
        fix = "write hf://" if scheme.startswith("hugging") else "use hf://, s3://, pvc:// or oci://"
        yield LLM_MODEL.problem(spec.model.path("uri"), message, fix)


def check_scaling(workload: LlmWorkload) -> Iterator[Problem]:
    """Report replicas together with scaling, and scaling that KServe refuses."""
    scaling = workload.scaling
    if not scaling:
        return
    if workload.replicas is not None:
        message = "sets replicas and scaling, which KServe refuses together"
        fix = "remove replicas, or remove scaling to keep a fixed number of replicas"
        yield LLM_REPLICAS.problem(workload.path("replicas"), message, fix)
    least, most = scaling.min_replicas, scaling.max_replicas
    if least is not None and most is not None and least > most:
        message = f"is above maxReplicas {most}, so KServe refuses the object"
        yield LLM_SCALING.problem(
            scaling.path("minReplicas"), message, f"set at most {most}, or raise maxReplicas", least
        )
    if scaling.has("keda") == scaling.has("wva"):
        has, fix = ("keda and wva", "leave") if scaling.has("keda") else ("neither keda nor wva", "set")
        yield LLM_SCALING.problem(scaling.at, f"has {has}, and KServe accepts exactly one", f"{fix} one of them")


def _check_workload(workload: LlmWorkload) -> Iterator[Problem]:
    sizes = workload.parallelism
    at = sizes.at if sizes else workload.at
    if workload.worker and sizes.data is None and sizes.pipeline is None:
        message = "has a worker, but neither parallelism.data nor parallelism.pipeline, so KServe refuses the object"
        yield LLM_PARALLELISM.problem(workload.worker.at, message, "set parallelism.data and parallelism.dataLocal")
    if (sizes.data is None) != (sizes.data_local is None):
        has, lacks = ("data", "dataLocal") if sizes.data is not None else ("dataLocal", "data")
        fix = f"set {lacks} to the number of data-parallel ranks in {'one pod' if lacks == 'dataLocal' else 'all pods'}"
        yield LLM_PARALLELISM.problem(at, f"sets {has} without {lacks}, which KServe refuses", fix)
    if sizes.data is not None and sizes.pipeline is not None:
        message = "sets data and pipeline, which KServe refuses together"
        fix = "remove pipeline, or remove data and dataLocal if a preset of your own reads pipeline"
        yield LLM_PARALLELISM.problem(at, message, fix)
    yield from check_scaling(workload)


def _check_sizes(workload: LlmWorkload, release: Release | None) -> Iterator[Problem]:
    """Report sizes that do not match the pods and GPUs. `release` is the release of KServe; None if it is not known."""
    sizes = workload.parallelism
    data, local = sizes.data, sizes.data_local
    if workload.worker and data and local and data > local and data % local:
        pods = max(data // local, 1)
        message = f"is not a multiple of dataLocal {local}, so KServe creates {counted(pods, 'pod')} with "
        message += f"{pods * local} of {data} ranks, and vLLM waits for the missing ranks"
        yield LLM_RANKS.problem(sizes.path("data"), message, f"set data to a multiple of {local}", data)
    if (sizes.pipeline or 1) > 1:
        message = "is a size that no preset of KServe reads"
        fix = "remove pipeline, and set tensor to the number of GPUs of a pod"
        if workload.worker:
            fix = "replace pipeline by data and dataLocal, or remove pipeline and worker, and set tensor"
        yield LLM_PIPELINE.problem(sizes.path("pipeline"), message, fix, sizes.pipeline)
    for pod, of_pod in ((workload.template, ""), (workload.worker, " of worker")):
        main = next((each for each in pod.containers if each.name == _MAIN), None)
        is_data_read = bool(workload.worker)
        is_tensor_read = is_data_read or release is None or release >= _PASSES_TENSOR
        if main is None or main.command or main.args or not is_tensor_read:
            continue
        gpus, tensor = _gpus_of_container(main), sizes.tensor or 1
        needed = tensor * (local or 1) if is_data_read else tensor
        if gpus and needed > gpus:
            words = f"tensor {tensor}" + (f" times dataLocal {local}" if is_data_read and (local or 1) > 1 else "")
            has = f"container main{of_pod} has {counted(gpus, 'GPU')}, so vLLM exits at start"
            is_conditional = not is_data_read and release is None
            since = "from KServe 0.20 on, " if is_conditional else ""
            message = f"{since}vLLM starts {needed} workers in a pod ({words}), but {has}"
            fix = f"request {counted(needed, 'GPU')}"
            if needed == tensor:
                fix += f", or set parallelism.tensor {gpus}"
            yield LLM_GPUS.problem(sizes.path("tensor"), message, fix, is_conditional=is_conditional)
            return
        is_data_ignored = bool(data and local and not is_data_read)
        is_size_set = bool(sizes.tensor) or is_data_ignored
        if gpus and is_size_set and needed < gpus and _ADDED_ARGUMENTS not in main.environment.names:
            message = f"vLLM uses {needed} of {gpus} GPUs of container main{of_pod}, so the other GPUs stay idle"
            fix = f"set parallelism.tensor {gpus}, or request {needed}"
            if is_data_ignored:
                message = f"without worker no preset reads data {data} and dataLocal {local}, so {message}"
                fix = f"add a worker, or {fix}"
            yield LLM_GPUS_UNUSED.problem(main.at, message, fix)
            return


def _gpus_of_container(container: Container) -> int | None:
    """Return the GPUs of a container; None if it has no GPU, or resources for several kinds of GPUs."""
    limits = container.resources.limits
    amounts = [read_count(value) for name, value in limits.items() if name in _GPUS]
    return amounts[0] if len(amounts) == 1 else None


def spec_with_base_refs(subject: Subject) -> LlmSpec | None:
    """Return the spec of an LLMInferenceService, merged with its configurations; None if a configuration is not known,
    cannot be merged, or has a Go template in place of a size.
    """
    spec = subject.typed(LlmInferenceService).spec
    if not spec.base_refs:
        return spec
    view, merged = subject.cluster_view(), dict[str, Any]()
    try:
        for reference in spec.base_refs:
            config = view.get_without_noting(_CONFIG, view.namespace, reference.name) or view.get_without_noting(
                _CONFIG, _NAMESPACE, reference.name
            )
            if config is None:
                return None
            merged = _merged_workload(merged, _map(config.get("spec")), subject.deadline)
        merged = _merged_workload(merged, spec.json, subject.deadline)
    except UnmergeableError:
        return None
    return LlmSpec.of(merged, spec.at, subject.reading_context) if _has_whole_numbers(merged) else None


def _merged_workload(base: Mapping[str, Any], over: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
    """Return a workload with merged parallelism and pods; for other fields, `over` replaces `base`."""
    merged = {**base, **over}
    if "parallelism" in merged:
        merged["parallelism"] = {**_map(base.get("parallelism")), **_map(over.get("parallelism"))}
    for name in _PODS:
        if name in base and name in over:
            merged[name] = merge_patch(base[name], over[name], "PodSpec", deadline)
    if "prefill" in merged:
        merged["prefill"] = _merged_workload(_map(base.get("prefill")), _map(over.get("prefill")), deadline)
    return merged


def _has_whole_numbers(workload: Mapping[str, Any]) -> bool:
    """Return whether all sizes are numbers; a configuration may have a Go template instead of a number."""
    sizes = (
        *_map(workload.get("parallelism")).values(),
        *_map(_map(workload.get("prefill")).get("parallelism")).values(),
    )
    return all(size is None or isinstance(size, int) for size in sizes)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


LLM_SERVICE: Final = SERVING_KIND.rule(
    "serving-kind/llm-service",
    title="An LLMInferenceService has an adapter, a router or an autoscaler that KServe refuses",
    why="The webhook refuses repeated names, and settings that exclude or require each other.",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go",
    function="validate",
)
_CONFIGURATION: Final = "LLMInferenceServiceConfig"
_ABOVE: Final = (".", "..")


def check_llm_service(subject: Subject) -> Iterator[Problem]:
    """Report what KServe refuses in an LLMInferenceService, or in a configuration that LLMInferenceServices name."""
    is_configuration = subject.attributes.kind.kind == _CONFIGURATION
    for each in _refusals_of_configuration(subject) if is_configuration else _refusals_of_service(subject):
        yield LLM_SERVICE.problem(*each)


def check_scaling_of_configuration(subject: Subject) -> Iterator[Problem]:
    """Report scaling that the API server refuses in a configuration."""
    spec = subject.typed(LlmInferenceService).spec
    for workload in (spec, spec.prefill):
        yield from check_scaling(workload)


def _refusals_of_service(subject: Subject) -> Iterator[Refusal]:
    service = subject.typed(LlmInferenceService)
    spec = service.spec
    yield from _refusals_of_model(spec)
    yield from _refusals_of_adapters(spec.model, spec.model.name or service.name)
    yield from _refusals_of_router(spec.router)
    for workload in (spec, spec.prefill):
        yield from _refusals_of_scaling(workload.scaling)
    yield from _refusals_of_same_autoscaler(spec, spec.prefill)


def _refusals_of_configuration(subject: Subject) -> Iterator[Refusal]:
    spec = subject.typed(LlmInferenceService).spec
    if spec.base_refs:
        message = "is not a field of a configuration, because a configuration cannot name other configurations"
        yield Refusal(spec.path("baseRefs"), message, "name all configurations in the LLMInferenceService")
    yield from _refusals_of_model(spec)
    for workload in (spec, spec.prefill):
        yield from _refusals_of_scaling(workload.scaling)


def _refusals_of_model(spec: LlmSpec) -> Iterator[Refusal]:
    if spec.has("model") and not spec.model.has("uri"):
        message = "is required, because KServe loads the model from this URI"
        yield Refusal(spec.model.path("uri"), message, "set a URI such as hf://org/name")


def _refusals_of_adapters(model: LlmModel, served: str) -> Iterator[Refusal]:
    names = list[str]()
    for each in model.lora.adapters:
        path, name = each.path("name"), each.name
        if not name:
            yield Refusal(path, "is required, because requests name the adapter", "set a name")
        elif name in _ABOVE:
            yield Refusal(path, "must not be a path to another folder", "set another name", name)
        elif name in names:
            yield Refusal(path, "is also the name of another adapter", "set another name", name[:80])
        elif name == served and not is_placeholder(name):
            yield Refusal(path, "is also the name of the model", "set another name", name[:80])
        names.append(name)


def _refusals_of_router(router: LlmRouter) -> Iterator[Refusal]:
    config, route, gateway = router.scheduler.config, router.route, router.gateway
    if router.scheduler.has("config") and config.has("inline") == config.has("ref"):
        message = "must have exactly one of inline and ref"
        yield Refusal(config.at, message, "remove one" if config.has("ref") else "set one of these")
    if route.http.refs and route.http.has("spec"):
        yield Refusal(route.http.at, "must not have both refs and spec", "remove one of these")
    if route.http.refs and router.has("gateway") and not gateway.refs:
        message = "names routes, which KServe refuses together with a gateway that it manages"
        fix = "remove the routes, or set spec.router.gateway.refs"
        yield Refusal(route.http.path("refs"), message, fix)
    if route.has("weight") != route.has("group"):
        given, missing = ("weight", "group") if route.has("weight") else ("group", "weight")
        yield Refusal(route.path(given), f"requires {missing} as well", f"set {missing}")


def _refusals_of_scaling(scaling: Scaling) -> Iterator[Refusal]:
    wva = scaling.wva
    if scaling.has("wva") and wva.has("hpa") == wva.has("keda"):
        message = "must have exactly one of hpa and keda"
        yield Refusal(wva.at, message, "remove one" if wva.has("hpa") else "set hpa: {} or keda: {}")
    for keda in (scaling.keda, wva.keda):
        yield from _refusals_of_idle_replicas(scaling, keda)


def _refusals_of_idle_replicas(scaling: Scaling, keda: KedaScaling) -> Iterator[Refusal]:
    idle, least = keda.idle_replica_count, scaling.min_replicas
    least = 1 if least is None else least
    if idle is not None and idle >= least:
        message = f"must be below minReplicas {least}"
        yield Refusal(keda.path("idleReplicaCount"), message, "set 0", idle)


def _refusals_of_same_autoscaler(decode: LlmWorkload, prefill: LlmWorkload) -> Iterator[Refusal]:
    """Yield the refusal of a prefill workload with another autoscaler than the decode workload."""
    if not (decode.has("scaling") and prefill.has("scaling")):
        return
    for name, one, other in (
        ("keda", decode.scaling, prefill.scaling),
        ("hpa", decode.scaling.wva, prefill.scaling.wva),
    ):
        if one and other and one.has(name) != other.has(name):
            message = "must use the same autoscaler as spec.scaling, because KServe refuses different autoscalers"
            yield Refusal(prefill.scaling.at, message, "use one autoscaler in spec.scaling and spec.prefill.scaling")
            return
