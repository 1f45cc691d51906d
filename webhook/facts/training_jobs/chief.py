"""The chief of a TFJob.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/controller.v1/tensorflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.groups import TRAINING_JOB, TRAINING_JOB_ADVICE
from webhook.facts.training_jobs.typed_job import TrainingJobOfKind
from webhook.problem import Problem

ONE_CHIEF: Final = TRAINING_JOB.rule(
    "training-job/one-chief",
    title="A TFJob has one chief or one master.",
    why="Both names mean the same role, and the webhook refuses a job with two.",
    function="validateReplicaSpecs",
)
CHIEF_REPLICAS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/chief-replicas",
    title="A TFJob has one chief.",
    why="TensorFlow takes one chief. The others of this role do what it does a second time.",
    source="https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TFConfigClusterResolver",
)


def validate_chief(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Yield the problem of a TFJob with several chiefs or masters, or several replicas of one."""
    if job.kind != "TFJob":
        return
    leaders = [role for role in job.roles.values() if role.name in ("Chief", "Master")]
    if len(leaders) > 1:
        message = f"must not be set together with {leaders[1].name} because a TFJob has one chief"
        yield ONE_CHIEF.problem(leaders[0].path, message, "remove one of the two")
    for role in leaders:
        if role.replicas is not None and role.replicas > 1:
            message = "must be 1 because TensorFlow allows only one chief"
            yield CHIEF_REPLICAS.problem((*role.path, "replicas"), message, "set 1, and add workers", role.replicas)
