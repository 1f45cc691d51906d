"""Rules for MPI runtimes whose launcher is also a node, and whose workers get only a part of spec.trainer.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/mpi.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes import container_named, is_trainer_job, job_named
from webhook.facts.train_job_pods.releases import IMAGE_EVERYWHERE
from webhook.facts.trainer.train_job_launcher import advise_launcher_resources
from webhook.problem import Problem
from webhook.typed.job_sets import ReplicatedJob

WORKER_COMMAND: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/worker-command",
    title="A TrainJob does not replace the command of MPI workers.",
    why="The workers run the SSH server that the launcher connects to.",
    fails="start",
)
WORKER_IMAGE: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/worker-image",
    title="The image of a TrainJob reaches the workers of an MPI runtime since 2.4.",
    why="Before, only the launcher gets it, and the workers keep that of the runtime.",
    source="https://github.com/kubeflow/trainer/issues/4030",
)


def validate_workers(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield fields of spec.trainer that the workers of an MPI runtime do not get, or do not use."""
    worker = job_named(job.replicated_jobs, "node") if job.plugin == "mpi" else None
    if worker is None:
        return
    if is_trainer_job(worker):
        yield from _check_worker_command(job)
    else:
        yield from advise_launcher_resources(job)
        yield from _check_worker_image(job, worker)


def _check_worker_command(job: MergedTrainJob) -> Iterator[Problem]:
    if job.trainer.command:
        message = (
            f"replaces the command of the workers of {job.runtime} too, which run the SSH server that the launcher "
            "connects to"
        )
        label = "trainer.kubeflow.org/trainjob-ancestor-step: trainer"
        fix = f"remove spec.trainer.command, or use a runtime in which the launcher has the label {label}"
        yield WORKER_COMMAND.problem("spec.trainer.command", message, fix)


def _check_worker_image(job: MergedTrainJob, worker: ReplicatedJob) -> Iterator[Problem]:
    node = container_named(worker, "node")
    image = "" if node is None else node.image
    if job.trainer.image not in ("", image) and job.release < IMAGE_EVERYWHERE:
        message = f"reaches only the launcher, so the workers of {job.runtime} keep image `{image}`"
        fix = "use a runtime in which both the launcher and the workers have your image"
        yield WORKER_IMAGE.problem("spec.trainer.image", message, fix)
