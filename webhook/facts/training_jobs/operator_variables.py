"""What a role says and its operator overwrites, and amounts of GPUs that are dropped.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/controller.v1/common/pod.go createNewPod, and
pkg/controller.v1/{pytorch/envvar.go,pytorch/master.go,xgboost/xgboost.go,tensorflow/tfjob_controller.go,
paddlepaddle/envvar.go,jax/envvar.go}, which append their variables after those of the container;
kubeflow/mpi-operator@caa3c47fc42e pkg/controller newLauncherPodTemplate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.training_jobs.groups import TRAINING_JOB_ADVICE
from webhook.facts.training_jobs.typed_job import Job, Role
from webhook.paths import render
from webhook.problem import Problem

NULL_AMOUNT: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/null-amount",
    title="A GPU is requested with a number.",
    why="An amount that is null is dropped, so the pod starts without a GPU.",
    source=(
        "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting-and-nullable"
    ),
)
POD_RESTART_POLICY: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/pod-restart-policy",
    title="The restart policy stands in the role.",
    why="The operator overwrites that of the pod template.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/common/pod.go",
    function="createNewPod",
    severity="low",
)
OPERATOR_VARIABLE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/operator-variable",
    title="A container does not set the variables of the operator.",
    why="The operator appends its own after those of the container, and the last of a name counts.",
    function="setPodEnv",
    severity="low",
)

_RENDEZVOUS: Final = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
_OF_TORCH: Final = ("PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK")
_OF_PADDLE: Final = ("PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID")
_OF_JAX: Final = ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")
_OF_LIGHT_GBM: Final = ("WORKER_PORT", "WORKER_ADDRS")
_VARIABLES: Final[Mapping[str, str]] = {
    "PET_NPROC_PER_NODE": "set spec.nprocPerNode instead",
    "PET_NNODES": "set elasticPolicy or the replicas instead",
}


def validate_overwritten(job: Job) -> Iterator[Problem]:
    """Restart policies and variables that the operator writes itself, and amounts that say nothing."""
    owned = _owned(job)
    for role in job.roles.values():
        written = _written_policy(role, job)
        if role.pod_restart_policy not in ("", written):
            path = (*role.template, "spec", "restartPolicy")
            fix = f"set {render((*role.path, 'restartPolicy'))} instead"
            message = f"is ignored because the operator writes `{written}`"
            yield POD_RESTART_POLICY.problem(path, message, fix, role.pod_restart_policy)
        for name, fix in owned.items():
            if name in role.env:
                message = f"sets variable {name}, but this value is ignored because the operator sets the variable too"
                yield OPERATOR_VARIABLE.problem(role.template, message, fix)
        if role.null_gpus and role.gpus == 0:
            message = f"requests no GPU because `{role.null_gpus[0]}` has no amount and so is ignored"
            yield NULL_AMOUNT.problem(role.template, message, "set a number of GPUs")


def _owned(job: Job) -> Mapping[str, str]:
    """The variables that the operator appends to every container, each with what to do instead."""
    own = _VARIABLES if job.kind == "PyTorchJob" else {}
    return {**own, **dict.fromkeys(_appended(job), "remove the variable")}


def _appended(job: Job) -> Sequence[str]:
    """Those that the roles decide, and no field; some are set only where several pods train, or with a master."""
    several, has_master = job.pods() not in (None, 1), "Master" in job.roles
    match job.kind:
        case "PyTorchJob":
            return (*_RENDEZVOUS, *_OF_TORCH) if has_master else ()
        case "XGBoostJob":
            return (*_RENDEZVOUS, *(_OF_LIGHT_GBM if several else ())) if has_master else ()
        case "TFJob":
            return ("TF_CONFIG",) if several else ()
        case "PaddleJob":
            return _OF_PADDLE
        case "JAXJob":
            return _OF_JAX
    return ()


def _written_policy(role: Role, job: Job) -> str:
    """What the operator puts in the pod: ExitCode becomes Never, nothing becomes the default of the kind."""
    if role.restart_policy:
        return "Never" if role.restart_policy == "ExitCode" else role.restart_policy
    is_retried = job.kind in ("PyTorchJob", "PaddleJob") or (job.is_beta and role.name == "Launcher")
    return "OnFailure" if is_retried else "Never"
