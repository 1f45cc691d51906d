"""How many pods each replicated job of a TrainJob gets, and how many processes Trainer starts per node, and why.

The number of pods of a replicated job is its parallelism, or mlPolicy.numNodes for the job with the label of the
trainer. The plugins then put spec.trainer.numNodes into the trainer's job, or for mpi into the job named `node`. So
mlPolicy.numNodes of an mpi runtime is the number of launchers. Trainer sets parallelism and completions of all jobs.
Trainer counts extended resources with `gpu` in their names, but no device claims.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go newRuntimeInfo; pkg/runtime/framework/plugins:
torch/torch.go, mpi/mpi.go, xgboost/xgboost.go, flux/flux.go, jax/jax.go, plainml, and jobset/jobset.go
syncParallelCount; release-2.0 for resourcesPerNode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct, field

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release
from webhook.facts.resource_units import cpu_count
from webhook.facts.train_job_pods.releases import NUMBERS_ONLY, TEMPLATES
from webhook.facts.train_job_pods.types import MLPolicy, Trainer, TrainJob
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.fields import Amount, read_whole_number
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.typed.objects import Metadata
from webhook.typed.pods import Container, Resources

Named = TypeVar("Named", ReplicatedJob, Container)
STEP_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
POD_PATH: Final = ("template", "spec", "template", "spec")
"""The path of the PodSpec in a replicated job."""
RENDEZVOUS_PORT: Final = 29500
"""The port of the first node, to which the other nodes of torch, jax and xgboost connect."""


def step_of_job(job: ReplicatedJob) -> str:
    """Return the step that the label of a replicated job names, "" without the label."""
    return job.template.metadata.labels.get(STEP_LABEL, "")


def is_trainer_job(job: ReplicatedJob) -> bool:
    """Return whether a replicated job has the label of the trainer step."""
    return job.template.metadata.labels.get(STEP_LABEL) == "trainer"


def find_by_name(listed: Iterable[Named], name: str) -> Named | None:
    """Return the first replicated job or container of a name, or None."""
    return next((each for each in listed if each.name == name), None)


def find_trainer_job(jobs: Iterable[ReplicatedJob]) -> ReplicatedJob | None:
    """Return the replicated job with the label of the trainer, or None."""
    return next((job for job in jobs if is_trainer_job(job)), None)


def container_named(job: ReplicatedJob | None, name: str) -> Container | None:
    """Return a container of a replicated job, or None; init containers do not count."""
    return None if job is None else find_by_name(job.pod.containers, name)


def init_container_of(job: ReplicatedJob | None, name: str) -> Container | None:
    """Return an init container of a replicated job, or None."""
    return None if job is None else find_by_name(job.pod.init_containers, name)


def first_node_job(job_set: JobSetSpec) -> ReplicatedJob | None:
    """Return the first replicated job named `node` or labelled as the trainer, preferably with a container `node`."""
    jobs = [job for job in job_set.replicated_jobs if job.name == "node" or is_trainer_job(job)]
    return next((job for job in jobs if container_named(job, "node") is not None), jobs[0] if jobs else None)


def resources_that_trainer_counts(job: TrainJob, job_set: JobSetSpec) -> Resources:
    """Return the resources with the GPUs and CPUs that Trainer counts: resourcesPerNode, or those of container
    `node`.
    """
    resources, node = job.spec.trainer.resources_per_node, container_named(first_node_job(job_set), "node")
    return resources if resources or node is None else node.resources


def node_count(job: TrainJob, policy: MLPolicy, jobs: Sequence[ReplicatedJob]) -> int:
    """Return the number of nodes that train: numNodes of the TrainJob, or the number that the runtime sets."""
    nodes = job.spec.trainer.num_nodes
    if nodes is not None:
        return nodes
    if policy.mpi:
        return _parallelism_of_job(find_by_name(jobs, "node")) + policy.mpi.run_launcher_as_node
    return _parallelism_of_job(find_trainer_job(jobs))


def _parallelism_of_job(job: ReplicatedJob | None) -> int:
    return 1 if job is None else job.parallelism


def count_pods_of_each_job(jobs: Sequence[ReplicatedJob], nodes: int | None, policy: MLPolicy) -> list[int]:
    """Return the number of pods of each replicated job; `nodes` is numNodes of the TrainJob."""
    planned = 1 if policy.num_nodes is None else policy.num_nodes
    pods = [planned if policy and is_trainer_job(job) else job.parallelism for job in jobs]
    pods = [max(count, 1) for count in pods]  # WithPodSet of pkg/runtime/runtime.go
    trains = [job.name == "node" if policy.mpi else is_trainer_job(job) for job in jobs]
    if nodes is not None and True in trains:
        is_launcher_node = policy.mpi.run_launcher_as_node
        pods[trains.index(True)] = max(nodes - 1, 1) if is_launcher_node else nodes
    return pods


class ProcessesPerNode(Struct, frozen=True, kw_only=True):
    """The processes of a node. `per_node` is the text that Trainer sets: a number, `auto` or `gpu`. `count` is the
    number of processes that start, None if it is not known.
    """

    per_node: str
    count: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.per_node} ({self.reason})"


UNKNOWN_PROCESSES = ProcessesPerNode(per_node="", count=None, reason="the runtime is not known")


def predict_processes(trainer: Trainer, policy: MLPolicy, resources: Resources, version: Release) -> ProcessesPerNode:
    """Return the processes per node. `resources` are the resources that Trainer counts."""
    explicit = trainer.num_proc_per_node
    gpus, _ = gpu_count(resources)
    match policy.plugin:
        case "torch":
            default = policy.torch.num_proc_per_node if version < NUMBERS_ONLY else None
            per_node = ("auto" if default is None else default) if explicit is None else explicit
            if version < TEMPLATES:
                return _torch_processes_of_2_0(per_node, trainer.resources_per_node, gpus)
            return _torch_processes(per_node, gpus, resources)
        case "mpi":
            number = policy.mpi.num_proc_per_node
            return _mpi_or_flux_processes("mpi", explicit, number, gpus, gpus_replace_one=version >= TEMPLATES)
        case "flux":
            return _mpi_or_flux_processes("flux", explicit, policy.flux.num_proc_per_node, gpus, gpus_replace_one=False)
        case "xgboost":
            reason = f"xgboost starts one worker per GPU, and Trainer counts {counted(gpus, 'GPU') if gpus else 'none'}"
            return ProcessesPerNode(per_node=str(gpus or 1), count=gpus or 1, reason=reason)
        case name:
            start = "jax starts one process per node" if name == "jax" else "the command is run once per node"
            return ProcessesPerNode(per_node="1", count=1, reason=f"{start}; numProcPerNode is not read")


def _torch_processes_of_2_0(per_node: JSON, resources: Resources, gpus: int) -> ProcessesPerNode:
    """Return the processes with Trainer 2.0, which reads only resourcesPerNode: limits first, then requests."""
    if not resources:
        count = read_whole_number(per_node) or gpus or None
        return ProcessesPerNode(per_node=str(per_node), count=count, reason="torchrun gets the value as written")
    for side, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if resources.has(side) and _are_cpus_counted(per_node, amounts):
            cpus = max(1, cpu_count({"requests": dict(amounts)}))
            return ProcessesPerNode(per_node=str(cpus), count=cpus, reason=f"Trainer 2.0 counts the CPUs in {side}")
    if not resources.has("requests") or per_node == "cpu":
        return ProcessesPerNode(per_node="1", count=1, reason="Trainer 2.0 sets 1 for these resources")
    count = read_whole_number(per_node) or gpus or None
    return ProcessesPerNode(per_node=str(per_node), count=count, reason="torchrun gets the value as written")


def _are_cpus_counted(per_node: JSON, amounts: Mapping[str, Amount]) -> bool:
    if per_node == "auto":
        return not any("gpu" in name.lower() for name in amounts)
    return per_node == "cpu" and "cpu" in amounts


def _torch_processes(per_node: JSON, gpus: int, resources: Resources) -> ProcessesPerNode:
    if (number := read_whole_number(per_node)) is not None:
        return ProcessesPerNode(per_node=str(number), count=number, reason="the value of numProcPerNode")
    if per_node == "gpu" or (per_node == "auto" and gpus):
        reason = f"torchrun starts one process per visible GPU; the resources request {counted(gpus, 'GPU')}"
        return ProcessesPerNode(per_node=str(per_node), count=gpus or None, reason=reason)
    if per_node not in ("auto", "cpu"):
        return ProcessesPerNode(per_node=str(per_node), count=quantity.read_count(per_node), reason="as written")
    if cpus := cpu_count(resources.json):
        return ProcessesPerNode(per_node=str(cpus), count=cpus, reason="one per CPU, because no GPU is counted")
    return ProcessesPerNode(per_node="1", count=1, reason="the resources have no GPU and no CPU")


def _mpi_or_flux_processes(
    name: str, explicit: JSON, default: int | None, gpus: int, *, gpus_replace_one: bool
) -> ProcessesPerNode:
    """Return the processes of the mpi or flux plugin: the number of the TrainJob, otherwise the number of the runtime.

    If `gpus_replace_one` is true, the number of GPUs replaces a 1 of the runtime.
    """
    number = 1 if default is None else default
    if (per_node := read_whole_number(explicit)) is not None:
        return ProcessesPerNode(per_node=str(per_node), count=per_node, reason="the value of numProcPerNode")
    if gpus_replace_one and number == 1 and gpus > 1:
        return ProcessesPerNode(per_node=str(gpus), count=gpus, reason=f"Trainer counts {counted(gpus, 'GPU')}")
    reason = f"the runtime's {name}.numProcPerNode is {number}"
    if number == 1 and not gpus:
        reason += " and no GPU is counted"
    return ProcessesPerNode(per_node=str(number), count=number, reason=reason)


def gpu_count(resources: Resources) -> tuple[int, bool]:
    """Return how many GPUs Trainer counts, and whether resources with `gpu` in their names have different amounts.

    GetNumGPUPerNode of pkg/runtime/runtime.go reads requests before limits, and uses the first name that contains
    `gpu`, in Go's random map order.
    """
    for amounts in (resources.requests, resources.limits):
        gpu_names = [name for name in amounts if "gpu" in name.lower()]
        counts = [
            amount.value()
            for name in gpu_names
            if (amount := quantity.read_quantity_or_none(amounts[name])) is not None
        ]
        if counts and counts[0]:
            return counts[0], len(set(counts)) > 1
    return 0, False


class MergedJobSet(Struct):
    """The JobSet that Trainer would create, and the problems of merging it.

    Args:
        spec: the spec of the JobSet.
        patched: the spec of the runtime with the patches, before Trainer and its plugins change it; paths begin at
            the runtime.
        labels, annotations: labels and annotations of the JobSet.
        annotated: the path of each annotation.
        problems: the problems of parts that were refused, dropped, appended or replaced.
        unknown: pairs of replicated job and container that patches name and the runtime lacks; container "" for the
            whole job.
        lost_claims: claims that the container `node` no longer refers to.
        processes: how many processes start on each node.
    """

    spec: JSON
    patched: JobSetSpec
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    annotated: dict[str, FieldPath] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unknown: set[tuple[str, str]] = field(default_factory=set)
    lost_claims: list[str] = field(default_factory=list)
    processes: ProcessesPerNode = UNKNOWN_PROCESSES

    def add_labels_and_annotations(self, metadata: Metadata, at: FieldPath) -> None:
        """Add labels and annotations of the JobSet, with the path of each annotation. New values replace old values."""
        if not metadata:
            return
        self.labels |= metadata.labels
        self.annotations |= metadata.annotations
        self.annotated |= dict.fromkeys(metadata.annotations, at)
