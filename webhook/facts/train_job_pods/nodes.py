"""How many pods each replicated job of a TrainJob gets: Kubeflow Trainer sets parallelism and completions of them all.

kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go newRuntimeInfo counts a job as its template's
parallelism, and the one labelled as the trainer as mlPolicy.numNodes; pkg/runtime/framework/plugins then put
spec.trainer.numNodes into the trainer's job, or for mpi into the job named `node`; jobset/jobset.go syncParallelCount
writes the counts. So mlPolicy.numNodes of an mpi runtime is the number of its launchers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.attributes import JSON
from webhook.paths import get

STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
_TEMPLATE = ("template", "spec")
POD = ("template", "spec", "template", "spec")
PORT = 29500
"""Where nodes of torch, jax and xgboost meet."""


def step(job: JSON) -> str | None:
    """The step that a replicated job's label names."""
    label: str | None = get(job, ("template", "metadata", "labels", STEP_LABEL))
    return label


def is_trainer(job: JSON) -> bool:
    """Whether a replicated job carries the trainer step's label."""
    return step(job) == "trainer"


def job_named(jobs: Sequence[JSON], name: str) -> JSON:
    """The replicated job of a name, or None."""
    return next((each for each in jobs if name_of(each) == name), None)


def trainer_step(jobs: Sequence[JSON]) -> JSON:
    """The replicated job that is labelled as the trainer, or None."""
    return next((each for each in jobs if is_trainer(each)), None)


def launcher_is_node(policy: JSON) -> bool:
    """Whether the launcher of an mpi runtime counts as a node."""
    return get(policy, ("mpi", "runLauncherAsNode")) is True


def parallelism(job: JSON) -> int:
    """The pods of one replica of a replicated job, as its template says."""
    return int(get(job, (*_TEMPLATE, "parallelism"), 1))


def replicas(job: JSON) -> int:
    """How often a replicated job is made."""
    return int(get(job, ("replicas",), 1))


def node_count(job: JSON, runtime: JSON, jobs: Sequence[JSON]) -> int:
    """The nodes that train: what the TrainJob asks for, else what is made of its runtime."""
    asked: int | None = get(job, ("spec", "trainer", "numNodes"))
    if asked is not None:
        return asked
    policy = get(runtime, ("mlPolicy",))
    if get(policy, ("mpi",)) is not None:
        return next((parallelism(each) for each in jobs if name_of(each) == "node"), 1) + launcher_is_node(policy)
    return next((parallelism(each) for each in jobs if is_trainer(each)), 1)


def _planned(policy: JSON) -> int:
    return int(get(policy, ("numNodes",), 1))


def counts(jobs: Sequence[JSON], asked: int | None, policy: JSON) -> Iterator[int]:
    """The pods of each replicated job when a TrainJob asks for so many nodes, or for none in particular."""
    own = [_planned(policy) if policy is not None and is_trainer(job) else parallelism(job) for job in jobs]
    own = [max(count, 1) for count in own]  # WithPodSet of pkg/runtime/runtime.go
    is_mpi = get(policy, ("mpi",)) is not None
    fits = [get(job, ("name",)) == "node" if is_mpi else is_trainer(job) for job in jobs]
    if asked is not None and True in fits:
        own[fits.index(True)] = max(asked - 1, 1) if is_mpi and launcher_is_node(policy) else asked
    yield from own


def name_of(value: JSON) -> str:
    """The name of a replicated job or a container, "" where it has none."""
    return str(value.get("name") or "") if value else ""


def container_of(job: JSON, name: str, kind: str = "containers") -> JSON:
    """A container of a replicated job, or None."""
    return next((each for each in get(job, (*POD, kind), []) if name_of(each) == name), None)


def node_job(spec: JSON) -> JSON:
    """The first replicated job named `node` or labelled as the trainer, with a container `node` if one has it."""
    jobs = [job for job in get(spec, ("replicatedJobs",), []) if name_of(job) == "node" or is_trainer(job)]
    return next((job for job in jobs if container_of(job, "node") is not None), jobs[0] if jobs else None)


def counted_resources(obj: JSON, spec: JSON) -> JSON:
    """The resources by which Trainer counts: resourcesPerNode, else those of the container `node`."""
    asked = get(obj, ("spec", "trainer", "resourcesPerNode"))
    return asked if asked is not None else get(container_of(node_job(spec), "node"), ("resources",), {})
