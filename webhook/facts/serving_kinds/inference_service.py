"""Settings of an InferenceService that do not do what their names suggest.

Source: kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/reconcilers/hpa and
config/storagecontainers/default.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.serving_kinds.deployment_mode import KNATIVE, STANDARD, deployment_mode
from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.serving_kinds.kserve_workers import AUTOSCALER
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.serving import ClusterStorageContainer, InferenceService
from webhook.yamltext.placeholders import is_placeholder

MIN_REPLICAS_ZERO: Final = SERVING_KIND.rule(
    "serving-kind/min-replicas-zero",
    title="minReplicas 0 does not scale to zero, or makes the first request wait",
    why=(
        "In Standard mode an autoscaler reads 0 as 1. With Knative the first request waits for a node, the download "
        "and the load, and ends after 300 s."
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
STORAGE_TWICE: Final = SERVING_KIND.rule(
    "serving-kind/storage-twice",
    title="An InferenceService sets both storageUri and storageUris",
    why="The webhook of KServe takes one place or a list of places, and refuses both together.",
    function="validateMultipleStorageURIs",
)
STORAGE_SCHEME: Final = SERVING_KIND.rule(
    "serving-kind/storage-scheme",
    title="No shipped storage container of KServe reads the scheme of storageUri",
    why=(
        "The container that KServe ships reads gs, s3, hdfs, webhdfs, hf, modelscope, https and Azure. A cluster may "
        "have further ClusterStorageContainers."
    ),
    refused_by="KServe's webhook for pods",
    source="kserve/kserve@aaac4e294 config/storagecontainers/default.yaml",
    level="advice",
    fails="controller",
)
STORAGE_LOOKUPS: Final = (interest_in_fields(ClusterStorageContainer.gvk, "spec.supportedUriFormats"),)
"""Look-ups of audits only, because a server never shows advice."""
_OTHER_AUTOSCALERS: Final = frozenset(("keda", "external"))
"""Autoscaler classes other than KServe's HorizontalPodAutoscaler; KEDA can scale to zero."""
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
        message = "makes the first request wait for node, download and load, and end after 300 s"
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
            yield REPLICAS.problem(component.path("minReplicas"), message, f"set at most {most}", least)


def check_storage(subject: Subject) -> Iterator[Problem]:
    """Report a model with two URIs, and advise on URIs that no shipped storage container reads."""
    predictor = subject.typed(InferenceService).spec.predictor
    model, listed = predictor.model, predictor.storage_uris
    if listed and model.storage_uri:
        message = "is set beside storageUri of the model, which KServe refuses together"
        yield STORAGE_TWICE.problem(predictor.path("storageUris"), message, "remove one of them")
    yield from _advise_scheme(model.storage_uri, model.path("storageUri"), subject)
    for each in listed:
        yield from _advise_scheme(each.uri, each.path("uri"), subject)


def _advise_scheme(uri: str, path: FieldPath, subject: Subject) -> Iterator[Problem]:
    scheme, colon, _ = uri[:200].partition("://")
    is_known = scheme in _SCHEMES or is_placeholder(scheme) or "{" in scheme
    if colon and not is_known and not _is_read_by_known_container(uri, subject):
        message = f"has the scheme {scheme}, which no storage container that KServe ships reads"
        fix = "write hf://" if scheme.startswith("hugging") else "use another scheme, or add a ClusterStorageContainer"
        yield STORAGE_SCHEME.problem(path, message, fix)


def _is_read_by_known_container(uri: str, subject: Subject) -> bool:
    """Return whether a storage container of the cluster may read a URI; with a regular expression it may."""
    containers = subject.cluster_view().list_visible(ClusterStorageContainer)
    formats = (each for container in containers for each in container.spec.supported_uri_formats)
    return any(each.regex or (each.prefix and uri.startswith(each.prefix)) for each in formats)
