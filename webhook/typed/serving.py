"""The kinds that serve models, with the fields that checks read."""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.cluster_objects import DeploymentStrategy
from webhook.typed.fields import Labels, Number, OptionalNumber, OptionalTruth, Part, Parts, Raw, Text, Truth
from webhook.typed.objects import Object
from webhook.typed.pods import Container, Probe
from webhook.typed.view import Typed


class WorkerSpec(Typed):
    """serving.kserve.io WorkerSpec."""

    containers = Parts(Container)
    pipeline_parallel_size = OptionalNumber()
    tensor_parallel_size = OptionalNumber()


class ModelFormat(Typed):
    """serving.kserve.io ModelFormat."""

    name = Text()


class Model(Container):
    """serving.kserve.io ModelSpec: a container without its own command, and the location of the model."""

    runtime = Text()
    storage_uri = Text()
    model_format = Part(ModelFormat)


class StorageUri(Typed):
    """serving.kserve.io StorageUri: one of several locations of a model."""

    uri = Text()
    mount_path = Text()


class Component(Typed):
    """serving.kserve.io ComponentExtensionSpec: what predictor, transformer and explainer have in common."""

    min_replicas = OptionalNumber()
    max_replicas = OptionalNumber()
    containers = Parts(Container)
    deployment_strategy = Part(DeploymentStrategy)
    scale_metric = Text()
    scale_target = OptionalNumber()
    storage_uris = Parts(StorageUri)


class Predictor(Component):
    """serving.kserve.io PredictorSpec."""

    name = Text()
    model = Part(Model)
    timeout = OptionalNumber()
    worker_spec = Part(WorkerSpec)


class Canary(Typed):
    """serving.kserve.io CanarySpec: a second version of the predictor with a part of the requests."""

    predictor = Part(Predictor)
    traffic_percent = Number()


class InferenceServiceSpec(Typed):
    """serving.kserve.io InferenceServiceSpec."""

    canary = Parts(Canary)
    predictor = Part(Predictor)
    transformer = Part(Component)
    explainer = Part(Component)


class InferenceServiceStatus(Typed):
    """serving.kserve.io InferenceServiceStatus."""

    deployment_mode = Text()


class InferenceService(Object):
    """serving.kserve.io InferenceService."""

    gvk = GroupVersionKind("serving.kserve.io", "v1beta1", "InferenceService")
    spec = Part(InferenceServiceSpec)
    status = Part(InferenceServiceStatus)


class SupportedFormat(Typed):
    """serving.kserve.io SupportedModelFormat."""

    name = Text()
    auto_select = Truth()


class ServingRuntimeSpec(Typed):
    """serving.kserve.io ServingRuntimeSpec; KServe merges its containers with the containers of InferenceServices."""

    annotations = Labels()
    containers = Parts(Container)
    supported_model_formats = Parts(SupportedFormat)
    worker_spec = Part(WorkerSpec)


class ServingRuntime(Object):
    """serving.kserve.io ServingRuntime."""

    gvk = GroupVersionKind("serving.kserve.io", "v1alpha1", "ServingRuntime")
    spec = Part(ServingRuntimeSpec)

    def selects_format(self, name: str) -> bool:
        """Return whether KServe may choose this runtime for a format of models."""
        return any(each.auto_select and each.name == name for each in self.spec.supported_model_formats)


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


class KedaScaling(Typed):
    """serving.kserve.io KEDAScalingSpec."""

    idle_replica_count = OptionalNumber()


class WvaScaling(Typed):
    """serving.kserve.io WVASpec: exactly one of hpa and keda."""

    hpa = Raw()
    keda = Part(KedaScaling)


class Scaling(Component):
    """serving.kserve.io ScalingSpec."""

    keda = Part(KedaScaling)
    wva = Part(WvaScaling)


class LlmWorkload(Typed):
    """serving.kserve.io WorkloadSpec."""

    parallelism = Part(Parallelism)
    replicas = OptionalNumber()
    scaling = Part(Scaling)
    template = Part(MainPod)
    worker = Part(MainPod)


class LoraAdapter(Typed):
    """serving.kserve.io LoRAAdapter."""

    name = Text()


class Lora(Typed):
    """serving.kserve.io LoRASpec."""

    adapters = Parts(LoraAdapter)


class LlmModel(Typed):
    """serving.kserve.io LLMModelSpec."""

    name = Text()
    uri = Text()
    lora = Part(Lora)


class HttpRoute(Typed):
    """serving.kserve.io HTTPRouteSpec."""

    refs = Raw()
    spec = Raw()


class LlmRoute(Typed):
    """serving.kserve.io GatewayRoutesSpec."""

    group = Text()
    http = Part(HttpRoute)
    weight = OptionalNumber()


class SchedulerConfig(Typed):
    """serving.kserve.io SchedulerConfigSpec: exactly one of inline and ref."""

    inline = Raw()
    ref = Raw()


class LlmScheduler(Typed):
    """serving.kserve.io SchedulerSpec."""

    config = Part(SchedulerConfig)


class LlmGateway(Typed):
    """serving.kserve.io GatewaySpec."""

    refs = Raw()


class LlmRouter(Typed):
    """serving.kserve.io RouterSpec."""

    gateway = Part(LlmGateway)
    route = Part(LlmRoute)
    scheduler = Part(LlmScheduler)


class StorageInitializer(Typed):
    """serving.kserve.io StorageInitializerSpec."""

    enabled = OptionalTruth()


class BaseReference(Typed):
    """core/v1 LocalObjectReference: the name of an LLMInferenceServiceConfig."""

    name = Text()


class LlmSpec(LlmWorkload):
    """serving.kserve.io LLMInferenceServiceSpec."""

    model = Part(LlmModel)
    storage_initializer = Part(StorageInitializer)
    prefill = Part(LlmWorkload)
    router = Part(LlmRouter)
    base_refs = Parts(BaseReference)


class LlmInferenceService(Object):
    """serving.kserve.io LLMInferenceService."""

    gvk = GroupVersionKind("serving.kserve.io", "v1alpha2", "LLMInferenceService")
    spec = Part(LlmSpec)


class UriFormat(Typed):
    """serving.kserve.io SupportedUriFormat."""

    prefix = Text()
    regex = Text()


class StorageContainerSpec(Typed):
    """serving.kserve.io StorageContainerSpec."""

    supported_uri_formats = Parts(UriFormat)


class ClusterStorageContainer(Object):
    """serving.kserve.io ClusterStorageContainer: a container that downloads models."""

    gvk = GroupVersionKind("serving.kserve.io", "v1alpha1", "ClusterStorageContainer")
    spec = Part(StorageContainerSpec)


class NimImage(Typed):
    """apps.nvidia.com Image."""

    repository = Text()
    tag = Text()


class NimProbe(Typed):
    """apps.nvidia.com Probe: a probe that replaces the operator's own, unless probes of this sort are off."""

    enabled = OptionalTruth()
    probe = Part(Probe)


class NimServiceSpec(Typed):
    """apps.nvidia.com NIMServiceSpec."""

    image = Part(NimImage)
    liveness_probe = Part(NimProbe)
    startup_probe = Part(NimProbe)


class NimService(Object):
    """apps.nvidia.com NIMService."""

    gvk = GroupVersionKind("apps.nvidia.com", "v1alpha1", "NIMService")
    spec = Part(NimServiceSpec)
