"""Claims of models that KServe mounts into every replica: `pvc://CLAIM/PATH` of InferenceServices and of LLM services.

Source: kserve/kserve@aaac4e294 pkg/utils/storage.go AddModelMount;
https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import PersistentVolumeClaim
from webhook.typed.serving import InferenceService, LlmInferenceService, LlmWorkload

MODEL_CLAIM_OF_ONE_POD: Final = SERVING_KIND.rule(
    "serving-kind/model-claim-of-one-pod",
    title="Several replicas mount the ReadWriteOncePod claim of their model",
    why="KServe mounts the claim into each replica. All pods except the first stay Pending.",
    refused_by="",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go",
    function="satisfyReadWriteOncePod",
    fails="pending",
)
MODEL_CLAIM_OF_ONE_NODE: Final = SERVING_KIND.rule(
    "serving-kind/model-claim-of-one-node",
    title="Several replicas mount the ReadWriteOnce claim of their model",
    why="A disk is attached to one node at a time, so replicas on a second node wait with a Multi-Attach error.",
    refused_by="",
    source="https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
    level="advice",
    fails="start",
)
LOOKUPS: Final = (interest_in_fields(PersistentVolumeClaim.gvk, "spec.accessModes"),)
_SCHEME: Final = "pvc://"
_LONGEST: Final = 512


def check_claim_of_inference_service(subject: Subject) -> Iterator[Problem]:
    """Report claims that not all replicas of an InferenceService can mount."""
    predictor = subject.typed(InferenceService).spec.predictor
    places = [(predictor.model.storage_uri, predictor.model.path("storageUri"))]
    places += [(each.uri, each.path("uri")) for each in predictor.storage_uris]
    for uri, path in places:
        yield from _check_claim(uri, path, predictor.min_replicas or 1, subject)


def check_claim_of_llm_service(subject: Subject) -> Iterator[Problem]:
    """Report a claim that not all pods of an LLMInferenceService can mount."""
    spec = subject.typed(LlmInferenceService).spec
    pods = sum(_pods_of_workload(each) for each in (spec, spec.prefill) if each)
    yield from _check_claim(spec.model.uri, spec.model.path("uri"), pods, subject)


def _pods_of_workload(workload: LlmWorkload) -> int:
    """Return how many pods a workload has at least."""
    scaled = workload.scaling.min_replicas if workload.scaling else None
    replicas = workload.replicas if workload.replicas is not None else scaled
    return 1 if replicas is None else replicas


def _check_claim(uri: str, path: FieldPath, pods: int, subject: Subject) -> Iterator[Problem]:
    if pods < 2 or not uri.startswith(_SCHEME) or not subject.namespace:
        return
    name = uri[len(_SCHEME) : _LONGEST].partition("/")[0]
    claim = subject.cluster_view().copy_without_missing_objects().find(PersistentVolumeClaim, name)
    modes = set(claim.spec.access_modes)
    if modes == {"ReadWriteOncePod"}:
        message = f"claim {name} is ReadWriteOncePod, so only 1 of the {pods} replicas can start"
        yield MODEL_CLAIM_OF_ONE_POD.problem(path, message, "use a ReadOnlyMany or ReadWriteMany claim")
    elif modes == {"ReadWriteOnce"}:
        message = f"claim {name} is ReadWriteOnce, so the {pods} replicas must all run on one node"
        yield MODEL_CLAIM_OF_ONE_NODE.problem(path, message, "use a ReadOnlyMany or ReadWriteMany claim")
