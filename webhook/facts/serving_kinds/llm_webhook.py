"""What the webhook of KServe refuses of the adapters, the router and the autoscaler of an LLMInferenceService.

Source: kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go; config/crd/full/llmisvc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.serving_kinds.groups import SERVING_KIND, Refusal
from webhook.facts.serving_kinds.llm_inference_service import check_scaling
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.serving import KedaScaling, LlmInferenceService, LlmModel, LlmRouter, LlmSpec, LlmWorkload, Scaling
from webhook.yamltext.placeholders import is_placeholder

LLM_SERVICE: Final = SERVING_KIND.rule(
    "serving-kind/llm-service",
    title="An LLMInferenceService has an adapter, a router or an autoscaler that KServe refuses",
    why="The webhook refuses names that are used twice, and settings that exclude or require each other.",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go",
    function="validate",
)
_CONFIGURATION: Final = "LLMInferenceServiceConfig"
_ABOVE: Final = (".", "..")


def check_llm_service(subject: Subject) -> Iterator[Problem]:
    """Report what KServe refuses of an LLMInferenceService, or of a configuration that LLMInferenceServices name."""
    is_configuration = subject.attributes.kind.kind == _CONFIGURATION
    for each in _refusals_of_configuration(subject) if is_configuration else _refusals_of_service(subject):
        yield LLM_SERVICE.problem(*each)


def check_scaling_of_configuration(subject: Subject) -> Iterator[Problem]:
    """Report scaling that the API server refuses in a configuration."""
    spec = subject.typed(LlmInferenceService).spec
    for workload in (spec, spec.prefill):
        yield from check_scaling(workload)


def _refusals_of_service(subject: Subject) -> Iterator[Refusal]:
    service = subject.typed(LlmInferenceService)
    spec = service.spec
    yield from _refusals_of_model(spec)
    yield from _refusals_of_adapters(spec.model, spec.model.name or service.name)
    yield from _refusals_of_router(spec.router)
    for workload in (spec, spec.prefill):
        yield from _refusals_of_scaling(workload.scaling)
    yield from _refusals_of_same_autoscaler(spec, spec.prefill)


def _refusals_of_configuration(subject: Subject) -> Iterator[Refusal]:
    spec = subject.typed(LlmInferenceService).spec
    if spec.base_refs:
        message = "is not a field of a configuration, because configurations do not name others"
        yield Refusal(spec.path("baseRefs"), message, "name all of them in the LLMInferenceService")
    yield from _refusals_of_model(spec)
    for workload in (spec, spec.prefill):
        yield from _refusals_of_scaling(workload.scaling)


def _refusals_of_model(spec: LlmSpec) -> Iterator[Refusal]:
    if spec.has("model") and not spec.model.has("uri"):
        message = "is required, and names the place of the model"
        yield Refusal(spec.model.path("uri"), message, "set a place such as hf://org/name")


def _refusals_of_adapters(model: LlmModel, served: str) -> Iterator[Refusal]:
    names = list[str]()
    for each in model.lora.adapters:
        path, name = each.path("name"), each.name
        if not name:
            yield Refusal(path, "is required, because requests name the adapter", "set a name")
        elif name in _ABOVE:
            yield Refusal(path, "must not be a path to another folder", "set another name", name)
        elif name in names:
            yield Refusal(path, "is also the name of another adapter", "set another name", name[:80])
        elif name == served and not is_placeholder(name):
            yield Refusal(path, "is also the name of the model", "set another name", name[:80])
        names.append(name)


def _refusals_of_router(router: LlmRouter) -> Iterator[Refusal]:
    config, route, gateway = router.scheduler.config, router.route, router.gateway
    if router.scheduler.has("config") and config.has("inline") == config.has("ref"):
        message = "must have exactly one of inline and ref"
        yield Refusal(config.at, message, "remove one" if config.has("ref") else "set one of them")
    if route.http.refs and route.http.has("spec"):
        yield Refusal(route.http.at, "must not have both refs and spec", "remove one of them")
    if route.http.refs and router.has("gateway") and not gateway.refs:
        message = "names routes, which KServe refuses together with a gateway that it manages"
        fix = "remove the routes, or set spec.router.gateway.refs"
        yield Refusal(route.http.path("refs"), message, fix)
    if route.has("weight") != route.has("group"):
        given, missing = ("weight", "group") if route.has("weight") else ("group", "weight")
        yield Refusal(route.path(given), f"requires {missing} as well", f"set {missing}")


def _refusals_of_scaling(scaling: Scaling) -> Iterator[Refusal]:
    wva = scaling.wva
    if scaling.has("wva") and wva.has("hpa") == wva.has("keda"):
        message = "must have exactly one of hpa and keda"
        yield Refusal(wva.at, message, "remove one" if wva.has("hpa") else "set hpa: {} or keda: {}")
    for keda in (scaling.keda, wva.keda):
        yield from _refusals_of_idle_replicas(scaling, keda)


def _refusals_of_idle_replicas(scaling: Scaling, keda: KedaScaling) -> Iterator[Refusal]:
    idle, least = keda.idle_replica_count, scaling.min_replicas
    least = 1 if least is None else least
    if idle is not None and idle >= least:
        message = f"must be below minReplicas {least}"
        yield Refusal(keda.path("idleReplicaCount"), message, "set 0", idle)


def _refusals_of_same_autoscaler(decode: LlmWorkload, prefill: LlmWorkload) -> Iterator[Refusal]:
    """Yield a prefill workload that is scaled in another way than the decode workload."""
    if not (decode.has("scaling") and prefill.has("scaling")):
        return
    for name, one, other in (
        ("keda", decode.scaling, prefill.scaling),
        ("hpa", decode.scaling.wva, prefill.scaling.wva),
    ):
        if one and other and one.has(name) != other.has(name):
            message = "must use the same autoscaler as spec.scaling, because KServe refuses two"
            yield Refusal(prefill.scaling.at, message, "use the same one in both")
            return
