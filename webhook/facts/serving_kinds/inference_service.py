"""Settings of an InferenceService that do something else than they read.

Source: kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/reconcilers/hpa and
config/storagecontainers/default.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.serving_kinds.kserve_workers import AUTOSCALER, MODE
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.serving import InferenceService

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
_OTHER_AUTOSCALERS: Final = frozenset(("keda", "external"))
"""Classes of autoscalers that are not KServe's HorizontalPodAutoscaler; KEDA scales to zero."""
_STANDARD: Final = frozenset(("Standard", "RawDeployment"))
_SCHEMES: Final = frozenset(
    ("gs", "s3", "hdfs", "webhdfs", "hf", "modelscope", "http", "https", "pvc", "oci", "abfs", "azure", "file")
)


def advise_min_replicas(subject: Subject) -> Iterator[Problem]:
    """Advise on an InferenceService with minReplicas 0."""
    service = subject.typed(InferenceService)
    predictor, mode = service.spec.predictor, service.metadata.annotations.get(MODE, "")
    if predictor.min_replicas != 0 or not (predictor.model or predictor.containers):
        return
    if mode in _STANDARD and service.metadata.annotations.get(AUTOSCALER, "") in _OTHER_AUTOSCALERS:
        return
    if mode in _STANDARD:
        message = "counts as 1 in Standard mode, so one replica always runs and keeps its GPUs"
        fix = "set 1"
    elif mode:
        message = "makes the first request wait for node, download and load, and end after 300 s"
        fix = "set 1 to keep one replica running"
    else:
        return
    yield MIN_REPLICAS_ZERO.problem(predictor.path("minReplicas"), message, fix, 0)


def advise_storage_scheme(subject: Subject) -> Iterator[Problem]:
    """Advise on a model that no shipped storage container reads."""
    model = subject.typed(InferenceService).spec.predictor.model
    scheme, colon, _ = model.storage_uri[:200].partition("://")
    if colon and scheme not in _SCHEMES and "{" not in scheme and "$" not in scheme:
        message = f"has the scheme {scheme}, which no storage container that KServe ships reads"
        fix = "write hf://" if scheme.startswith("hugging") else "use another scheme, or add a ClusterStorageContainer"
        yield STORAGE_SCHEME.problem(model.path("storageUri"), message, fix)
