"""Rules for the roles of a job: which roles a kind has, and how many replicas each may have.

The operators refuse a job partly long after it was stored. The API server refuses a container without name or image
when the pod is created.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/webhooks/*/*_webhook.go validateReplicaSpecs,
pkg/apis/kubeflow.org/v1 and pkg/controller.v1/tensorflow for chief and parameter servers;
kubeflow/mpi-operator@caa3c47fc42e pkg/apis/kubeflow/validation/validation.go validateMPIReplicaSpecs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.containers import validate_containers, validate_names_and_images
from webhook.facts.training_jobs.training_job import validate_restart_policy
from webhook.facts.training_jobs.typed_job import KINDS, RoleOfJob, TrainingJobOfKind
from webhook.facts.training_jobs.types import TRAINING_JOB, TRAINING_JOB_ADVICE
from webhook.rules.problem import Problem
from webhook.text.wording import either

ROLES_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/roles-required",
    title="The job has no role",
    why="A job without roles makes no pods and never ends.",
    function="validateReplicaSpecs",
    fails="controller",
)
ROLE_NAME: Final = TRAINING_JOB.rule(
    "training-job/role-name",
    title="The operator does not know this role",
    why="The operator compares names of roles letter by letter and refuses others.",
    function="validateReplicaSpecs",
)
IGNORED_ROLE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/ignored-role",
    title="The operator ignores this role",
    why="The MPI Operator starts no pods of other roles. In a TFJob other roles do not count for success or failure.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/tensorflow/tfjob_controller.go",
    function="UpdateJobStatus",
)
ONE_CHIEF: Final = TRAINING_JOB.rule(
    "training-job/one-chief",
    title="The TFJob has both a chief and a master",
    why="Both names mean the same role, and the webhook refuses a job with two.",
    function="validateReplicaSpecs",
)
CHIEF_REPLICAS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/chief-replicas",
    title="The TFJob has more than one chief",
    why="TensorFlow allows one chief. Additional chiefs repeat its work.",
    source="https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TFConfigClusterResolver",
)
ONE_MASTER: Final = TRAINING_JOB.rule(
    "training-job/one-master",
    title="The master does not set replicas to 1",
    why="The webhook checks replicas before the default of 1 is set.",
    function="validateReplicaSpecs",
)
MASTER_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/master-required",
    title="The XGBoostJob has no master",
    why="The master coordinates the workers, and the webhook refuses a job without a master.",
    function="validateReplicaSpecs",
)
WORKER_REPLICAS: Final = TRAINING_JOB.rule(
    "training-job/worker-replicas",
    title="A role of the PyTorchJob has no replica",
    why="The webhook refuses a role without replicas.",
    function="validateReplicaSpecs",
)
PARAMETER_SERVER_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/parameter-server-gpus",
    title="A parameter server requests GPUs",
    why="Parameter servers store and add up weights and compute nothing on GPUs.",
    source="https://github.com/kubeflow/fairing/issues/504",
)
_WATCHED: Final = frozenset(("ps", "worker", "chief", "master", "evaluator"))


def validate_replica_specs(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Require, as validateReplicaSpecs of each kind does, roles of known names with the containers that are needed."""
    if not job.roles and not job.is_open:
        names = " and ".join(f"`{name}`" for name in KINDS[job.kind].roles or ("Worker",))
        yield ROLES_REQUIRED.problem(
            job.roles_path,
            "has no role, so the job has nothing to run",
            f"add {names}",
        )
    for role in job.roles.values():
        if job.is_beta and role.name not in KINDS[job.kind].roles:
            continue  # the MPI Operator ignores it
        if _is_unknown_role(role, job):
            yield _unknown_role_problem(role, job)
        else:
            yield from validate_containers(role, job)
        yield from validate_names_and_images(role)
        yield from validate_restart_policy(role, job)


def _is_unknown_role(role: RoleOfJob, job: TrainingJobOfKind) -> bool:
    known = KINDS[job.kind].roles
    return bool(known) and role.is_named and role.name not in known


def _unknown_role_problem(role: RoleOfJob, job: TrainingJobOfKind) -> Problem:
    names = either(f"`{name}`" for name in KINDS[job.kind].roles)
    message = f"must be {names} because {job.kind_with_article} has no other roles"
    return ROLE_NAME.problem(role.path, message, "rename the role", role.name)


def validate_ignored_roles(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report roles that an operator accepts, but then does not run or does not watch."""
    for role in job.roles.values():
        if job.is_beta and _is_unknown_role(role, job):
            message, fix = "is ignored by the MPI Operator, so its pods do not start", "use `Launcher` or `Worker`"
        elif job.kind == "TFJob" and role.is_named and role.name.lower() not in _WATCHED:
            message = "does not count when the operator decides whether the job succeeded or failed"
            fix = "use `Chief`, `Worker`, `PS` or `Evaluator`"
        else:
            continue
        yield IGNORED_ROLE.problem(role.path, message, fix, role.name)


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


def validate_replicas(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check counts of replicas of each kind; the webhooks look before the defaults are filled in."""
    master = job.roles.get("Master")
    if job.kind in ("PyTorchJob", "XGBoostJob") and master is not None and master.replicas not in (None, 1):
        message = f"must be 1 because {job.kind_with_article} has one master"
        yield ONE_MASTER.problem((*master.path, "replicas"), message, "set 1", master.replicas)
    elif job.kind in ("PyTorchJob", "XGBoostJob") and master is not None and not master.is_given:
        message = "is not set, and the webhook of the operator checks the field before the default of 1 is set"
        yield ONE_MASTER.problem((*master.path, "replicas"), message, "set 1")
    if job.kind == "XGBoostJob" and master is None and job.roles:
        message = "is not set, but the master coordinates the workers"
        yield MASTER_REQUIRED.problem((*job.roles_path, "Master"), message, "add Master with 1 replica")
    if job.kind == "PyTorchJob":
        for role in job.roles.values():
            if role.name != "Master" and role.replicas is not None and role.replicas < 1:
                message = "must be at least 1 because the operator refuses a role without replicas"
                fix = "set 1 or more, or remove the role"
                yield WORKER_REPLICAS.problem((*role.path, "replicas"), message, fix, role.replicas)


def advise_parameter_servers(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of parameter servers of a TFJob with GPUs, which they do not use."""
    servers = job.roles.get("PS") if job.kind == "TFJob" else None
    if servers is not None and servers.gpus:
        message = "requests GPUs, but parameter servers do not use them"
        yield PARAMETER_SERVER_GPUS.problem(servers.template_path, message, "request GPUs only for the workers")
