"""What the operators refuse of the roles of a job, partly long after it was stored.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/webhooks/*/*_webhook.go validateReplicaSpecs and
pkg/apis/kubeflow.org/v1; kubeflow/mpi-operator@caa3c47fc42e pkg/apis/kubeflow/validation/validation.go
validateMPIReplicaSpecs. A container without name or image is refused by the API server, when the pod is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.containers_and_images import validate_containers, validate_names_and_images
from webhook.facts.training_jobs.groups import TRAINING_JOB, TRAINING_JOB_ADVICE
from webhook.facts.training_jobs.training_job import validate_restart_policy
from webhook.facts.training_jobs.typed_job import KINDS, RoleOfJob, TrainingJobOfKind
from webhook.problem import Problem
from webhook.wording import either

ROLES_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/roles-required",
    title="A job has a role.",
    why="A job without roles makes no pods and never ends.",
    function="validateReplicaSpecs",
    fails="controller",
)
ROLE_NAME: Final = TRAINING_JOB.rule(
    "training-job/role-name",
    title="A role is one that the operator knows.",
    why="Roles are told apart by their names, letter by letter. The operator refuses others.",
    function="validateReplicaSpecs",
)
IGNORED_ROLE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/ignored-role",
    title="A role is one that the operator runs and watches.",
    why="The MPI Operator starts no pods of others. For a TFJob they do not count when it succeeds or fails.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/tensorflow/tfjob_controller.go",
    function="UpdateJobStatus",
)


def validate_replica_specs(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Require, as validateReplicaSpecs of each kind does, roles of known names with the containers that are needed."""
    if not job.roles and not job.is_open:
        names = " and ".join(f"`{name}`" for name in KINDS[job.kind].roles or ("Worker",))
        yield ROLES_REQUIRED.problem(
            job.roles_path,
            "must have a role because the job has nothing to run otherwise",
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
    """Report roles that an operator takes, and then does not run or does not watch."""
    for role in job.roles.values():
        if job.is_beta and _is_unknown_role(role, job):
            message, fix = "is ignored by the MPI Operator, so its pods do not start", "use `Launcher` or `Worker`"
        elif job.kind == "TFJob" and role.is_named and role.name.lower() not in _WATCHED:
            message = "is ignored when the operator works out whether the job has succeeded or failed"
            fix = "use `Chief`, `Worker`, `PS` or `Evaluator`"
        else:
            continue
        yield IGNORED_ROLE.problem(role.path, message, fix, role.name)


_WATCHED: Final = frozenset(("ps", "worker", "chief", "master", "evaluator"))
