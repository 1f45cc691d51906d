"""Merges a TrainJob with its runtime, as each release of Kubeflow Trainer does it.

Patches (overlays.py) are merged by 2.2 and older into the jobs of their names, by 2.3 into the whole JobSet, so that an
unknown name is appended; before that Trainer's webhook refuses it. The jobs keep the order of the runtime. What comes
of spec.trainer and the plugins is job_set_builder.py's. Sources: kubeflow/trainer@8c0f5059bd51
pkg/runtime/core/trainingruntime.go mergeRuntimePatches; branches release-2.0 to release-2.3.
"""

from __future__ import annotations

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.train_job_pods.job_set_builder import build_job_set
from webhook.facts.train_job_pods.merged_job_set import MergedJobSet
from webhook.facts.train_job_pods.overlays import PatchLayer
from webhook.facts.train_job_pods.releases import WHOLE_JOBSET
from webhook.facts.train_job_pods.runtime_reference import ReferencedRuntime
from webhook.facts.train_job_pods.train_job_patches import (
    check_patched_containers_exist,
    unknown_patched_job_problem,
    unmergeable_patch_problem,
)
from webhook.facts.train_job_pods.train_job_tolerations import check_lost_toleration
from webhook.facts.train_job_pods.types import TrainJob
from webhook.patch import strategic
from webhook.releases import Release
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob


def merge_runtime(
    job: TrainJob, layers: Items[PatchLayer], runtime: ReferencedRuntime, release: Release
) -> MergedJobSet:
    """Return the JobSet of a TrainJob with these patches on a runtime."""
    template, deadline, indexes = runtime.spec.template, job.reading.deadline, strategic.ListIndexes()
    merged = MergedJobSet(spec=template.spec.json, patched=template.spec)
    merged.add_labels_and_annotations(template.metadata, ("spec", "runtimeRef"))
    for layer in layers:
        merged.add_labels_and_annotations(layer.metadata, layer.metadata.path("annotations"))
        _merge_layer(merged, layer, runtime, release, deadline, indexes=indexes)
    merged.spec = _jobs_in_runtime_order(merged.spec, template.spec.json)
    if merged.spec is not template.spec.json:
        merged.patched = JobSetSpec(merged.spec, template.spec.at, template.spec.reading)
    build_job_set(merged, job, runtime, release)
    return merged


def _jobs_in_runtime_order(spec: JSON, own: JSON) -> JSON:
    """Return the replicated jobs in the runtime's order; new ones are placed with the first."""
    order = {job.get("name", ""): place for place, job in enumerate(own.get("replicatedJobs", []))}
    jobs = spec.get("replicatedJobs", [])
    return {**spec, "replicatedJobs": sorted(jobs, key=lambda job: order.get(job.get("name", ""), 0))} if jobs else spec


def _merge_layer(
    merged: MergedJobSet,
    layer: PatchLayer,
    runtime: ReferencedRuntime,
    release: Release,
    deadline: Deadline,
    *,
    indexes: strategic.ListIndexes,
) -> None:
    """Merge one patch; report one that cannot be merged, and leave it out."""
    jobs = merged.spec.get("replicatedJobs", [])
    deadline.spend(len(jobs) // 10)
    jobs_by_name = {job.get("name", ""): job for job in jobs}
    for overlay in layer.overlays:
        before = jobs_by_name.get(overlay.name)
        if before is None:
            merged.unknown.add((overlay.name, ""))
            merged.problems.append(unknown_patched_job_problem(overlay, jobs_by_name, runtime, release))
        else:
            patched = ReplicatedJob(before, (), overlay.job.reading)
            merged.problems.extend(check_patched_containers_exist(merged, overlay, patched, runtime))
            merged.problems.extend(check_lost_toleration(overlay, patched))
    taken = [overlay.job.json for overlay in layer.overlays if release >= WHOLE_JOBSET or overlay.name in jobs_by_name]
    if not taken:
        return
    try:
        merged.spec = strategic.merge_patch(merged.spec, {"replicatedJobs": taken}, "JobSetSpec", deadline, indexes)
    except strategic.UnmergeableError as error:
        merged.problems.append(unmergeable_patch_problem(layer, runtime, error))
