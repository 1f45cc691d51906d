"""Merges a TrainJob with its runtime into the JobSet that the installed release of Trainer would create.

Each object of a request is merged once. Without the runtime, only the fields of the TrainJob are known, and the runtime
is reported as missing. Releases up to 2.2 merge a patch (train_job_patches.py) into the replicated job that the patch
names; Trainer's webhook refuses an unknown name. Since release 2.3, patches are merged into the whole JobSet, so an
unknown name adds a replicated job. The replicated jobs keep the order of the runtime. Resources and numbers of pods are
applied first, then the plugins, then spec.trainer. nodes_and_processes.py counts nodes and processes.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go newRuntimeInfo and mergeRuntimePatches, and
pkg/runtime/framework/plugins/jobset/builder.go, in their order; branches release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release, release_as_text
from webhook.deadline import Deadline
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods import plugins, train_job_patches
from webhook.facts.train_job_pods.nodes_and_processes import (
    MergedJobSet,
    ProcessesPerNode,
    container_named,
    count_pods_of_each_job,
    first_node_job,
    gpu_count,
    node_count,
    predict_processes,
    resources_that_trainer_counts,
)
from webhook.facts.train_job_pods.plugins import (
    PluginInput,
    ReplicatedJobPods,
    apply_flux_plugin,
    cached_unchanged_job_of_runtime,
    pods_of_replicated_job,
    upsert_env,
)
from webhook.facts.train_job_pods.releases import (
    IMAGE_EVERYWHERE,
    KEEPS_CLAIMS,
    WHOLE_JOBSET,
    TrainerInstallation,
    read_trainer_installation,
)
from webhook.facts.train_job_pods.runtimes import ReferencedRuntime, shipped_runtime
from webhook.facts.train_job_pods.train_job_and_runtime_fields import cached_pruned_object, older_release_of_fields
from webhook.facts.train_job_pods.train_job_patches import (
    PatchLayer,
    check_lost_toleration,
    check_patched_containers_exist,
    ignored_resources_problem,
    lost_claim_problem,
    read_patches,
    unknown_patched_job_problem,
    unmergeable_patch_problem,
)
from webhook.facts.train_job_pods.types import (
    ClusterTrainingRuntime,
    MLPolicy,
    RuntimeRef,
    Trainer,
    TrainingRuntime,
    TrainJob,
    TrainJobSpec,
)
from webhook.facts.view import ClusterView
from webhook.patch import strategic
from webhook.rules.problem import MissingObject
from webhook.schema import decode_object
from webhook.text.caches import IdentityKey, TwoGenerationCache, json_bytes
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.typed.pods import Container, Resources
from webhook.typed.view import ReadingContext
from webhook.workloads.podsets import PodSet, group_kind

_STEPS: Final = ("trainer", "dataset-initializer", "model-initializer")
_DECODED: Final[TwoGenerationCache[tuple[IdentityKey, GroupVersionKind], JSON]] = TwoGenerationCache(4 << 20)


def build_job_set(merged: MergedJobSet, job: TrainJob, runtime: ReferencedRuntime, release: Release) -> None:
    """Set `merged.spec` to the spec of the JobSet that Trainer would create."""
    jobs = merged.patched.replicated_jobs
    if not jobs:
        return
    sent_trainer, policy = job.spec.trainer, runtime.spec.ml_policy
    pods_of_jobs = zip(jobs, count_pods_of_each_job(jobs, sent_trainer.num_nodes, policy), strict=True)
    sets = [pods_of_replicated_job(replicated, count) for replicated, count in pods_of_jobs]
    for pods in sets if sent_trainer else ():
        _apply_resources(merged, pods, sent_trainer, runtime, release)
    resources = _resources_that_trainer_counts(sets, sent_trainer)
    merged.processes = predict_processes(sent_trainer, policy, resources, release)
    plugin_input = PluginInput(
        name=job.name or job.metadata.generate_name,
        runtime=runtime.name,
        trainer=sent_trainer.json if sent_trainer else None,
        spec=runtime.spec,
        pod_sets=sets,
        processes=merged.processes,
        resources=resources,
        release=release,
    )
    trainer = _apply_plugins(plugin_input)
    for pods in sets:
        _apply_initializer(pods, job.spec.initializer.json)
        _apply_trainer(pods, trainer, policy, release)
    own = {id(job.json) for job in runtime.replicated_jobs} if runtime.is_of_cluster else frozenset[int]()
    jobs_of_sets = [_build_replicated_job(pods, is_own=id(pods.given) in own) for pods in sets]
    merged.spec = {**merged.spec, **_coordinator_without_zero_values(merged.spec), "replicatedJobs": jobs_of_sets}


def _build_replicated_job(pods: ReplicatedJobPods, *, is_own: bool) -> JSON:
    """Return a replicated job.

    `is_own`: whether a ClusterTrainingRuntime contains the job. If the pod template is also unchanged, the result is
    cached and shared by TrainJobs.
    """
    if not (is_own and pods.is_template_unchanged):
        return pods.build_replicated_job()
    return cached_unchanged_job_of_runtime(IdentityKey(pods.given), pods.count, is_step=pods.job is not pods.given)


def _coordinator_without_zero_values(spec: JSON) -> JSON:
    """Return the coordinator without zero values, which Go leaves out."""
    own = spec.get("coordinator")
    return {} if own is None else {"coordinator": {name: value for name, value in own.items() if value not in (0, "")}}


def _resources_that_trainer_counts(sets: Sequence[ReplicatedJobPods], trainer: Trainer) -> Resources:
    """Return the resources with the GPUs and CPUs that Trainer counts: resourcesPerNode, or those of container
    `node`.
    """
    if trainer.resources_per_node:
        return trainer.resources_per_node
    nodes = [node for pods in sets if pods.name == "node" or pods.step == "trainer" for node in pods.node_containers]
    return Resources(nodes[0].get("resources", {}) if nodes else {}, (), trainer.reading)


def _apply_plugins(plugin_input: PluginInput) -> JSON:
    """Apply the plugins to the pod sets, and return spec.trainer, which some plugins change."""
    trainer = plugin_input.trainer
    match plugin_input.spec.ml_policy.plugin:
        case "torch":
            trainer = plugins.apply_torch_plugin(plugin_input)
        case "jax":
            plugins.apply_jax_plugin(plugin_input)
        case "xgboost":
            plugins.apply_xgboost_plugin(plugin_input)
        case "mpi":
            plugins.apply_mpi_plugin(plugin_input)
        case "flux":
            trainer = apply_flux_plugin(plugin_input)
        case _:
            plugin_input.set_env_of_node_container()  # plainml.go
    plugins.add_pod_group_metadata(plugin_input)
    return trainer


def _apply_resources(
    merged: MergedJobSet, pods: ReplicatedJobPods, trainer: Trainer, runtime: ReferencedRuntime, release: Release
) -> None:
    """Apply resourcesPerNode and resourceClaimsPerNode to a container `node`."""
    policy = runtime.spec.ml_policy
    if pods.step != "trainer" and not _is_mpi_node(pods, policy):
        return
    per_node = trainer.resources_per_node
    if not policy and release >= WHOLE_JOBSET:
        if per_node:
            merged.problems.append(ignored_resources_problem(per_node, runtime))
        return
    for node in pods.node_containers if per_node else ():
        before = node.get("resources", {})
        node["resources"] = _merged_resources(before, per_node.json, release)
        if not node["resources"].get("claims"):  # Trainer keeps all claims, or drops all claims
            for claim in before.get("claims", []):
                merged.lost_claims.append(claim.get("name", ""))
                merged.problems.append(lost_claim_problem(claim.get("name", ""), per_node, release))
    if release >= KEEPS_CLAIMS:
        _add_claims(pods, [claim.json for claim in trainer.resource_claims_per_node])


def _is_mpi_node(pods: ReplicatedJobPods, policy: MLPolicy) -> bool:
    """Return whether a job has the workers of an MPI runtime that also counts the launcher as a node."""
    return pods.name == "node" and policy.mpi.run_launcher_as_node


def _add_claims(pods: ReplicatedJobPods, claims: list[JSON]) -> None:
    """Add resourceClaimsPerNode (KEP-2782) to the pod and to `node`. Added claims replace claims of the same name."""
    if not claims:
        return
    named = [claim.get("name") for claim in claims]
    kept = [claim for claim in pods.pod.get("resourceClaims", []) if claim.get("name", "") not in named]
    pods.pod["resourceClaims"] = [*kept, *claims]
    for node in pods.node_containers:
        resources = node.get("resources", {})
        own = resources.get("claims", [])
        names = {claim.get("name", "") for claim in own}
        added = [{"name": name} for name in named if name not in names]
        node["resources"] = {**resources, "claims": [*own, *added]}


def _merged_resources(own: Mapping[str, Any], asked: Mapping[str, Any], version: Release) -> dict[str, Any]:
    """Merge resourcesPerNode into the resources of a container. Before 2.3, whole limits and requests are replaced.
    Claims are kept only since 2.4.
    """
    sides = ("limits", "requests")
    if version < WHOLE_JOBSET and all(asked.get(side) is None for side in sides):
        return {**own}
    made: dict[str, Any] = {}
    for side in sides:
        theirs = asked.get(side, {})
        amounts = {**own.get(side, {}), **theirs} if version >= WHOLE_JOBSET else theirs
        if amounts:
            made[side] = amounts
    if version >= KEEPS_CLAIMS and own.get("claims"):
        made["claims"] = own["claims"]
    return made


def _apply_initializer(pods: ReplicatedJobPods, initializer: JSON) -> None:
    """Apply spec.initializer to the labelled step (Initializer of builder.go)."""
    name = pods.step
    source = initializer.get(name.removesuffix("-initializer")) if name in _STEPS[1:] else None
    if source is None:
        return
    for container in pods.containers:
        if container.get("name") == name:
            uri = source.get("storageUri")
            upsert_env(container, [*([] if uri is None else [{"name": "STORAGE_URI", "value": uri}])])
            upsert_env(container, source.get("env", []))
            if (secret := source.get("secretRef")) is not None:
                container["envFrom"] = [*container.get("envFrom", []), {"secretRef": {"name": secret.get("name", "")}}]


def _apply_trainer(pods: ReplicatedJobPods, trainer: JSON, policy: MLPolicy, release: Release) -> None:
    """Apply spec.trainer (Trainer of builder.go); since 2.4 the workers of an MPI runtime get the image too."""
    if pods.step in _STEPS:
        pods.job = {**pods.job, "replicas": 1}
    if trainer is None:
        return
    is_step = pods.step == "trainer"
    is_worker = pods.name == "node" and policy.mpi.is_set
    for node in pods.node_containers:
        fields: tuple[str, ...] = ("image", "command", "args") if is_step else ()
        if is_worker and release >= IMAGE_EVERYWHERE:
            fields = fields or ("image",)
        node.update({name: trainer[name] for name in fields if trainer.get(name) is not None})
        if node is not pods.settled and (is_step or _is_mpi_node(pods, policy)):
            upsert_env(node, trainer.get("env", []))


@dataclass(frozen=True, kw_only=True)
class MergedTrainJob:
    """A TrainJob with its runtime and the merged JobSet.

    Args:
        object: the TrainJob without the fields that the release drops; not set if the object is of another kind.
        release: the release of Trainer.
        accepts_claims: whether Trainer's feature gate for device claims is on.
        runtime: the runtime that the TrainJob names.
        layers: the patches of the TrainJob, in order.
        merged: the JobSet that Trainer would create, and the problems of the merge.
        missing: the objects that could not be looked up, such as the runtime.
    """

    object: TrainJob
    release: Release
    accepts_claims: bool
    runtime: ReferencedRuntime
    layers: Items[PatchLayer]
    merged: MergedJobSet
    missing: tuple[MissingObject, ...] = ()

    @property
    def spec(self) -> TrainJobSpec:
        """Return the spec of the TrainJob."""
        return self.object.spec

    @property
    def trainer(self) -> Trainer:
        """Return `spec.trainer`."""
        return self.object.spec.trainer

    @cached_property
    def env_paths_by_name(self) -> Mapping[str, FieldPath]:
        """Return the path of the first variable of each name in `spec.trainer.env`."""
        places: dict[str, FieldPath] = {}
        for variable in self.trainer.env:
            places.setdefault(variable.name, variable.at)
        return places

    @property
    def processes(self) -> ProcessesPerNode:
        """Return how many processes start on each node."""
        return self.merged.processes

    @cached_property
    def number_of_nodes(self) -> int:
        """Return the number of nodes that train."""
        return node_count(self.object, self.runtime.spec.ml_policy, self.replicated_jobs) if self.object else 0

    @cached_property
    def plugin(self) -> str:
        """Return the plugin of the runtime, "" if it is not known."""
        return self.runtime.spec.ml_policy.plugin if self.runtime.is_found else ""

    @cached_property
    def job_set(self) -> JobSetSpec:
        """Return the spec of the JobSet that Trainer would create."""
        return JobSetSpec(self.merged.spec, (), self.object.reading)

    @property
    def replicated_jobs(self) -> Items[ReplicatedJob]:
        """Return the replicated jobs of the JobSet that Trainer would create."""
        return self.job_set.replicated_jobs

    @cached_property
    def node_job(self) -> ReplicatedJob | None:
        """Return the replicated job with the `node` container that Trainer reads."""
        return first_node_job(self.job_set)

    @cached_property
    def node_container(self) -> Container | None:
        """Return the container `node` that trains, as Trainer would create it."""
        return container_named(self.node_job, "node")

    def path_for_runtime_problem(self, *, is_own: bool) -> str:
        """Return the path in the TrainJob at which a problem of the merged JobSet is reported.

        Args:
            is_own: whether the runtime itself has the problem. Then no patch is the cause.

        Returns: the path of spec.runtimeRef, or of the field with all patches, as text.
        """
        patches = train_job_patches.name_of_patches_field(self.release)
        return f"spec.{patches}" if self.is_patched and not is_own else "spec.runtimeRef"

    @property
    def is_patched(self) -> bool:
        """Return whether the TrainJob has patches that the release reads."""
        return bool(self.spec.json.get(train_job_patches.name_of_patches_field(self.release)))

    @property
    def scheduler(self) -> str:
        """Return the gang scheduler of the pods: `volcano`, `coscheduling`, or "" without a gang scheduler."""
        return next(iter(self.runtime.spec.pod_group_policy.schedulers), "")

    @cached_property
    def counted_gpus(self) -> tuple[int, bool]:
        """Return how many GPUs Trainer counts, and whether the count is ambiguous because resources with `gpu` in
        their names have different amounts.
        """
        return gpu_count(resources_that_trainer_counts(self.object, self.job_set))


def merge_train_job(subject: Subject) -> MergedTrainJob:
    """Return the merged TrainJob, which policies with equal assumptions share.

    Call this function through `Subject.once`.
    """
    return _cached_merged_train_job(subject, subject.once(read_trainer_installation))


def merge_train_job_for_pods(subject: Subject) -> MergedTrainJob:
    """Return the merged TrainJob for checks of its pods.

    If the user named no release, a TrainJob with fields that only an older release has is merged as the older release
    does. Otherwise the patches would be dropped, and rules would report their settings as missing. Call this function
    through `Subject.once`.
    """
    older = older_release_of_fields(subject)
    if older is None:
        return subject.once(merge_train_job)
    return _cached_merged_train_job(subject, subject.once(read_trainer_installation)._replace(release=older))


def _cached_merged_train_job(subject: Subject, trainer: TrainerInstallation) -> MergedTrainJob:
    return subject.cluster.once(
        (merge_train_job, IdentityKey(subject.object), trainer), lambda: _merge_train_job(subject, trainer)
    )


def _merge_train_job(subject: Subject, trainer: TrainerInstallation) -> MergedTrainJob:
    is_job = group_kind(subject.object) == TRAIN_JOB
    view, release = subject.cluster_view(), trainer.release
    written = cached_pruned_object(subject.object, "TrainJob", release, view) if is_job else {}
    job = TrainJob(written, (), ReadingContext(view.deadline), is_set=is_job)
    runtime = find_runtime(job.spec.runtime_ref, view, release)
    patches = Items([*read_patches(job, release)], view.deadline)
    nothing = MergedJobSet(spec={}, patched=runtime.spec.template.spec)
    merged = merge_runtime(job, patches, runtime, release) if runtime.is_found else nothing
    return MergedTrainJob(
        object=job,
        release=release,
        accepts_claims=trainer.accepts_claims,
        runtime=runtime,
        layers=patches,
        merged=merged,
        missing=view.all_missing_objects(),
    )


def find_runtime(reference: RuntimeRef, view: ClusterView, release: Release) -> ReferencedRuntime:
    """Return the runtime that a TrainJob names. The view notes a runtime that is missing.

    If files do not contain a ClusterTrainingRuntime, the runtime that this release of Trainer ships under that name is
    assumed.
    """
    is_namespaced, name = reference.kind == TrainingRuntime.gvk.kind, reference.name
    kind = TrainingRuntime if is_namespaced else ClusterTrainingRuntime
    shipped = None if is_namespaced else shipped_runtime(name, release)
    if shipped is not None and view.may_lack(kind.gvk, name):
        runtime = kind(_decode_runtime(shipped, kind.gvk, view.deadline), (), ReadingContext(view.deadline))
        assumed = f"as Trainer {release_as_text(release)} ships it"
        return ReferencedRuntime(
            kind=kind.gvk, name=name, object=runtime, origin=f" (assumed {assumed})", assumed=f"{name} {assumed}"
        )
    held = view.get(kind.gvk, name, namespaced=is_namespaced) if name else None
    decoded = {} if held is None else _decode_runtime(held, kind.gvk, view.deadline)
    runtime = kind(decoded, (), ReadingContext(view.deadline), is_set=held is not None)
    return ReferencedRuntime(kind=kind.gvk, name=name, object=runtime, origin=view.file_of_object_as_text(held))


def _decode_runtime(runtime: JSON, kind: GroupVersionKind, deadline: Deadline) -> JSON:
    """Return a decoded runtime, cached until the object in the cluster is replaced."""
    key = IdentityKey(runtime), kind
    decoded = _DECODED.get(key, None)
    if decoded is None:
        decoded = decode_object(runtime, kind, deadline).value or {}
        _DECODED.put(key, decoded, 2 * json_bytes(runtime, _DECODED.largest_entry_bytes))
    return decoded


def runtime_podsets(job: MergedTrainJob) -> tuple[PodSet, ...]:
    """Return the pod sets of the merged JobSet, with the path of the TrainJob's reference to the runtime."""
    return tuple(
        PodSet(
            name=replicated.name,
            path=("spec", "runtimeRef"),
            template=replicated.pod_template.json,
            count=replicated.replicas * replicated.parallelism,
            elsewhere=True,
        )
        for replicated in job.replicated_jobs
        if replicated.pod_template
    )


def merge_runtime(
    job: TrainJob, layers: Items[PatchLayer], runtime: ReferencedRuntime, release: Release
) -> MergedJobSet:
    """Return the JobSet of a TrainJob: the runtime with the patches, and then Trainer's own changes."""
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
    """Return the spec with its replicated jobs in the runtime's order. New jobs sort like the runtime's first job."""
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
    """Merge one patch. A patch that cannot be merged is reported and left out."""
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
