"""What a TrainJob lays over its runtime's replicated jobs, in the shape that each release of Kubeflow Trainer reads.

2.0 podSpecOverrides and 2.1 podTemplateOverrides, both of named jobs; runtimePatches since 2.2. Sources:
kubeflow/trainer branches release-2.0 to release-2.3 pkg/apis/trainer/v1alpha1/trainjob_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from webhook.attributes import JSON
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES
from webhook.paths import get, render
from webhook.releases import Release

POD: Final = ("template", "spec", "template", "spec")
_POD_AT: Final = render(POD)


class Overlay(NamedTuple):
    """What is laid over one replicated job: a partial job, where it stands, and where its PodSpec stands."""

    job: JSON
    at: str
    spec_at: str

    @property
    def name(self) -> str:
        """The replicated job that it is for."""
        return str(self.job.get("name", ""))

    @property
    def pod(self) -> JSON:
        """Its partial PodSpec."""
        return get(self.job, POD, {})


class Layer(NamedTuple):
    """The overlays of one patch, what it says of the whole JobSet's metadata, and where both stand."""

    overlays: tuple[Overlay, ...]
    at: str
    metadata: JSON
    metadata_at: str


def field(version: Release) -> str:
    """Where a TrainJob of this release has its patches."""
    if version >= PATCHES:
        return "runtimePatches"
    return "podTemplateOverrides" if version >= TEMPLATES else "podSpecOverrides"


def layers(job: JSON, version: Release) -> Iterator[Layer]:
    """The patches of a TrainJob that this release reads, in order."""
    if version >= PATCHES:
        for index, patch in enumerate(get(job, ("spec", "runtimePatches"), [])):
            at = f"spec.runtimePatches[{index}]"
            template = get(patch, ("trainingRuntimeSpec", "template"), {})
            inside = f"{at}.trainingRuntimeSpec.template.metadata.annotations"
            yield Layer(tuple(_patched(template, at)), at, template.get("metadata", {}), inside)
        return
    spec = get(job, ("spec",), {})
    yield Layer((), "spec", {"annotations": spec.get("annotations", {})}, "spec.annotations")
    name = field(version)
    for index, override in enumerate(spec.get(name, [])):
        at = f"spec.{name}[{index}]"
        yield Layer(tuple(_override(override, at, version)), at, {}, at)


def _patched(template: JSON, at: str) -> Iterator[Overlay]:
    at += ".trainingRuntimeSpec.template.spec.replicatedJobs"
    for index, each in enumerate(get(template, ("spec", "replicatedJobs"), [])):
        yield Overlay(_as_go_writes(each), f"{at}[{index}]", f"{at}[{index}].{_POD_AT}")


def _as_go_writes(job: JSON) -> JSON:
    """A partial job without the empty lists of its pods: `omitempty` leaves them out before anything is merged."""
    pod = get(job, POD, {})
    kept = {name: value for name, value in pod.items() if value != []}
    if len(kept) == len(pod):
        return job
    template, spec = job["template"], job["template"]["spec"]
    return {**job, "template": {**template, "spec": {**spec, "template": {**spec["template"], "spec": kept}}}}


def _override(override: JSON, at: str, version: Release) -> Iterator[Overlay]:
    """One override of 2.0 or 2.1 as an overlay of each of its target jobs."""
    inner = {key: value for key, value in override.items() if key != "targetJobs"}
    template, spec_at = (inner, f"{at}.spec") if version >= TEMPLATES else ({"spec": inner}, at)
    for index, target in enumerate(override.get("targetJobs", [])):
        job = {"name": get(target, ("name",), ""), "template": {"spec": {"template": template}}}
        yield Overlay(job, f"{at}.targetJobs[{index}]", spec_at)
