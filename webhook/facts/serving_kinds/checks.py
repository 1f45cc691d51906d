"""The checks of kinds that serve models."""

from __future__ import annotations

from typing import Final

from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.serving_kinds import (
    disaggregated_set,
    field_values,
    inference_service,
    knative,
    kserve_workers,
    llm_inference_service,
    model_claims,
    worker_set,
)
from webhook.facts.serving_kinds.knative import MODE_LOOKUP
from webhook.facts.subject import Check

_INFERENCE_SERVICE: Final = frozenset((("serving.kserve.io", "InferenceService"),))
_LLM: Final = frozenset((("serving.kserve.io", "LLMInferenceService"),))
_KNATIVE: Final = frozenset((("serving.knative.dev", "Service"),))
_LWS: Final = frozenset((LEADER_WORKER_SET,))
_DISAGGREGATED: Final = frozenset((("disaggregatedset.x-k8s.io", "DisaggregatedSet"),))
_RUNTIMES: Final = frozenset((("serving.kserve.io", "ServingRuntime"), ("serving.kserve.io", "ClusterServingRuntime")))
_LLM_CONFIG: Final = frozenset((("serving.kserve.io", "LLMInferenceServiceConfig"),))
CHECKS: Final = (
    Check(group="serving-kind", run=kserve_workers.check_worker_spec, kinds=_INFERENCE_SERVICE | _RUNTIMES),
    Check(group="serving-kind", run=kserve_workers.check_worker_gpus, kinds=_INFERENCE_SERVICE),
    Check(
        group="serving-kind",
        run=knative.check_knative_fields,
        kinds=_INFERENCE_SERVICE | _KNATIVE,
        lookups=knative.LOOKUPS,
        of_made_objects=False,
    ),
    Check(
        group="serving-kind",
        run=inference_service.advise_min_replicas,
        kinds=_INFERENCE_SERVICE,
        lookups=(MODE_LOOKUP,),
    ),
    Check(group="serving-kind", run=inference_service.check_replicas, kinds=_INFERENCE_SERVICE),
    Check(
        group="serving-kind",
        run=inference_service.check_inference_service,
        kinds=_INFERENCE_SERVICE,
        lookups=(MODE_LOOKUP,),
    ),
    Check(group="serving-kind", run=llm_inference_service.check_llm_service, kinds=_LLM | _LLM_CONFIG),
    Check(group="serving-kind", run=llm_inference_service.check_scaling_of_configuration, kinds=_LLM_CONFIG),
    Check(
        group="serving-kind",
        run=inference_service.check_storage,
        kinds=_INFERENCE_SERVICE,
        lookups_of_audits=inference_service.STORAGE_LOOKUPS,
    ),
    Check(
        group="serving-kind",
        run=model_claims.check_claim_of_inference_service,
        kinds=_INFERENCE_SERVICE,
        lookups=model_claims.LOOKUPS,
    ),
    Check(
        group="serving-kind",
        run=llm_inference_service.check_llm_inference_service,
        kinds=_LLM,
        lookups=llm_inference_service.LOOKUPS,
    ),
    Check(
        group="serving-kind",
        run=model_claims.check_claim_of_llm_service,
        kinds=_LLM,
        lookups=model_claims.LOOKUPS,
    ),
    Check(group="serving-kind", run=worker_set.check_worker_set, kinds=_LWS),
    Check(group="serving-kind", run=disaggregated_set.check_disaggregated_set, kinds=_DISAGGREGATED),
    Check(
        group="serving-kind",
        run=field_values.check_field_values,
        kinds=_INFERENCE_SERVICE | _LLM | _LLM_CONFIG | _RUNTIMES | _LWS | _DISAGGREGATED,
    ),
)
