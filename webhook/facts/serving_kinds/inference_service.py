"""InferenceServices without workers: settings with an unexpected effect, and what the webhook of KServe refuses.

KServe's defaulting webhook runs first: it writes the default deployment mode of the cluster into an annotation.

Source: kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/reconcilers/hpa,
config/storagecontainers/default.yaml, pkg/apis/serving/v1beta1/inference_service_validation.go, predictor.go and
pkg/validation/env_policy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from webhook.apimachinery.names import (
    DNS_1035_LABEL,
    label_fault,
    label_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release
from webhook.cluster.controllers import KSERVE
from webhook.cluster.interest import interest_in_fields
from webhook.facts.assumptions import installed_release
from webhook.facts.serving_kinds.groups import SERVING_KIND, Refusal
from webhook.facts.serving_kinds.knative import KNATIVE, MODE, STANDARD, deployment_mode
from webhook.facts.serving_kinds.kserve_workers import AUTOSCALER
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.pods import Container
from webhook.typed.serving import ClusterStorageContainer, InferenceService, Predictor, StorageUri
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

MIN_REPLICAS_ZERO: Final = SERVING_KIND.rule(
    "serving-kind/min-replicas-zero",
    title="minReplicas 0 has no effect, or makes the first request fail",
    why=(
        "In Standard mode the autoscaler reads 0 as 1. With Knative the first request waits for a node and until the "
        "model is downloaded and loaded, and fails after 300 s."
    ),
    refused_by="",
    source="kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/reconcilers/hpa",
    level="advice",
    fails="silent",
    issues=("https://github.com/kserve/kserve/issues/1247", "https://github.com/kserve/kserve/issues/1641"),
)
REPLICAS: Final = SERVING_KIND.rule(
    "serving-kind/replica-bounds",
    title="minReplicas of an InferenceService is above maxReplicas",
    why="KServe refuses a lower bound above the upper bound. An absent minReplicas counts as 1.",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1beta1/component.go",
    function="validateReplicas",
)
SCALE_METRIC: Final = SERVING_KIND.rule(
    "serving-kind/scale-metric",
    title="The autoscaler of Standard mode does not read the scaleMetric",
    why=(
        "KServe creates a HorizontalPodAutoscaler without a metric, and Kubernetes then scales at 80 % of the CPU. A "
        "model server on GPUs seldom uses so much CPU."
    ),
    refused_by="",
    source="kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/reconcilers/hpa/hpa_reconciler.go",
    function="getHPAMetrics",
    fails="silent",
)
STORAGE_TWICE: Final = SERVING_KIND.rule(
    "serving-kind/storage-twice",
    title="An InferenceService sets both storageUri and storageUris",
    why="The webhook of KServe accepts one URI or a list of URIs, but not both fields.",
    function="validateMultipleStorageURIs",
)
STORAGE_SCHEME: Final = SERVING_KIND.rule(
    "serving-kind/storage-scheme",
    title="storageUri has a scheme that no storage container shipped with KServe reads",
    why=(
        "KServe's shipped container reads gs, s3, hdfs, webhdfs, hf, modelscope, https and Azure. A cluster may have "
        "other ClusterStorageContainers too."
    ),
    refused_by="KServe's webhook for pods",
    source="kserve/kserve@aaac4e294 config/storagecontainers/default.yaml",
    level="advice",
    fails="controller",
)
STORAGE_LOOKUPS: Final = (interest_in_fields(ClusterStorageContainer.gvk, "spec.supportedUriFormats"),)
"""The look-ups for advice, which only audits report."""
_OTHER_AUTOSCALERS: Final = frozenset(("keda", "external"))
"""Autoscaler classes other than KServe's HorizontalPodAutoscaler; KEDA can scale to zero."""
_METRICS_OF_HPA: Final = ("cpu", "memory")
_SCHEMES: Final = frozenset(
    (
        *("gs", "s3", "hdfs", "webhdfs", "hf", "modelscope", "http", "https", "pvc", "abfs", "azure", "file"),
        *("oci", "oci+native", "oci+fetch"),
    )
)


def advise_min_replicas(subject: Subject) -> Iterator[Problem]:
    """Advise on an InferenceService with minReplicas 0."""
    service = subject.typed(InferenceService)
    predictor, mode = service.spec.predictor, deployment_mode(service, subject)
    if predictor.min_replicas != 0 or not (predictor.model or predictor.containers):
        return
    if mode == STANDARD and service.metadata.annotations.get(AUTOSCALER, "") in _OTHER_AUTOSCALERS:
        return
    if mode == STANDARD:
        message = "counts as 1 in Standard mode, so one replica always runs and keeps its GPUs"
        fix = "set 1"
    elif mode == KNATIVE:
        message = "makes the first request wait for a node, download and load, and fail after 300 s"
        fix = "set 1 to keep one replica running"
    else:
        return
    yield MIN_REPLICAS_ZERO.problem(predictor.path("minReplicas"), message, fix, 0)


def check_replicas(subject: Subject) -> Iterator[Problem]:
    """Report components with minReplicas above maxReplicas."""
    spec = subject.typed(InferenceService).spec
    for component in (spec.predictor, spec.transformer, spec.explainer):
        most, least = component.max_replicas, component.min_replicas
        least = 1 if least is None else least
        if component and most and least > most:
            message = f"is above maxReplicas {most}, so KServe refuses the InferenceService"
            yield REPLICAS.problem(
                component.path("minReplicas"), message, f"set at most {most}, or raise maxReplicas", least
            )


def check_scale_metric(subject: Subject) -> Iterator[Problem]:
    """Report metrics that no autoscaler reads in Standard mode, unless an annotation names the autoscaler."""
    service = subject.typed(InferenceService)
    if service.metadata.annotations.get(AUTOSCALER) or deployment_mode(service, subject) != STANDARD:
        return
    for component in (service.spec.predictor, service.spec.transformer, service.spec.explainer):
        metric = component.scale_metric
        is_read = metric in _METRICS_OF_HPA or component.has("autoScaling")
        if metric and not is_read and not is_placeholder(metric):
            message = "has no effect in Standard mode, so KServe scales at 80 % of the CPU"
            fix = "set cpu or memory and a scaleTarget in per cent, or replace scaleMetric by autoScaling and "
            fix += f"annotation {AUTOSCALER}: keda"
            yield SCALE_METRIC.problem(component.path("scaleMetric"), message, fix, metric)


def check_storage(subject: Subject) -> Iterator[Problem]:
    """Report storageUris beside storageUri of the model, and advise on URIs that no shipped storage container reads."""
    predictor = subject.typed(InferenceService).spec.predictor
    model, listed = predictor.model, predictor.storage_uris
    if listed and model.storage_uri:
        message = "must not be set together with storageUri of the model, because KServe refuses both"
        fix = "keep storageUri for one model, or storageUris for several models"
        yield STORAGE_TWICE.problem(predictor.path("storageUris"), message, fix)
    yield from _advise_scheme(model.storage_uri, model.path("storageUri"), subject)
    for each in listed:
        yield from _advise_scheme(each.uri, each.path("uri"), subject)


def _advise_scheme(uri: str, path: FieldPath, subject: Subject) -> Iterator[Problem]:
    scheme, colon, _ = uri[:200].partition("://")
    is_known = scheme in _SCHEMES or is_placeholder(scheme) or "{" in scheme
    if colon and not is_known and not _is_read_by_known_container(uri, subject):
        message = f"has the scheme {scheme}://, which no storage container that KServe ships reads"
        fix = "write hf://" if scheme.startswith("hugging") else "use another scheme, or add a ClusterStorageContainer"
        yield STORAGE_SCHEME.problem(path, message, fix)


def _is_read_by_known_container(uri: str, subject: Subject) -> bool:
    """Return whether a ClusterStorageContainer of the cluster, or of another file of the folder tree, may read a URI. A
    format with a regular expression is assumed to match every URI.
    """
    view = subject.cluster_view()
    others = subject.cluster.cluster.objects_in_other_files(ClusterStorageContainer.gvk)
    containers = chain(
        view.list_visible(ClusterStorageContainer),
        (ClusterStorageContainer.of(each) for each in Items([*others], subject.deadline)),
    )
    formats = (each for container in containers for each in container.spec.supported_uri_formats)
    return any(each.regex or (each.prefix and uri.startswith(each.prefix)) for each in formats)


INFERENCE_SERVICE: Final = SERVING_KIND.rule(
    "serving-kind/inference-service",
    title="An InferenceService has a version, name, server, scaling, path or canary that is refused",
    why=(
        "The webhook accepts one server per predictor, the metrics of one autoscaler, and a common folder for several "
        "models. A canary has a fixed number of replicas on one node."
    ),
    function="validateInferenceService",
)
_VERSION_OF_OTHER_KINDS: Final = "v1alpha1"
_FRAMEWORKS: Final = (
    *("sklearn", "xgboost", "tensorflow", "pytorch", "triton"),
    *("onnx", "huggingface", "pmml", "lightgbm", "paddle"),
)
"""Older fields of a predictor. The defaulting webhook converts these fields to `model`."""
_SERVER: Final = "kserve-container"
_CLASSES: Final = ("hpa", "external", "keda", "none")
_KNATIVE_CLASS: Final = "autoscaling.knative.dev/class"
_KNATIVE_HPA: Final = "hpa.autoscaling.knative.dev"
_BLOCKED: Final = "PYTHONPATH"
_BLOCKS_VARIABLES: Final[Release] = (0, 18)
"""The first release of KServe that refuses the variable `_BLOCKED`."""
_REFUSES_NAMES: Final[Release] = (0, 16)
"""The first release of KServe that refuses a name of the model's container."""
_CLAIM: Final = "pvc://"


def check_inference_service(subject: Subject) -> Iterator[Problem]:
    """Report what the webhook of KServe refuses, and a version in which no InferenceService exists.

    KServe serves other kinds as v1alpha1, such as ServingRuntime (config/crd).
    """
    if subject.attributes.kind.version == _VERSION_OF_OTHER_KINDS:
        message = "has ServingRuntime and other kinds, but no InferenceService, so the API server refuses the object"
        fix = "write serving.kserve.io/v1beta1"
        yield INFERENCE_SERVICE.problem(("apiVersion",), message, fix, f"serving.kserve.io/{_VERSION_OF_OTHER_KINDS}")
        return
    for each in _refusals(subject):
        yield INFERENCE_SERVICE.problem(*each)


def _refusals(subject: Subject) -> Iterator[Refusal]:
    service = subject.typed(InferenceService)
    predictor = service.spec.predictor
    yield from _refusals_of_name(service)
    yield from _refusals_of_autoscaler(service, subject)
    yield from _refusals_of_servers(service)
    release = installed_release(subject.cluster_view(), KSERVE)
    yield from _refusals_of_model_name(predictor, release)
    yield from _refusals_of_variables(service, release)
    for component in (predictor, service.spec.transformer, service.spec.explainer):
        yield from _refusals_of_places(component.storage_uris)
    yield from _refusals_of_canary(service, subject)


def _refusals_of_name(service: InferenceService) -> Iterator[Refusal]:
    name = service.name
    if name and not is_placeholder_for_name(name) and not DNS_1035_LABEL.fullmatch(name):
        message = f"cannot be a part of the names of Services because {label_fault(name, begins_with_letter=True)}"
        yield Refusal(service.metadata.path("name"), message, label_fix(name, begins_with_letter=True), name[:80])


def _refusals_of_autoscaler(service: InferenceService, subject: Subject) -> Iterator[Refusal]:
    annotations = service.metadata.annotations
    written = annotations.get(AUTOSCALER)
    if written is not None and written not in _CLASSES and not is_placeholder(written):
        message = f"must be one of {', '.join(_CLASSES)}"
        path = service.metadata.path("annotations", AUTOSCALER)
        yield Refusal(path, message, "use one of these", written[:80])
    mode = deployment_mode(service, subject)
    for component in (service.spec.predictor, service.spec.transformer, service.spec.explainer):
        metrics = _metrics(mode, written or "", annotations.get(_KNATIVE_CLASS, ""))
        metric = component.scale_metric
        if metrics is not None and metric and metric not in metrics and not is_placeholder(metric):
            accepted = " and ".join(metrics) if metrics else "no scaleMetric"
            message = f"is not a metric of this InferenceService's autoscaler, which accepts {accepted}"
            path = component.path("scaleMetric")
            yield Refusal(path, message, "use another metric, or another autoscaler", metric)
        is_of_knative = mode == KNATIVE and annotations.get(_KNATIVE_CLASS) != _KNATIVE_HPA
        if is_of_knative and component.has("deploymentStrategy"):
            message = "is accepted only in Standard mode, but this InferenceService runs on Knative"
            yield Refusal(component.path("deploymentStrategy"), message, f"remove the field, or set {MODE}: {STANDARD}")


def _metrics(mode: str, autoscaler: str, knative_class: str) -> Sequence[str] | None:
    """Return the metrics that the autoscaler accepts; None if it accepts all metrics, or if the mode is not known."""
    if mode == STANDARD:
        return {"hpa": _METRICS_OF_HPA, "keda": ()}.get(autoscaler)
    if mode == KNATIVE:
        return _METRICS_OF_HPA if knative_class == _KNATIVE_HPA else ("concurrency", "rps")
    return None


def _refusals_of_servers(service: InferenceService) -> Iterator[Refusal]:
    """Yield the refusals of components without a server, or with several servers."""
    predictor, spec = service.spec.predictor, service.spec
    is_known = spec.has("predictor") and not spec.is_omitted("predictor") and not predictor.is_omitted("containers")
    has_model = any(predictor.has(each) for each in ("model", *_FRAMEWORKS))
    servers = sum(each.name == _SERVER for each in predictor.containers)
    if is_known and has_model and servers:
        message = f"has a model and container {_SERVER}, but KServe accepts only one server"
        yield Refusal(predictor.at, message, f"remove the model, or rename {_SERVER} if this container is a sidecar")
    elif is_known and not has_model and servers > 1:
        yield Refusal(predictor.at, f"has {servers} containers {_SERVER}", "keep one of these containers")
    elif is_known and not has_model and not predictor.containers:
        message = "has neither a model nor containers, but KServe requires a server"
        yield Refusal(predictor.at, message, "set model or containers")
    transformer = service.spec.transformer
    if service.spec.has("transformer") and not transformer.containers and not transformer.is_omitted("containers"):
        message = "has no containers, but KServe requires a container in a transformer"
        yield Refusal(transformer.at, message, "set containers, or remove the transformer")


def _refusals_of_model_name(predictor: Predictor, release: Release | None) -> Iterator[Refusal]:
    """Yield the refusal of a name of the model's container.

    KServe before 0.16 accepts every name, but later finds only a container named `kserve-container`
    (kserve/kserve#4535).
    """
    name = predictor.model.name
    is_old = release is not None and release < _REFUSES_NAMES
    if not name or is_placeholder(name) or (is_old and name == _SERVER):
        return
    message = "is not allowed because KServe names the container of the model"
    if is_old:
        message = f"is accepted, but KServe then does not find its container {_SERVER}"
    elif release is None and name == _SERVER:
        message = "is not allowed from KServe 0.16 on because KServe names the container of the model"
    yield Refusal(predictor.model.path("name"), message, "remove the name", name[:80])


def _refusals_of_variables(service: InferenceService, release: Release | None) -> Iterator[Refusal]:
    spec = service.spec
    if release is not None and release < _BLOCKS_VARIABLES:
        return
    since = " from 0.18 on" if release is None else ""
    containers: tuple[Container, ...] = (
        spec.predictor.model,
        *spec.predictor.containers,
        *spec.predictor.worker_spec.containers,
        *spec.transformer.containers,
        *spec.explainer.containers,
    )
    for each in containers:
        if _BLOCKED in each.environment.names:
            message = f"sets {_BLOCKED}, which KServe refuses{since}"
            yield Refusal(each.path("env"), message, "remove the variable")


def _refusals_of_places(places: Sequence[StorageUri]) -> Iterator[Refusal]:
    """Yield the refusals of mount paths of models. Several models that are not in claims need a common folder."""
    mounted = [each for each in places if each.mount_path and not is_placeholder(each.mount_path)]
    for each in mounted:
        if each.mount_path == "/" or ".." in each.mount_path:
            message = "must be a path below / without `..`"
            yield Refusal(each.path("mountPath"), message, "write a path of this form", each.mount_path[:80])
    others = [each for each in mounted if not each.uri.startswith(_CLAIM)]
    folders = {each.mount_path.strip("/").partition("/")[0] for each in others}
    if len(others) > 1 and (len(folders) > 1 or "" in folders):
        message = "has no folder in common with the other models, which KServe requires"
        fix = "use paths such as /mnt/models/a and /mnt/models/b"
        yield Refusal(others[-1].path("mountPath"), message, fix, others[-1].mount_path[:80])


def _refusals_of_canary(service: InferenceService, subject: Subject) -> Iterator[Refusal]:
    spec = service.spec
    if not spec.canary:
        return
    path = spec.path("canary")
    if deployment_mode(service, subject) == KNATIVE:
        message = "is accepted only in Standard mode, but this InferenceService runs on Knative"
        yield Refusal(path, message, f"set {MODE}: {STANDARD}, or canaryTrafficPercent")
    total = sum(each.traffic_percent for each in spec.canary)
    if total > 100:
        message = f"sends {total} percent of the requests to canaries, but at most 100 are possible"
        yield Refusal(path, message, "lower trafficPercent")
    names = [spec.predictor.name]
    for each in spec.canary:
        yield from _refusals_of_canary_predictor(each.predictor, spec.predictor, names)
        names.append(each.predictor.name)


def _refusals_of_canary_predictor(canary: Predictor, stable: Predictor, names: Sequence[str]) -> Iterator[Refusal]:
    if canary.name and canary.name in names:
        message = "is also the name of another predictor"
        yield Refusal(canary.path("name"), message, "use another name", canary.name[:80])
    for name in ("workerSpec", "maxReplicas", "scaleTarget", "scaleMetric", "autoScaling"):
        if canary.has(name):
            message = "is refused in a canary, which has a fixed number of replicas on one node"
            yield Refusal(canary.path(name), message, "remove the field")
    most = 1 if stable.min_replicas is None else stable.min_replicas
    if canary.min_replicas is not None and canary.min_replicas > most:
        message = f"is above minReplicas {most} of the stable predictor"
        yield Refusal(canary.path("minReplicas"), message, f"set at most {most}", canary.min_replicas)
