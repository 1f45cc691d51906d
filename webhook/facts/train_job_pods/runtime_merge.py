"""A TrainJob merged with its runtime, as each release of Kubeflow Trainer does it.

Patches (overlays.py) are merged by 2.2 and older into the jobs of their names, by 2.3 into the whole JobSet, so that an
unknown name is appended; before that Trainer's webhook refuses it. The jobs keep the order of the runtime. What comes
of spec.trainer and the plugins is job_set_builder.py's. Sources: kubeflow/trainer@8c0f5059bd51
pkg/runtime/core/trainingruntime.go mergeRuntimePatches; branches release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.job_set_builder import build
from webhook.facts.train_job_pods.merged_job_set import MergedJobSet
from webhook.facts.train_job_pods.overlays import Layer, Overlay
from webhook.facts.train_job_pods.releases import WHOLE_JOBSET
from webhook.facts.train_job_pods.runtime_reference import Runtime
from webhook.facts.train_job_pods.types import TrainJob
from webhook.patch import strategic
from webhook.problem import Problem
from webhook.releases import Release, shown
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.wording import either

PATCHED_JOB: Final = TRAIN_JOB.rule(
    "train-job/patched-job",
    title="A patch names replicated jobs of the runtime.",
    why=(
        "Trainer 2.2 and older refuse a patch of another job. Since 2.3 it is appended without containers, and JobSet "
        "refuses it."
    ),
    source="https://github.com/kubeflow/trainer/pull/3948",
    fails="controller",
)
PATCHED_CONTAINER: Final = TRAIN_JOB.rule(
    "train-job/patched-container",
    title="A patch names containers of the runtime.",
    why="Another container is appended without an image, so the pods are refused.",
    source="https://github.com/kubeflow/trainer/pull/3948",
    fails="controller",
)
PATCH_MERGES: Final = TRAIN_JOB.rule(
    "train-job/patch-merges",
    title="A patch can be merged into the runtime.",
    why="An item without its merge key, such as a container without a name, cannot be merged.",
    refused_by="Trainer's controller, which cannot create the JobSet",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go",
    function="mergeRuntimePatches",
    fails="controller",
)
LOST_TOLERATION: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/lost-toleration",
    title="A patch with tolerations repeats those of the runtime.",
    why="Tolerations have no merge key, so a patch replaces all of them.",
    fails="pending",
)


def merge(job: TrainJob, layers: Items[Layer], runtime: Runtime, release: Release) -> MergedJobSet:
    """The JobSet of a TrainJob with these patches on a runtime."""
    template, deadline, indexes = runtime.spec.template, job.reading.deadline, strategic.Indexes()
    merged = MergedJobSet(spec=template.spec.json, patched=template.spec)
    merged.describe(template.metadata, ("spec", "runtimeRef"))
    for layer in layers:
        merged.describe(layer.metadata, layer.metadata.path("annotations"))
        _lay(merged, layer, runtime, release, deadline, indexes=indexes)
    merged.spec = _in_order(merged.spec, template.spec.json)
    if merged.spec is not template.spec.json:
        merged.patched = JobSetSpec(merged.spec, template.spec.at, template.spec.reading)
    build(merged, job, runtime, release)
    return merged


def _in_order(spec: JSON, own: JSON) -> JSON:
    """The replicated jobs as the runtime has them in order; those that it does not have come with the first."""
    order = {job.get("name", ""): place for place, job in enumerate(own.get("replicatedJobs", []))}
    jobs = spec.get("replicatedJobs", [])
    return {**spec, "replicatedJobs": sorted(jobs, key=lambda job: order.get(job.get("name", ""), 0))} if jobs else spec


def _lay(
    merged: MergedJobSet,
    layer: Layer,
    runtime: Runtime,
    release: Release,
    deadline: Deadline,
    *,
    indexes: strategic.Indexes,
) -> None:
    """Merge one patch; one that cannot be merged is reported and left out."""
    jobs = merged.spec.get("replicatedJobs", [])
    deadline.spend(len(jobs) // 10)
    jobs_by_name = {job.get("name", ""): job for job in jobs}
    for overlay in layer.overlays:
        before = jobs_by_name.get(overlay.name)
        if before is None:
            merged.unknown.add((overlay.name, ""))
            merged.problems.append(_patched_job(overlay, jobs_by_name, runtime, release))
        else:
            patched = ReplicatedJob(before, (), overlay.job.reading)
            merged.problems.extend(_patched_container(merged, overlay, patched, runtime))
            merged.problems.extend(_lost_toleration(overlay, patched))
    taken = [overlay.job.json for overlay in layer.overlays if release >= WHOLE_JOBSET or overlay.name in jobs_by_name]
    if not taken:
        return
    try:
        merged.spec = strategic.merge(merged.spec, {"replicatedJobs": taken}, "JobSetSpec", deadline, indexes)
    except strategic.Unmergeable as error:
        merged.problems.append(_patch_merges(layer, runtime, error))


def _patch_merges(layer: Layer, runtime: Runtime, error: strategic.Unmergeable) -> Problem:
    where = f"in replicated job `{layer.overlays[0].name}`, " if len(layer.overlays) == 1 else ""
    return PATCH_MERGES.problem(layer.at, f"cannot be merged into {runtime} because {where}{error}", error.fix)


def _patched_job(overlay: Overlay, jobs_by_name: Mapping[str, JSON], runtime: Runtime, release: Release) -> Problem:
    """kubeflow/trainer#3948: the webhook of 2.3 looks at the merged job, which has the unknown one by then."""
    does = "refuses a patch of an unknown job"
    if release >= WHOLE_JOBSET:
        does = "adds a job of this name without containers, which JobSet refuses"
    message = f"is not a replicated job of {runtime}, and Trainer {shown(release)} {does}"
    fix = f"write {either(f'`{name}`' for name in jobs_by_name)}" if jobs_by_name else "remove the patch"
    return PATCHED_JOB.problem(overlay.job.path("name"), message, fix, overlay.name)


def _patched_container(
    merged: MergedJobSet, overlay: Overlay, before: ReplicatedJob, runtime: Runtime
) -> Iterator[Problem]:
    containers = {container.name for container in before.pod.containers} if overlay.pod.containers else ()
    init = {container.name for container in before.pod.init_containers} if overlay.pod.init_containers else ()
    for patch in overlay.pod.all_containers():
        there, what = (init, "an init container") if patch.is_init else (containers, "a container")
        if patch.name and patch.name not in there:
            merged.unknown.add((overlay.name, patch.name))
            of = f"replicated job `{overlay.name}` of {runtime}"
            message = f"is not {what} of {of}, so Trainer adds a new container without an image"
            fix = "write the name of a container that is there"
            yield PATCHED_CONTAINER.problem(patch.path("name"), message, fix, patch.name)


def _lost_toleration(overlay: Overlay, before: ReplicatedJob) -> Iterator[Problem]:
    """Tolerations have no merge key: a patch with any replaces all of the runtime's."""
    if not overlay.pod.has("tolerations"):
        return
    kept = {toleration.key for toleration in overlay.pod.tolerations}
    for lost in before.pod.tolerations:
        if lost.key not in kept and "" not in kept:
            of = f"for `{lost.key}`" if lost.key else "for every key"
            message = f"replaces the whole list, so the runtime's toleration {of} is lost"
            fix = "add that toleration to the patch too, if the pods need it"
            yield LOST_TOLERATION.problem(overlay.pod.path("tolerations"), message, fix)
