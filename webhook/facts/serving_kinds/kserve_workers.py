"""InferenceServices with workers: what KServe's webhook refuses, and how KServe counts their GPUs.

KServe reads GPUs only from requests, and overwrites limits and requests with computed numbers. The head and the workers
together must have tensor times pipeline GPUs.

Source: kserve/kserve@aaac4e294 pkg/apis/serving/v1beta1/inference_service_validation.go and
pkg/controller/v1beta1/inferenceservice/components/predictor.go computeRayNodeAndGPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final, NamedTuple

from webhook.apimachinery.quantity import read_count
from webhook.facts.pods.pod_sets import runtime_of_model
from webhook.facts.serving_kinds.groups import SERVING_KIND, Refusal
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.pods import Container, Resources
from webhook.typed.serving import (
    InferenceService,
    Model,
    Predictor,
    ServingRuntime,
    ServingRuntimeSpec,
)

WORKER_SPEC: Final = SERVING_KIND.rule(
    "serving-kind/worker-spec",
    title="An InferenceService or runtime with workers has a setting that KServe refuses",
    why=(
        "With a workerSpec, KServe refuses autoscalers, parallel sizes in variables, unknown resources, and models "
        "that are not in a claim or an image."
    ),
    function="validateMultiNodeVariables",
    issues=("https://github.com/kserve/kserve/issues/4226", "https://github.com/kserve/kserve/issues/4228"),
)
WORKER_GPUS: Final = SERVING_KIND.rule(
    "serving-kind/worker-gpus",
    title="The head and the workers of an InferenceService have too few GPUs for its parallel sizes",
    why=(
        "KServe compares tensor times pipeline with the GPUs of head and workers. It reports missing GPUs only in "
        "the status."
    ),
    refused_by="KServe's controller, in the status",
    source="kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/components/predictor.go",
    function="computeRayNodeAndGPUs",
    fails="controller",
)
WORKER_REQUESTS: Final = SERVING_KIND.rule(
    "serving-kind/worker-requests",
    title="GPUs are set only as limits, but KServe counts only requests",
    why="KServe counts the GPUs of requests. Without requests it creates pods with 1 GPU, and ignores the limits.",
    refused_by="",
    source="kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/components/predictor.go",
    function="computeRayNodeAndGPUs",
    fails="silent",
)
AUTOSCALER: Final = "serving.kserve.io/autoscalerClass"
_WITHOUT_SCALING: Final = frozenset(("none", "external"))
"""The values of autoscalerClass that KServe accepts with workers: `external` in old releases, which refuse `none`
(kserve/kserve issue 4784), and `none` since pull request 4363.
"""
_GPU_TYPES: Final = "serving.kserve.io/gpu-resource-types"
_BACKEND: Final = "multinode/executor-backend"
_SIZES: Final = ("TENSOR_PARALLEL_SIZE", "PIPELINE_PARALLEL_SIZE")
_PLAIN: Final = frozenset(("cpu", "memory", "storage", "ephemeral-storage"))
_GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi")
_SERVICE: Final = "InferenceService"
_SERVER: Final = "kserve-container"
_WORKER: Final = "worker-container"
"""The names of the containers that KServe reads in a runtime."""
_MODELS: Final = ("pvc://", "oci://")
_AS_CLAIM: Final = "put the model into a PersistentVolumeClaim, and write pvc://NAME/FOLDER"


def check_worker_spec(subject: Subject) -> Iterator[Problem]:
    """Report what KServe refuses in an InferenceService with workers, or in a runtime with workers."""
    is_service = subject.group_kind[1] == _SERVICE
    for each in _refusals_of_service(subject) if is_service else _refusals_of_runtime(subject):
        yield WORKER_SPEC.problem(*each)


def check_worker_gpus(subject: Subject) -> Iterator[Problem]:
    """Report an InferenceService with workers and too few GPUs for its parallel sizes, or with GPUs only as limits."""
    service = subject.typed(InferenceService)
    if service.spec.predictor.worker_spec:
        yield from _check_gpus(service, service.spec.predictor, subject.cluster_view())


def _refusals_of_runtime(subject: Subject) -> Iterator[Refusal]:
    """Yield what KServe refuses in a runtime with workers; field_values.yaml declares other refused values."""
    spec = subject.typed(ServingRuntime).spec
    if not spec.has("workerSpec"):
        return
    listed = spec.annotations.get(_GPU_TYPES, "")
    for container in spec.containers:
        if container.name == _SERVER:
            yield from _refusals_of_variables(container)
            yield from _refusals_of_resources(container.resources, listed)
    for container in spec.worker_spec.containers:
        if container.name == _WORKER:
            yield from _refusals_of_resources(container.resources, listed)


def _refusals_of_variables(container: Container) -> Iterator[Refusal]:
    for name in _SIZES:
        if name in container.environment.names:
            field = "tensorParallelSize" if name == _SIZES[0] else "pipelineParallelSize"
            message = f"sets {name}, which KServe refuses together with a workerSpec"
            yield Refusal(container.path("env"), message, f"set workerSpec.{field}")


def _refusals_of_resources(resources: Resources, listed: str) -> Iterator[Refusal]:
    for name in _unknown_resources(resources, listed):
        message = f"requests {name}, which KServe refuses with a workerSpec because it does not know this GPU"
        yield Refusal(resources.at, message, f"list {name} in the annotation {_GPU_TYPES}")


def _refusals_of_service(subject: Subject) -> Iterator[Refusal]:
    service = subject.typed(InferenceService)
    predictor = service.spec.predictor
    if not predictor.worker_spec:
        return
    worker, model, annotations = predictor.worker_spec, predictor.model, service.metadata.annotations
    if model and annotations.get(AUTOSCALER) not in _WITHOUT_SCALING:
        message = f"must have the annotation {AUTOSCALER}: none because KServe scales no InferenceService with workers"
        yield Refusal(worker.at, message, f"set {AUTOSCALER}: none, or external if your KServe refuses none")
    for name in ("tensor", "pipeline"):
        size = getattr(worker, f"{name}_parallel_size")
        if size is not None and size < 1:
            message = "must be 1 or more, which KServe requires"
            yield Refusal(worker.path(f"{name}ParallelSize"), message, "set 1 or more", size)
    yield from _refusals_of_variables(model)
    if model and not model.storage_uri:
        message = "is required together with a workerSpec, and must begin with pvc:// or oci://"
        yield Refusal(model.path("storageUri"), message, _AS_CLAIM)
    elif model and not model.storage_uri.startswith(_MODELS):
        message = "must begin with pvc:// or oci:// because several pods read the model"
        yield Refusal(model.path("storageUri"), message, _AS_CLAIM, model.storage_uri[:80])
    if len(worker.containers) > 1:
        message = "must have only one container, because KServe refuses more containers in a workerSpec"
        yield Refusal(worker.path("containers"), message, "remove the other containers")
    listed = annotations.get(_GPU_TYPES, "")
    for resources in (model.resources, *(container.resources for container in worker.containers)):
        yield from _refusals_of_resources(resources, listed)


def _unknown_resources(resources: Resources, listed: str) -> Iterator[str]:
    for name in dict.fromkeys((*resources.limits, *resources.requests)):
        if name not in _PLAIN and name not in _GPUS and name not in listed:
            yield name


def _check_gpus(service: InferenceService, predictor: Predictor, view: ClusterView) -> Iterator[Problem]:
    worker, model = predictor.worker_spec, predictor.model
    if _BACKEND in service.metadata.annotations or not model or model.has("image"):
        return
    runtime, _ = runtime_of_model(model, view)
    shared = ServingRuntimeSpec.of({}) if runtime is None else runtime.spec
    if _BACKEND in shared.annotations:
        return
    tensor = worker.tensor_parallel_size or shared.worker_spec.tensor_parallel_size or 1
    pipeline = worker.pipeline_parallel_size or shared.worker_spec.pipeline_parallel_size or 1
    first = next(iter(worker.containers), None)
    head = _gpus_of_side(model, shared.containers)
    workers = _gpus_of_side(first, shared.worker_spec.containers)
    total = tensor * pipeline
    yield from _check_overwritten_limits(model, first, head, workers, (tensor, pipeline))
    if not workers.requested or not head.requested:
        return
    nodes, *_ = _computed_gpus(head.requested, workers.requested, total)
    have = head.requested + workers.requested * (nodes - 1)
    if total > have:
        message = (
            f"needs {total} GPUs (tensor {tensor} times pipeline {pipeline}), but the head has {head.requested} and "
        )
        each = "the worker has" if nodes == 2 else f"each of the {nodes - 1} workers has"
        message += f"{each} {workers.requested}, {have} in all"
        yield WORKER_GPUS.problem(worker.at, message, f"request {workers.requested} GPUs for the head too")


def _check_overwritten_limits(
    model: Model, worker: Container | None, head: _Gpus, workers: _Gpus, sizes: tuple[int, int]
) -> Iterator[Problem]:
    """Report a limit that KServe replaces with the number of GPUs that it computes from the requests.

    `sizes` are the tensor size and the pipeline size.
    """
    total = prod(sizes)
    nodes, of_head, of_worker = _computed_gpus(head.requested, workers.requested, total)
    is_head_changed = not head.requested and head.limited not in (0, of_head)
    is_worker_changed = nodes > 1 and not workers.requested and workers.limited not in (0, of_worker)
    if is_head_changed and not workers.requested:
        limits = max(head.limited, workers.limited)
        at, creates = (
            model.path("resources"),
            f"creates {total} pods with 1 GPU (tensor {sizes[0]} times pipeline {sizes[1]})",
        )
    elif is_head_changed:
        limits, at = head.limited, model.path("resources")
        creates = f"creates the head with {counted(of_head, 'GPU')}"
    elif is_worker_changed:
        limits, at = workers.limited, model.path("resources") if worker is None else worker.path("resources")
        creates = f"creates {counted(nodes - 1, 'worker')} with 1 GPU"
    else:
        return
    message = f"has a limit of {counted(limits, 'GPU')} without requests, but KServe counts only requests, "
    fix = "write the same number into requests"
    if is_head_changed and workers.limited and not workers.requested:
        fix = "write the same numbers into the requests of the model and of the worker"
    yield WORKER_REQUESTS.problem(at, f"{message}so KServe {creates}", fix)


def _computed_gpus(head: int, workers: int, total: int) -> tuple[int, int, int]:
    """Return the number of pods, the GPUs of the head, and the GPUs of each worker (computeRayNodeAndGPUs)."""
    if workers:
        nodes = 1 if head >= total else -(-total // workers)
        return (1, total, 0) if nodes == 1 else (nodes, head or total - workers * (nodes - 1), workers)
    return (1 + max(total - head, 0), head, 1) if head else (total, 1, 1)


class _Gpus(NamedTuple):
    """The GPUs in the requests and in the limits of one container."""

    requested: int
    limited: int


def _gpus_of_side(container: Container | None, shared: Sequence[Container]) -> _Gpus:
    """Return the GPUs of a container that KServe merges with the first container of the runtime."""
    listed = [each.resources for each in (*([] if container is None else [container]), *shared[:1])]
    requested = next(filter(None, (_gpus_of(each.requests) for each in listed)), 0)
    return _Gpus(requested, next(filter(None, (_gpus_of(each.limits) for each in listed)), 0))


def _gpus_of(amounts: object) -> int:
    items = amounts.items() if hasattr(amounts, "items") else ()
    return sum(read_count(value) or 0 for name, value in items if name in _GPUS)
