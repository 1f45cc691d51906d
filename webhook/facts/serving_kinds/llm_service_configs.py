"""The configurations that an LLMInferenceService names in baseRefs, merged as KServe merges them.

Later configurations win over earlier ones, and the object itself wins over all. Containers are merged by their names.
A configuration is in the namespace of the object, or in that of KServe. KServe's own presets are below all of them, and
are not merged here.

Source: kserve/kserve@00bd5d06 pkg/controller/v1alpha2/llmisvc/config_merge.go combineBaseRefsConfig, mergeSpecs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.interest import interest_in_fields
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.patch.strategic import UnmergeableError, merge_patch
from webhook.typed.serving import LlmInferenceService, LlmSpec

_CONFIG: Final = GroupVersionKind("serving.kserve.io", "v1alpha2", "LLMInferenceServiceConfig")
_NAMESPACE: Final = "kserve"
_PODS: Final = ("template", "worker")
LOOKUPS: Final = (interest_in_fields(_CONFIG, "spec.parallelism", "spec.template", "spec.worker", "spec.prefill"),)


def spec_with_base_refs(subject: Subject) -> LlmSpec | None:
    """Return the spec of an LLMInferenceService with the values of its configurations; None if one of them is not
    known, or cannot be read.
    """
    own = subject.typed(LlmInferenceService).spec
    if not own.base_refs:
        return own
    view, merged = subject.cluster_view(), dict[str, Any]()
    try:
        for reference in own.base_refs:
            config = view.get_without_noting(_CONFIG, view.namespace, reference.name) or view.get_without_noting(
                _CONFIG, _NAMESPACE, reference.name
            )
            if config is None:
                return None
            merged = _merged_workload(merged, _map(config.get("spec")), subject.deadline)
        merged = _merged_workload(merged, own.json, subject.deadline)
    except UnmergeableError:
        return None
    return LlmSpec.of(merged, own.at, subject.reading_context) if _has_whole_numbers(merged) else None


def _merged_workload(base: Mapping[str, Any], over: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
    """Return the parts of a workload that decide its sizes, merged; of other fields the later value."""
    merged = {**base, **over}
    if "parallelism" in merged:
        merged["parallelism"] = {**_map(base.get("parallelism")), **_map(over.get("parallelism"))}
    for name in _PODS:
        if name in base and name in over:
            merged[name] = merge_patch(base[name], over[name], "PodSpec", deadline)
    if "prefill" in merged:
        merged["prefill"] = _merged_workload(_map(base.get("prefill")), _map(over.get("prefill")), deadline)
    return merged


def _has_whole_numbers(workload: Mapping[str, Any]) -> bool:
    """Return whether all sizes are numbers: a configuration may have a template of Go in their place."""
    sizes = (
        *_map(workload.get("parallelism")).values(),
        *_map(_map(workload.get("prefill")).get("parallelism")).values(),
    )
    return all(size is None or isinstance(size, int) for size in sizes)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
