"""The parameter servers of a TFJob.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/controller.v1/tensorflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.groups import TRAINING_JOB_ADVICE
from webhook.facts.training_jobs.typed_job import TrainingJobOfKind
from webhook.problem import Problem

PARAMETER_SERVER_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/parameter-server-gpus",
    title="Parameter servers have no GPUs.",
    why="They hold and add up weights, and compute on no device.",
    source="https://github.com/kubeflow/fairing/issues/504",
)


def advise_parameter_servers(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of parameter servers of a TFJob with GPUs, which they do not use."""
    servers = job.roles.get("PS") if job.kind == "TFJob" else None
    if servers is not None and servers.gpus:
        message = "requests GPUs, but parameter servers do not use them"
        yield PARAMETER_SERVER_GPUS.problem(servers.template_path, message, "request GPUs only for the workers")
