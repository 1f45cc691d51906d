"""How many replicas the master and the workers of a job have.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/webhooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.groups import TRAINING_JOB
from webhook.facts.training_jobs.typed_job import TrainingJobOfKind
from webhook.problem import Problem

ONE_MASTER: Final = TRAINING_JOB.rule(
    "training-job/one-master",
    title="A PyTorchJob or XGBoostJob says that it has one master.",
    why="The webhook wants the number itself. It looks before the default is filled in.",
    function="validateReplicaSpecs",
)
MASTER_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/master-required",
    title="An XGBoostJob has a master.",
    why="The master coordinates the workers. The webhook refuses a job without one.",
    function="validateReplicaSpecs",
)
WORKER_REPLICAS: Final = TRAINING_JOB.rule(
    "training-job/worker-replicas",
    title="A role of a PyTorchJob has at least one replica.",
    why="The webhook refuses a role without replicas.",
    function="validateReplicaSpecs",
)


def validate_replicas(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check counts of replicas of each kind; the webhooks look before the defaults are filled in."""
    master = job.roles.get("Master")
    if job.kind in ("PyTorchJob", "XGBoostJob") and master is not None and master.replicas not in (None, 1):
        message = f"must be 1 because {job.kind_with_article} has one master"
        yield ONE_MASTER.problem((*master.path, "replicas"), message, "set 1", master.replicas)
    elif job.kind in ("PyTorchJob", "XGBoostJob") and master is not None and not master.is_given:
        message = "must be set because the webhook of the operator reads the field before the default is filled in"
        yield ONE_MASTER.problem((*master.path, "replicas"), message, "set 1")
    if job.kind == "XGBoostJob" and master is None and job.roles:
        message = "must be set because the master coordinates the workers"
        yield MASTER_REQUIRED.problem((*job.roles_path, "Master"), message, "add Master with 1 replica")
    if job.kind == "PyTorchJob":
        for role in job.roles.values():
            if role.name != "Master" and role.replicas is not None and role.replicas < 1:
                message = "must be at least 1 because the operator refuses a role without replicas"
                fix = "set 1 or more, or remove the role"
                yield WORKER_REPLICAS.problem((*role.path, "replicas"), message, fix, role.replicas)
