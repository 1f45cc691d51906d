"""Computes how many pods each replicated job of a TrainJob gets: Trainer sets parallelism and completions of all.

kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go newRuntimeInfo counts a job as its template's
parallelism, and the one labelled as the trainer as mlPolicy.numNodes; pkg/runtime/framework/plugins then put
spec.trainer.numNodes into the trainer's job, or for mpi into the job named `node`; jobset/jobset.go syncParallelCount
writes the counts. So mlPolicy.numNodes of an mpi runtime is the number of its launchers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from webhook.facts.train_job_pods.types import MLPolicy, TrainJob
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.typed.pods import Container, Resources

STEP_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
POD: Final = ("template", "spec", "template", "spec")
"""The path of the PodSpec in a replicated job."""
PORT: Final = 29500
"""The port at which nodes of torch, jax and xgboost meet."""


def step_of_job(job: ReplicatedJob) -> str:
    """Return the step in a replicated job's label, "" without one."""
    return job.template.metadata.labels.get(STEP_LABEL, "")


def is_trainer_job(job: ReplicatedJob) -> bool:
    """Return whether a replicated job has the label of the trainer step."""
    return step_of_job(job) == "trainer"


def job_named(jobs: Iterable[ReplicatedJob], name: str) -> ReplicatedJob | None:
    """Return the replicated job of a name, or None."""
    return next((job for job in jobs if job.name == name), None)


def find_trainer_job(jobs: Iterable[ReplicatedJob]) -> ReplicatedJob | None:
    """Return the replicated job with the label of the trainer, or None."""
    return next((job for job in jobs if is_trainer_job(job)), None)


def container_named(job: ReplicatedJob | None, name: str) -> Container | None:
    """Return a container of a replicated job, not an init container, or None."""
    return None if job is None else _find_by_name(job.pod.containers, name)


def init_container_of(job: ReplicatedJob | None, name: str) -> Container | None:
    """Return an init container of a replicated job, or None."""
    return None if job is None else _find_by_name(job.pod.init_containers, name)


def _find_by_name(containers: Iterable[Container], name: str) -> Container | None:
    return next((container for container in containers if container.name == name), None)


def first_node_job(job_set: JobSetSpec) -> ReplicatedJob | None:
    """Return the first replicated job named `node` or labelled as the trainer, preferably with a container `node`."""
    jobs = [job for job in job_set.replicated_jobs if job.name == "node" or is_trainer_job(job)]
    return next((job for job in jobs if container_named(job, "node") is not None), jobs[0] if jobs else None)


def resources_that_trainer_counts(job: TrainJob, job_set: JobSetSpec) -> Resources:
    """Return the resources by which Trainer counts: resourcesPerNode, else those of the container `node`."""
    resources, node = job.spec.trainer.resources_per_node, container_named(first_node_job(job_set), "node")
    return resources if resources or node is None else node.resources


def node_count(job: TrainJob, policy: MLPolicy, jobs: Sequence[ReplicatedJob]) -> int:
    """Return the number of nodes that train: of the TrainJob, else of its runtime."""
    nodes = job.spec.trainer.num_nodes
    if nodes is not None:
        return nodes
    if policy.mpi:
        return _parallelism_of_job(job_named(jobs, "node")) + policy.mpi.run_launcher_as_node
    return _parallelism_of_job(find_trainer_job(jobs))


def _parallelism_of_job(job: ReplicatedJob | None) -> int:
    return 1 if job is None else job.parallelism


def count_pods_of_each_job(jobs: Sequence[ReplicatedJob], nodes: int | None, policy: MLPolicy) -> list[int]:
    """Return the pods of each replicated job for a number of nodes of the TrainJob, or None."""
    planned = 1 if policy.num_nodes is None else policy.num_nodes
    pods = [planned if policy and is_trainer_job(job) else job.parallelism for job in jobs]
    pods = [max(count, 1) for count in pods]  # WithPodSet of pkg/runtime/runtime.go
    fits = [job.name == "node" if policy.mpi else is_trainer_job(job) for job in jobs]
    if nodes is not None and True in fits:
        is_launcher_node = policy.mpi.run_launcher_as_node
        pods[fits.index(True)] = max(nodes - 1, 1) if is_launcher_node else nodes
    return pods
