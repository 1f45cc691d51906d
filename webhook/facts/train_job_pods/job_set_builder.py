"""Builds the JobSet that Trainer creates from a merged runtime: resources, counts, plugins, then spec.trainer.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go newRuntimeInfo and
pkg/runtime/framework/plugins/jobset/builder.go, in their order; branches release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.releases import Release
from webhook.facts.train_job_pods import plugins
from webhook.facts.train_job_pods.nodes_and_processes import MergedJobSet, count_pods_of_each_job, predict_processes
from webhook.facts.train_job_pods.plugins import (
    PluginInput,
    ReplicatedJobPods,
    apply_flux_plugin,
    cached_unchanged_job_of_runtime,
    pods_of_replicated_job,
    upsert_env,
)
from webhook.facts.train_job_pods.releases import IMAGE_EVERYWHERE, KEEPS_CLAIMS, WHOLE_JOBSET
from webhook.facts.train_job_pods.runtimes import ReferencedRuntime
from webhook.facts.train_job_pods.train_job_patches import ignored_resources_problem, lost_claim_problem
from webhook.facts.train_job_pods.types import MLPolicy, Trainer, TrainJob
from webhook.text.caches import IdentityKey
from webhook.typed.pods import Resources

_STEPS: Final = ("trainer", "dataset-initializer", "model-initializer")


def build_job_set(merged: MergedJobSet, job: TrainJob, runtime: ReferencedRuntime, release: Release) -> None:
    """Build the JobSet of a merged runtime."""
    jobs = merged.patched.replicated_jobs
    if not jobs:
        return
    asked, policy = job.spec.trainer, runtime.spec.ml_policy
    pods_of_jobs = zip(jobs, count_pods_of_each_job(jobs, asked.num_nodes, policy), strict=True)
    sets = [pods_of_replicated_job(replicated, count) for replicated, count in pods_of_jobs]
    for pods in sets if asked else ():
        _apply_resources(merged, pods, asked, runtime, release)
    resources = _resources_that_trainer_counts(sets, asked)
    merged.processes = predict_processes(asked, policy, resources, release)
    making = PluginInput(
        name=job.name or job.metadata.generate_name,
        runtime=runtime.name,
        trainer=asked.json if asked else None,
        spec=runtime.spec,
        pod_sets=sets,
        processes=merged.processes,
        resources=resources,
        release=release,
    )
    trainer = _apply_plugins(making)
    for pods in sets:
        _apply_initializer(pods, job.spec.initializer.json)
        _apply_trainer(pods, trainer, policy, release)
    own = {id(job.json) for job in runtime.replicated_jobs} if runtime.is_of_cluster else frozenset[int]()
    jobs_of_sets = [_build_replicated_job(pods, is_own=id(pods.given) in own) for pods in sets]
    merged.spec = {**merged.spec, **_coordinator_without_zero_values(merged.spec), "replicatedJobs": jobs_of_sets}


def _build_replicated_job(of: ReplicatedJobPods, *, is_own: bool) -> JSON:
    """Return a replicated job; an unchanged one of a cluster's runtime (`is_own`) is shared by all TrainJobs."""
    if not (is_own and of.is_template_unchanged):
        return of.build_replicated_job()
    return cached_unchanged_job_of_runtime(IdentityKey(of.given), of.count, is_step=of.job is not of.given)


def _coordinator_without_zero_values(spec: JSON) -> JSON:
    """Return the coordinator without zero values, which Go leaves out."""
    own = spec.get("coordinator")
    return {} if own is None else {"coordinator": {name: value for name, value in own.items() if value not in (0, "")}}


def _resources_that_trainer_counts(sets: Sequence[ReplicatedJobPods], trainer: Trainer) -> Resources:
    """Return the resources by which Trainer counts: resourcesPerNode, or the resources of container `node`."""
    if trainer.resources_per_node:
        return trainer.resources_per_node
    nodes = [node for pods in sets if pods.name == "node" or pods.step == "trainer" for node in pods.node_containers]
    return Resources(nodes[0].get("resources", {}) if nodes else {}, (), trainer.reading)


def _apply_plugins(making: PluginInput) -> JSON:
    """Apply the plugins to the pod sets, and return spec.trainer as they leave it."""
    trainer = making.trainer
    match making.spec.ml_policy.plugin:
        case "torch":
            trainer = plugins.apply_torch_plugin(making)
        case "jax":
            plugins.apply_jax_plugin(making)
        case "xgboost":
            plugins.apply_xgboost_plugin(making)
        case "mpi":
            plugins.apply_mpi_plugin(making)
        case "flux":
            trainer = apply_flux_plugin(making)
        case _:
            making.set_env_of_node_container()  # plainml.go
    plugins.add_pod_group_metadata(making)
    return trainer


def _apply_resources(
    merged: MergedJobSet, of: ReplicatedJobPods, trainer: Trainer, runtime: ReferencedRuntime, release: Release
) -> None:
    """Apply resourcesPerNode and resourceClaimsPerNode to a container `node`."""
    policy = runtime.spec.ml_policy
    if of.step != "trainer" and not _is_mpi_node(of, policy):
        return
    asked = trainer.resources_per_node
    if not policy and release >= WHOLE_JOBSET:
        if asked:
            merged.problems.append(ignored_resources_problem(asked, runtime, release))
        return
    for node in of.node_containers if asked else ():
        before = node.get("resources", {})
        node["resources"] = _merged_resources(before, asked.json, release)
        if not node["resources"].get("claims"):  # they are kept all, or none
            for claim in before.get("claims", []):
                merged.lost_claims.append(claim.get("name", ""))
                merged.problems.append(lost_claim_problem(claim.get("name", ""), asked, runtime, release))
    if release >= KEEPS_CLAIMS:
        _add_claims(of, [claim.json for claim in trainer.resource_claims_per_node])


def _is_mpi_node(of: ReplicatedJobPods, policy: MLPolicy) -> bool:
    """Return whether it is the workers' job of an MPI runtime with a launcher that is a node."""
    return of.name == "node" and policy.mpi.run_launcher_as_node


def _add_claims(of: ReplicatedJobPods, claims: list[JSON]) -> None:
    """Add claims of resourceClaimsPerNode (KEP-2782): each replaces the pod's of its name, and `node` refers to it."""
    if not claims:
        return
    named = [claim.get("name") for claim in claims]
    kept = [claim for claim in of.pod.get("resourceClaims", []) if claim.get("name", "") not in named]
    of.pod["resourceClaims"] = [*kept, *claims]
    for node in of.node_containers:
        resources = node.get("resources", {})
        own = resources.get("claims", [])
        names = {claim.get("name", "") for claim in own}
        added = [{"name": name} for name in named if name not in names]
        node["resources"] = {**resources, "claims": [*own, *added]}


def _merged_resources(own: Mapping[str, Any], asked: Mapping[str, Any], version: Release) -> dict[str, Any]:
    """Return limits and requests merged by key since 2.3, replaced before; claims are kept since 2.4 only."""
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


def _apply_initializer(of: ReplicatedJobPods, initializer: JSON) -> None:
    """Apply spec.initializer to the labelled step (Initializer of builder.go)."""
    name = of.step
    asked = initializer.get(name.removesuffix("-initializer")) if name in _STEPS[1:] else None
    if asked is None:
        return
    for container in of.containers:
        if container.get("name") == name:
            uri = asked.get("storageUri")
            upsert_env(container, [*([] if uri is None else [{"name": "STORAGE_URI", "value": uri}])])
            upsert_env(container, asked.get("env", []))
            if (secret := asked.get("secretRef")) is not None:
                container["envFrom"] = [*container.get("envFrom", []), {"secretRef": {"name": secret.get("name", "")}}]


def _apply_trainer(of: ReplicatedJobPods, trainer: JSON, policy: MLPolicy, release: Release) -> None:
    """Apply spec.trainer (Trainer of builder.go); since 2.4 the workers of an MPI runtime get the image too."""
    if of.step in _STEPS:
        of.job = {**of.job, "replicas": 1}
    if trainer is None:
        return
    is_step = of.step == "trainer"
    is_worker = of.name == "node" and policy.mpi.is_set
    for node in of.node_containers:
        fields: tuple[str, ...] = ("image", "command", "args") if is_step else ()
        if is_worker and release >= IMAGE_EVERYWHERE:
            fields = fields or ("image",)
        node.update({name: trainer[name] for name in fields if trainer.get(name) is not None})
        if node is not of.settled and (is_step or _is_mpi_node(of, policy)):
            upsert_env(node, trainer.get("env", []))
