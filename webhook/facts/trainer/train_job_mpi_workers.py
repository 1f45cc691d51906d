"""The nodes of an MPI runtime: a launcher that is a node, too, and workers that get only a part of spec.trainer.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/mpi.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes import container_of, is_trainer, job_named, trainer_step
from webhook.facts.train_job_pods.releases import IMAGE_EVERYWHERE
from webhook.problem import Problem
from webhook.typed.job_sets import ReplicatedJob

WORKER_COMMAND: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/worker-command",
    title="A TrainJob does not replace the command of MPI workers.",
    why="The workers run the SSH server that the launcher connects to.",
    fails="start",
)
LAUNCHER_RESOURCES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/launcher-resources",
    title="resourcesPerNode reaches the workers of an MPI runtime only where the launcher is a node.",
    why="The launcher is the trainer step, so only the launcher gets the resources.",
    source="https://github.com/kubeflow/trainer/issues/2650",
)
WORKER_IMAGE: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/worker-image",
    title="The image of a TrainJob reaches the workers of an MPI runtime since 2.4.",
    why="Before, only the launcher gets it, and the workers keep that of the runtime.",
    source="https://github.com/kubeflow/trainer/issues/4030",
)
LAUNCHER_AS_NODE: Final = TRAIN_JOB.rule(
    "train-job/launcher-as-node",
    title="A launcher that is a node needs the replicated jobs `launcher` and `node` for several nodes.",
    why="The mpi plugin refuses more than one node otherwise.",
    function="Validate of plugins/mpi/mpi.go",
)
EXTRA_NODE: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/extra-node",
    title="One node of an MPI runtime whose launcher is a node is two.",
    why="There is at least one worker besides the launcher, and both need devices.",
    source="https://github.com/kubeflow/trainer/issues/3954",
)


def validate_launcher_as_node(job: MergedTrainJob) -> Iterator[Problem]:
    """mpi.go: a launcher that is a node needs both jobs for several nodes."""
    nodes = job.trainer.num_nodes
    for name in ("launcher", "node") if nodes is not None and nodes > 1 and _is_launcher_node(job) else ():
        if job_named(job.jobs, name) is None:
            message = f"must be 1 because {job.runtime} runs the launcher as a node and has no replicated job `{name}`"
            yield LAUNCHER_AS_NODE.problem("spec.trainer.numNodes", message, "set 1, or use another runtime", nodes)


def validate_extra_node(job: MergedTrainJob) -> Iterator[Problem]:
    """kubeflow/trainer#3954: with a worker beside such a launcher, one node is two."""
    worker = job_named(job.jobs, "node")
    has_worker = worker is not None and trainer_step(job.jobs) is not worker
    if job.trainer.num_nodes == 1 and has_worker and _is_launcher_node(job):
        message = (
            f"starts 2 nodes, each with its devices, because {job.runtime} runs the launcher as a node beside a worker"
        )
        fix = "set 2, which starts the same nodes, or use a runtime whose launcher is not a node"
        yield EXTRA_NODE.problem("spec.trainer.numNodes", message, fix, 1)


def _is_launcher_node(job: MergedTrainJob) -> bool:
    return job.plugin == "mpi" and job.runtime.spec.ml_policy.mpi.run_launcher_as_node


def validate_workers(job: MergedTrainJob) -> Iterator[Problem]:
    """What of spec.trainer the workers of an MPI runtime do not get, or get in vain."""
    worker = job_named(job.jobs, "node") if job.plugin == "mpi" else None
    if worker is None:
        return
    if is_trainer(worker):
        yield from _worker_command(job)
    else:
        yield from _launcher_resources(job)
        yield from _worker_image(job, worker)


def _worker_command(job: MergedTrainJob) -> Iterator[Problem]:
    if job.trainer.command:
        message = (
            f"replaces the command of the workers of {job.runtime} too, which run the SSH server that the launcher "
            "connects to"
        )
        label = "trainer.kubeflow.org/trainjob-ancestor-step: trainer"
        fix = f"remove spec.trainer.command, or use a runtime in which the launcher has the label {label}"
        yield WORKER_COMMAND.problem("spec.trainer.command", message, fix)


def _launcher_resources(job: MergedTrainJob) -> Iterator[Problem]:
    resources = job.trainer.resources_per_node
    if resources and not job.runtime.spec.ml_policy.mpi.run_launcher_as_node:
        message = f"reaches only the launcher of {job.runtime}, so the workers keep the resources of the runtime"
        fix = "remove resourcesPerNode, and use a runtime whose workers request these resources"
        yield LAUNCHER_RESOURCES.problem(resources.at, message, fix)


def _worker_image(job: MergedTrainJob, worker: ReplicatedJob) -> Iterator[Problem]:
    node = container_of(worker, "node")
    image = "" if node is None else node.image
    if job.trainer.image not in ("", image) and job.release < IMAGE_EVERYWHERE:
        message = f"reaches only the launcher, so the workers of {job.runtime} keep image `{image}`"
        fix = "use a runtime in which both the launcher and the workers have your image"
        yield WORKER_IMAGE.problem("spec.trainer.image", message, fix)
