"""The patches of a TrainJob for replicated jobs, and the rules for patches and resourcesPerNode on the runtime.

Kubeflow Trainer changed the form of patches: podSpecOverrides of named jobs in 2.0, podTemplateOverrides of named jobs
in 2.1, runtimePatches since 2.2. A patch may name jobs or containers that the runtime does not have, or set variables
that Trainer refuses. Tolerations of a patch replace the tolerations of the runtime. resourcesPerNode may have no
effect, or drop claims.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go mergeRuntimePatches and
pkg/runtime/framework/plugins/jobset/{jobset,builder}.go; branches release-2.0 to release-2.3
pkg/apis/trainer/v1alpha1/trainjob_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release, release_as_text
from webhook.facts.train_job_pods.nodes_and_processes import MergedJobSet
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES, WHOLE_JOBSET
from webhook.facts.train_job_pods.runtimes import ReferencedRuntime
from webhook.facts.train_job_pods.types import TRAIN_JOB, TRAIN_JOB_ADVICE, TargetJob, TrainJob, TrainJobSpec
from webhook.patch import strategic
from webhook.rules.problem import Problem
from webhook.text.wording import either
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.typed.objects import Metadata
from webhook.typed.pods import PodSpec, Resources

PATCHED_JOB: Final = TRAIN_JOB.rule(
    "train-job/patched-job",
    title="The patch names a replicated job that the runtime does not have",
    why=(
        "Trainer 2.2 and older refuse the patch. Since 2.3 Trainer adds a job without containers, which JobSet refuses."
    ),
    source="https://github.com/kubeflow/trainer/pull/3948",
    fails="controller",
)
PATCHED_CONTAINER: Final = TRAIN_JOB.rule(
    "train-job/patched-container",
    title="The patch names a container that the runtime does not have",
    why="Trainer adds a container without an image, so the API server refuses the pods.",
    source="https://github.com/kubeflow/trainer/pull/3948",
    fails="controller",
)
PATCH_MERGES: Final = TRAIN_JOB.rule(
    "train-job/patch-merges",
    title="The patch cannot be merged into the runtime",
    why="An item without its merge key, such as a container without a name, cannot be merged.",
    refused_by="Trainer's controller, which cannot create the JobSet",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go",
    function="mergeRuntimePatches",
    fails="controller",
)
PATCHED_ENV: Final = TRAIN_JOB.rule(
    "train-job/patched-env",
    title="The patch sets env of container node, dataset-initializer or model-initializer",
    why="Trainer refuses these variables in a patch. Their place is spec.trainer.env or the env of the initializer.",
    function="Validate of plugins/jobset/jobset.go",
)
IGNORED_RESOURCES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ignored-resources",
    title="resourcesPerNode has no effect because the runtime has no mlPolicy",
    why="Since 2.3 Trainer ignores resourcesPerNode if the runtime has no mlPolicy.",
)
LOST_CLAIM: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/lost-claim",
    title="resourcesPerNode removes the claims of the container",
    why=(
        "Before 2.4 Trainer rebuilds the resources of the container without its claims. The pods get devices, but no "
        "container sees them."
    ),
    source="https://github.com/kubeflow/trainer/pull/4027",
)
LOST_TOLERATION: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/lost-toleration",
    title="The patch removes tolerations of the runtime",
    why="Tolerations have no merge key, so a patch replaces all tolerations.",
    fails="pending",
)
_STEPS: Final = {
    "node": "spec.trainer.env",
    "dataset-initializer": "spec.initializer.dataset.env",
    "model-initializer": "spec.initializer.model.env",
}
"""For each step's container, the field of a TrainJob that sets its variables."""


def unmergeable_patch_problem(
    layer: PatchLayer, runtime: ReferencedRuntime, error: strategic.UnmergeableError
) -> Problem:
    """Return the problem of a patch that cannot be merged."""
    where = f"in replicated job `{layer.overlays[0].name}`, " if len(layer.overlays) == 1 else ""
    return PATCH_MERGES.problem(layer.at, f"cannot be merged into {runtime} because {where}{error}", error.fix)


def unknown_patched_job_problem(
    overlay: JobOverlay, jobs_by_name: Mapping[str, JSON], runtime: ReferencedRuntime, release: Release
) -> Problem:
    """Return the problem of a patch for an unknown job (kubeflow/trainer#3948)."""
    reaction = "refuses a patch of an unknown job"
    if release >= WHOLE_JOBSET:
        reaction = "adds a job of this name without containers, which JobSet refuses"
    message = f"is not a replicated job of {runtime}, and Trainer {release_as_text(release)} {reaction}"
    fix = f"write {either(f'`{name}`' for name in jobs_by_name)}" if jobs_by_name else "remove the patch"
    return PATCHED_JOB.problem(overlay.job.path("name"), message, fix, overlay.name)


def check_patched_containers_exist(
    merged: MergedJobSet, overlay: JobOverlay, before: ReplicatedJob, runtime: ReferencedRuntime
) -> Iterator[Problem]:
    """Yield containers in a patch that the replicated job does not have, and note them in `merged.unknown`."""
    containers = {container.name for container in before.pod.containers}
    init = {container.name for container in before.pod.init_containers}
    for patch in overlay.pod.all_containers():
        names_of_list, elsewhere, what = (
            (init, containers, "an init container") if patch.is_init else (containers, init, "a container")
        )
        if patch.name and patch.name not in names_of_list:
            merged.unknown.add((overlay.name, patch.name))
            job_text = f"replicated job `{overlay.name}` of {runtime}"
            message = f"is not {what} of {job_text}, so Trainer adds a new container without an image"
            fix = f"write the name of {what} of the runtime"
            if patch.name in elsewhere:
                fix = f"move the entry to {'containers' if patch.is_init else 'initContainers'}"
            yield PATCHED_CONTAINER.problem(patch.path("name"), message, fix, patch.name)


def check_patched_env(overlay: JobOverlay) -> Iterator[Problem]:
    """Yield variables in a patch for the container of a step."""
    for container in overlay.pod.containers:
        if container.name in _STEPS and container.env:
            message = f"must not be set because Trainer refuses variables of container `{container.name}` in a patch"
            fix = f"set the variables in {_STEPS[container.name]}"
            yield PATCHED_ENV.problem(container.path("env"), message, fix)


def ignored_resources_problem(asked: Resources, runtime: ReferencedRuntime) -> Problem:
    """Return the problem of resourcesPerNode under a runtime without mlPolicy."""
    message = f"is ignored by Trainer {release_as_text(WHOLE_JOBSET)} and later because {runtime} has no mlPolicy"
    return IGNORED_RESOURCES.problem(
        asked.at, message, "use a runtime with an mlPolicy, or set spec.mlPolicy.numNodes in this runtime"
    )


def lost_claim_problem(claim: str, asked: Resources, release: Release) -> Problem:
    """Report that resourcesPerNode drops a claim of the runtime (kubeflow/trainer#4027)."""
    message = (
        f"makes Trainer {release_as_text(release)} leave out claim `{claim}` from the resources of container "
        "`node`, so the "
        "container cannot use the devices of the claim"
    )
    return LOST_CLAIM.problem(
        asked.at, message, "remove resourcesPerNode, and use a runtime with the claim and these resources"
    )


def check_lost_toleration(overlay: JobOverlay, before: ReplicatedJob) -> Iterator[Problem]:
    """Yield tolerations of the runtime that a patch replaces, because tolerations have no merge key."""
    if not overlay.pod.has("tolerations"):
        return
    kept = {toleration.key for toleration in overlay.pod.tolerations}
    for lost in before.pod.tolerations:
        if lost.key not in kept and "" not in kept:
            keys = f"for `{lost.key}`" if lost.key else "for every key"
            message = f"replaces the whole list, so the runtime's toleration {keys} is lost"
            fix = "add that toleration to the patch too, if the pods need it"
            yield LOST_TOLERATION.problem(overlay.pod.path("tolerations"), message, fix)


class JobOverlay(NamedTuple):
    """The patch of one replicated job: a partial job and a partial PodSpec. The path of the PodSpec may be outside
    the partial job.
    """

    job: ReplicatedJob
    pod: PodSpec

    @property
    def name(self) -> str:
        """Return the name of the replicated job."""
        return self.job.name


class PatchLayer(NamedTuple):
    """One patch of a TrainJob: its overlays, its path, and its metadata for the whole JobSet."""

    overlays: Items[JobOverlay]
    at: FieldPath
    metadata: Metadata


def name_of_patches_field(version: Release) -> str:
    """Return the name of the field with the patches in a TrainJob of this release."""
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
    """Return a partial job without the empty lists of its PodSpec, which `omitempty` drops before the merge."""
    pod = job.pod.json
    kept = {name: value for name, value in pod.items() if value != []}
    if len(kept) == len(pod):
        return job
    pods = {**job.pod_template.json, "spec": kept}
    template = {**job.template.json, "spec": {**job.template.spec.json, "template": pods}}
    return ReplicatedJob({**job.json, "template": template}, job.at, job.reading)


def _overlays_of_pod_template_overrides(spec: TrainJobSpec) -> Iterator[tuple[FieldPath, Items[JobOverlay]]]:
    """Yield for each override of 2.1 the path of the override, and an overlay for each target job."""
    for override in spec.pod_template_overrides:
        template = {name: value for name, value in override.json.items() if name != "targetJobs"}
        overlays = [_overlay_of_override(template, target, override.spec) for target in override.target_jobs]
        yield override.at, Items(overlays, spec.reading.deadline)


def _overlays_of_pod_spec_overrides(spec: TrainJobSpec) -> Iterator[tuple[FieldPath, Items[JobOverlay]]]:
    """Yield for each override of 2.0, which is a PodSpec, the path of the override, and an overlay for each target
    job.
    """
    for override in spec.pod_spec_overrides:
        pod_spec = {name: value for name, value in override.json.items() if name != "targetJobs"}
        pod = PodSpec(pod_spec, override.at, override.reading)
        overlays = [_overlay_of_override({"spec": pod_spec}, target, pod) for target in override.target_jobs]
        yield override.at, Items(overlays, spec.reading.deadline)


def _overlay_of_override(template: JSON, target: TargetJob, pod: PodSpec) -> JobOverlay:
    job = {"name": target.name, "template": {"spec": {"template": template}}}
    return JobOverlay(ReplicatedJob(job, target.at, target.reading), pod)
