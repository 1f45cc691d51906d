"""The kinds that serve models, with the fields that checks read."""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.fields import OptionalNumber, Part, Parts, Raw, Text, Truth
from webhook.typed.objects import Object
from webhook.typed.pods import Container
from webhook.typed.view import Typed


class WorkerSpec(Typed):
    """serving.kserve.io WorkerSpec."""

    containers = Parts(Container)
    pipeline_parallel_size = OptionalNumber()
    tensor_parallel_size = OptionalNumber()


class Model(Container):
    """serving.kserve.io ModelSpec: a container without a command of its own, and where the model is."""

    runtime = Text()
    storage_uri = Text()
    model_format = Raw()


class Predictor(Typed):
    """serving.kserve.io PredictorSpec."""

    containers = Parts(Container)
    min_replicas = OptionalNumber()
    max_replicas = OptionalNumber()
    model = Part(Model)
    timeout = OptionalNumber()
    worker_spec = Part(WorkerSpec)


class InferenceServiceSpec(Typed):
    """serving.kserve.io InferenceServiceSpec."""

    predictor = Part(Predictor)


class InferenceService(Object):
    """serving.kserve.io InferenceService."""

    gvk = GroupVersionKind("serving.kserve.io", "v1beta1", "InferenceService")
    spec = Part(InferenceServiceSpec)


class SupportedFormat(Typed):
    """serving.kserve.io SupportedModelFormat."""

    name = Text()
    auto_select = Truth()


class ServingRuntimeSpec(Typed):
    """serving.kserve.io ServingRuntimeSpec; KServe merges its containers with those of InferenceServices."""

    containers = Parts(Container)
    supported_model_formats = Parts(SupportedFormat)
    worker_spec = Part(WorkerSpec)


class ServingRuntime(Object):
    """serving.kserve.io ServingRuntime."""

    gvk = GroupVersionKind("serving.kserve.io", "v1alpha1", "ServingRuntime")
    spec = Part(ServingRuntimeSpec)


class ClusterServingRuntime(ServingRuntime):
    """serving.kserve.io ClusterServingRuntime."""

    gvk = GroupVersionKind("serving.kserve.io", "v1alpha1", "ClusterServingRuntime")


class Parallelism(Typed):
    """serving.kserve.io ParallelismSpec."""

    tensor = OptionalNumber()
    pipeline = OptionalNumber()
    data = OptionalNumber()
    data_local = OptionalNumber()


class MainPod(Typed):
    """A PodSpec that KServe merges over its presets."""

    containers = Parts(Container)


class LlmWorkload(Typed):
    """serving.kserve.io WorkloadSpec."""

    parallelism = Part(Parallelism)
    replicas = OptionalNumber()
    scaling = Raw()
    template = Part(MainPod)
    worker = Part(MainPod)


class LlmSpec(LlmWorkload):
    """serving.kserve.io LLMInferenceServiceSpec."""

    prefill = Part(LlmWorkload)
    base_refs = Raw()


class LlmInferenceService(Object):
    """serving.kserve.io LLMInferenceService."""

    gvk = GroupVersionKind("serving.kserve.io", "v1alpha2", "LLMInferenceService")
    spec = Part(LlmSpec)
