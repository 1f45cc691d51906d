"""Variables of a role that its operator overwrites.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/controller.v1/common/pod.go createNewPod, and
pkg/controller.v1/{pytorch/envvar.go,pytorch/master.go,xgboost/xgboost.go,tensorflow/tfjob_controller.go,
paddlepaddle/envvar.go,jax/envvar.go}, which append their variables after those of the container;
kubeflow/mpi-operator@caa3c47fc42e pkg/controller newLauncherPodTemplate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.training_jobs.groups import TRAINING_JOB_ADVICE
from webhook.facts.training_jobs.training_job import check_null_gpu_amounts, validate_pod_restart_policy
from webhook.facts.training_jobs.typed_job import TrainingJobOfKind
from webhook.problem import Problem

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


def check_settings_that_operator_overwrites(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report restart policies and variables that the operator writes itself, and amounts that say nothing."""
    owned = _variables_of_operator(job)
    for role in job.roles.values():
        yield from validate_pod_restart_policy(role, job)
        for name, fix in owned.items():
            if name in role.env:
                message = f"sets variable {name}, but this value is ignored because the operator sets the variable too"
                yield OPERATOR_VARIABLE.problem(role.template_path, message, fix)
        yield from check_null_gpu_amounts(role)


def _variables_of_operator(job: TrainingJobOfKind) -> Mapping[str, str]:
    """Return the variables that the operator appends to every container, with what to do instead."""
    own = _VARIABLES if job.kind == "PyTorchJob" else {}
    return {**own, **dict.fromkeys(_variables_decided_by_roles(job), "remove the variable")}


def _variables_decided_by_roles(job: TrainingJobOfKind) -> Sequence[str]:
    """Return the variables that roles decide, not fields; some are set only where several pods train, or with a
    master.
    """
    several, has_master = job.count_pods() not in (None, 1), "Master" in job.roles
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
