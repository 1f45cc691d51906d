"""Lists the checks of kinds that serve models, and checks values that the schema or the webhook of a kind refuses.

field_values.yaml declares the fields with such values. The other modules have the checks that depend on several
fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.cluster.controllers import KSERVE
from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.pods.pod_sets import RUNTIME_LOOKUPS
from webhook.facts.serving_kinds import (
    inference_service,
    knative,
    kserve_workers,
    llm_inference_service,
    model_claims,
    worker_set,
)
from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.serving_kinds.knative import MODE_LOOKUP
from webhook.facts.shapes.object_shape import problem_of_breach
from webhook.facts.subject import Check, Subject
from webhook.rules.problem import Problem
from webhook.schema.values import Breach, declarations_of_file

FIELD_VALUE: Final = SERVING_KIND.rule(
    "serving-kind/field-value",
    title="A field of a LeaderWorkerSet or of an object of KServe has an invalid value",
    why=(
        "The CustomResourceDefinition declares types, ranges and allowed values, and the webhook has more rules. The "
        "API server refuses the object."
    ),
    refused_by="the API server, when the object is created",
    source="kubernetes-sigs/lws@060ab4d config/crd/bases; kserve/kserve@aaac4e294 config/crd/full",
)
_DECLARATIONS: Final = Path(__file__).with_name("field_values.yaml")


def check_field_values(subject: Subject) -> Iterator[Problem]:
    """Report invalid values, except values that were stored before. The versions of an InferenceService before v1beta1
    have other fields.
    """
    if subject.group_kind in _INFERENCE_SERVICE and subject.attributes.kind.version != "v1beta1":
        return
    stored_keys = set() if subject.old_object is None else {each.key for each in _breaches(subject.old_object, subject)}
    for each in _breaches(subject.object, subject):
        if each.key not in stored_keys:
            yield problem_of_breach(each, FIELD_VALUE)


def _breaches(obj: JSON, subject: Subject) -> Iterator[Breach]:
    breaches = declarations_of_file(_DECLARATIONS).breaches(obj, subject.group_kind[1], (), subject.deadline)
    return (each for each in breaches if each.at not in subject.omitted)


_INFERENCE_SERVICE: Final = frozenset((("serving.kserve.io", "InferenceService"),))
_LLM: Final = frozenset((("serving.kserve.io", "LLMInferenceService"),))
_KNATIVE: Final = frozenset((("serving.knative.dev", "Service"),))
_LWS: Final = frozenset((LEADER_WORKER_SET,))
_DISAGGREGATED: Final = frozenset((("disaggregatedset.x-k8s.io", "DisaggregatedSet"),))
_RUNTIMES: Final = frozenset((("serving.kserve.io", "ServingRuntime"), ("serving.kserve.io", "ClusterServingRuntime")))
_LLM_CONFIG: Final = frozenset((("serving.kserve.io", "LLMInferenceServiceConfig"),))
CHECKS: Final = (
    Check(group="serving-kind", run=kserve_workers.check_worker_spec, kinds=_INFERENCE_SERVICE | _RUNTIMES),
    Check(
        group="serving-kind",
        run=kserve_workers.check_worker_gpus,
        kinds=_INFERENCE_SERVICE,
        lookups=RUNTIME_LOOKUPS,
    ),
    Check(
        group="serving-kind",
        run=knative.check_knative_fields,
        kinds=_INFERENCE_SERVICE | _KNATIVE,
        lookups=knative.LOOKUPS,
        lookups_of_audits=knative.OPERATOR_LOOKUPS,
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
        run=inference_service.check_scale_metric,
        kinds=_INFERENCE_SERVICE,
        lookups=(MODE_LOOKUP,),
    ),
    Check(
        group="serving-kind",
        run=inference_service.check_inference_service,
        kinds=_INFERENCE_SERVICE,
        lookups=(MODE_LOOKUP, KSERVE.deployment_interest),
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
    Check(group="serving-kind", run=worker_set.check_disaggregated_set, kinds=_DISAGGREGATED),
    Check(
        group="serving-kind",
        run=check_field_values,
        kinds=_INFERENCE_SERVICE | _LLM | _LLM_CONFIG | _RUNTIMES | _LWS | _DISAGGREGATED,
    ),
)
