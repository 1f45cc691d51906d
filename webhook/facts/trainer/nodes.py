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


def step(job: JSON) -> str | None:
    """The step that a replicated job's label names."""
    found: str | None = get(job, ("template", "metadata", "labels", STEP_LABEL))
    return found


def is_trainer(job: JSON) -> bool:
    """Whether a replicated job carries the trainer step's label."""
    return step(job) == "trainer"


def launcher_is_node(policy: JSON) -> bool:
    """Whether the launcher of an mpi runtime counts as a node."""
    return get(policy, ("mpi", "runLauncherAsNode")) is True


def parallelism(job: JSON) -> int:
    """The pods of one replica of a replicated job, as its template says."""
    return int(get(job, (*_TEMPLATE, "parallelism"), 1))


def node_count(job: JSON, runtime: JSON) -> int:
    """The nodes that train: what the TrainJob asks for, else what its runtime makes."""
    asked: int | None = get(job, ("spec", "trainer", "numNodes"))
    if asked is not None:
        return asked
    policy, jobs = get(runtime, ("mlPolicy",)), get(runtime, ("template", "spec", "replicatedJobs"), [])
    if get(policy, ("mpi",)) is not None:
        nodes = next((parallelism(each) for each in jobs if get(each, ("name",)) == "node"), 1)
        return nodes + launcher_is_node(policy)
    if policy is not None:
        return _planned(policy)
    return next((parallelism(each) for each in jobs if is_trainer(each)), 1)


def _planned(policy: JSON) -> int:
    return int(get(policy, ("numNodes",), 1))


def counts(jobs: Sequence[JSON], asked: int | None, policy: JSON) -> Iterator[int]:
    """The pods of each replicated job when a TrainJob asks for so many nodes, or for none in particular."""
    own = [_planned(policy) if policy is not None and is_trainer(job) else parallelism(job) for job in jobs]
    is_mpi = get(policy, ("mpi",)) is not None
    fits = [get(job, ("name",)) == "node" if is_mpi else is_trainer(job) for job in jobs]
    if asked is not None and True in fits:
        own[fits.index(True)] = max(asked - 1, 1) if is_mpi and launcher_is_node(policy) else asked
    yield from own


def counted(job: JSON, count: int) -> JSON:
    """A replicated job with so many pods."""
    template = job.get("template", {})
    spec = {**template.get("spec", {}), "parallelism": count, "completions": count}
    return {**job, "template": {**template, "spec": spec}}
