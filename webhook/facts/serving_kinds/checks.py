"""The checks of kinds that serve models."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.serving_kinds import inference_service, knative, kserve_workers, llm_inference_service, worker_set

_INFERENCE_SERVICE: Final = frozenset((("serving.kserve.io", "InferenceService"),))
_LLM: Final = frozenset((("serving.kserve.io", "LLMInferenceService"),))
_KNATIVE: Final = frozenset((("serving.knative.dev", "Service"),))
_LWS: Final = frozenset((("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),))
CHECKS: Final = (
    Check(group="serving-kind", run=kserve_workers.check_worker_spec, kinds=_INFERENCE_SERVICE),
    Check(
        group="serving-kind",
        run=knative.check_knative_fields,
        kinds=_INFERENCE_SERVICE | _KNATIVE,
        lookups=knative.LOOKUPS,
        of_made_objects=False,
    ),
    Check(group="serving-kind", run=inference_service.advise_min_replicas, kinds=_INFERENCE_SERVICE),
    Check(group="serving-kind", run=inference_service.advise_storage_scheme, kinds=_INFERENCE_SERVICE),
    Check(group="serving-kind", run=llm_inference_service.check_llm_inference_service, kinds=_LLM),
    Check(group="serving-kind", run=worker_set.check_worker_set, kinds=_LWS),
)
