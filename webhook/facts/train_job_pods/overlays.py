"""Reads the patches of a TrainJob for replicated jobs, in the form of each release of Kubeflow Trainer.

2.0 podSpecOverrides and 2.1 podTemplateOverrides, both of named jobs; runtimePatches since 2.2. Sources:
kubeflow/trainer branches release-2.0 to release-2.3 pkg/apis/trainer/v1alpha1/trainjob_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES
from webhook.facts.train_job_pods.types import TargetJob, TrainJob, TrainJobSpec
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.typed.objects import Metadata
from webhook.typed.pods import PodSpec


class JobOverlay(NamedTuple):
    """The patch of one replicated job: a partial job, and its partial PodSpec, which may have another path."""

    job: ReplicatedJob
    pod: PodSpec

    @property
    def name(self) -> str:
        """Return the name of the replicated job."""
        return self.job.name


class PatchLayer(NamedTuple):
    """The overlays of one patch, the path of the patch, and its metadata for the whole JobSet."""

    overlays: Items[JobOverlay]
    at: FieldPath
    metadata: Metadata


def name_of_patches_field(version: Release) -> str:
    """Return the field of a TrainJob of this release with its patches."""
    if version >= PATCHES:
        return "runtimePatches"
    return "podTemplateOverrides" if version >= TEMPLATES else "podSpecOverrides"


def read_patches(job: TrainJob, version: Release) -> Iterator[PatchLayer]:
    """Yield the patches of a TrainJob that this release reads, in order."""
    spec = job.spec
    if version >= PATCHES:
        for patch in spec.runtime_patches:
            template = patch.training_runtime_spec.template
            overlays = Items([*_overlays_of_patch(template.spec)], spec.reading.deadline)
            yield PatchLayer(overlays, patch.at, template.metadata)
        return
    annotations = Metadata({"annotations": spec.json.get("annotations")}, spec.at, spec.reading)
    yield PatchLayer(Items((), spec.reading.deadline), spec.at, annotations)
    for at, overlays in (
        _overlays_of_pod_template_overrides(spec) if version >= TEMPLATES else _overlays_of_pod_spec_overrides(spec)
    ):
        yield PatchLayer(overlays, at, Metadata({}, at, spec.reading))


def _overlays_of_patch(job_set: JobSetSpec) -> Iterator[JobOverlay]:
    for job in job_set.replicated_jobs:
        written = _without_empty_pod_lists(job)
        yield JobOverlay(written, written.pod)


def _without_empty_pod_lists(job: ReplicatedJob) -> ReplicatedJob:
    """Return a partial job without empty lists of its pods, which `omitempty` drops before the merge."""
    pod = job.pod.json
    kept = {name: value for name, value in pod.items() if value != []}
    if len(kept) == len(pod):
        return job
    pods = {**job.pod_template.json, "spec": kept}
    template = {**job.template.json, "spec": {**job.template.spec.json, "template": pods}}
    return ReplicatedJob({**job.json, "template": template}, job.at, job.reading)


def _overlays_of_pod_template_overrides(spec: TrainJobSpec) -> Iterator[tuple[FieldPath, Items[JobOverlay]]]:
    """Yield the overrides of 2.1, each as an overlay of each of its target jobs."""
    for override in spec.pod_template_overrides:
        template = {name: value for name, value in override.json.items() if name != "targetJobs"}
        overlays = [_overlay_of_override(template, target, override.spec) for target in override.target_jobs]
        yield override.at, Items(overlays, spec.reading.deadline)


def _overlays_of_pod_spec_overrides(spec: TrainJobSpec) -> Iterator[tuple[FieldPath, Items[JobOverlay]]]:
    """Yield the overrides of 2.0, which are pod specs."""
    for override in spec.pod_spec_overrides:
        pod_spec = {name: value for name, value in override.json.items() if name != "targetJobs"}
        pod = PodSpec(pod_spec, override.at, override.reading)
        overlays = [_overlay_of_override({"spec": pod_spec}, target, pod) for target in override.target_jobs]
        yield override.at, Items(overlays, spec.reading.deadline)


def _overlay_of_override(template: JSON, target: TargetJob, pod: PodSpec) -> JobOverlay:
    job = {"name": target.name, "template": {"spec": {"template": template}}}
    return JobOverlay(ReplicatedJob(job, target.at, target.reading), pod)
