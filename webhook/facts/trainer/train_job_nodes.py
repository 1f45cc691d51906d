"""Rules for the number of nodes of a TrainJob.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes import find_trainer_job, job_named
from webhook.facts.train_job_pods.releases import FLUX_NODES
from webhook.facts.trainer.train_job import NODES
from webhook.facts.trainer.train_job_launcher import is_launcher_node
from webhook.facts.trainer.train_job_steps import (
    fields_without_container,
    is_num_nodes_ignored,
    reason_for_missing_node_container,
)
from webhook.problem import Problem
from webhook.releases import release_as_text

NO_NODES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-nodes",
    title="A TrainJob that is not suspended has at least one node.",
    why="With numNodes 0 no training pod is made.",
    source="https://github.com/kubeflow/trainer/issues/2170",
    severity="low",
)
TRAIN_JOB_FLUX_NODES: Final = TRAIN_JOB.rule(
    "train-job/flux-nodes",
    title="A TrainJob of flux says numNodes before 2.4.",
    why="The flux plugin crashes without it and is started again and again.",
    refused_by="Trainer's controller, which crashes",
    source="https://github.com/kubeflow/trainer/issues/3667",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/3904",),
)
EXTRA_NODE: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/extra-node",
    title="One node of an MPI runtime whose launcher is a node is two.",
    why="There is at least one worker besides the launcher, and both need devices.",
    source="https://github.com/kubeflow/trainer/issues/3954",
)
IGNORED_NODES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ignored-nodes",
    title="numNodes needs a runtime with a trainer step.",
    why="Trainer writes the number into the replicated job that is labelled as the trainer.",
)


def check_num_nodes_not_zero(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of numNodes 0, which Trainer accepts (kubeflow/trainer#2170)."""
    if job.trainer.num_nodes == 0 and not job.spec.suspend:
        message = "makes a job without a training pod"
        fix = "set at least 1, or suspend the job with spec.suspend"
        yield NO_NODES.problem("spec.trainer.numNodes", message, fix, 0)


def validate_flux_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a flux TrainJob without numNodes (kubeflow/trainer#3667)."""
    if job.plugin == "flux" and job.release < FLUX_NODES and job.trainer.num_nodes is None:
        message = (
            f"must be set because the flux plugin of Trainer {release_as_text(job.release)} crashes without numNodes"
        )
        yield TRAIN_JOB_FLUX_NODES.problem(NODES, message, f"set numNodes, such as to {job.number_of_nodes}")


def check_launcher_as_second_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of numNodes 1 that becomes two nodes, because the launcher is one, too
    (kubeflow/trainer#3954).
    """
    worker = job_named(job.replicated_jobs, "node")
    has_worker = worker is not None and find_trainer_job(job.replicated_jobs) is not worker
    if job.trainer.num_nodes == 1 and has_worker and is_launcher_node(job):
        message = (
            f"starts 2 nodes, each with its devices, because {job.runtime} runs the launcher as a node beside a worker"
        )
        fix = "set 2, which starts the same nodes, or use a runtime whose launcher is not a node"
        yield EXTRA_NODE.problem("spec.trainer.numNodes", message, fix, 1)


def validate_ignored_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield numNodes that no replicated job gets."""
    if is_num_nodes_ignored(job) and not fields_without_container(job):
        message = f"is ignored because {reason_for_missing_node_container(job, None)}"
        yield IGNORED_NODES.problem("spec.trainer.numNodes", message, "use a runtime with a trainer step")
