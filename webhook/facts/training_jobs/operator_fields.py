"""What a role says and its operator overwrites, and amounts of GPUs that are dropped.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/controller.v1/common/pod.go createNewPod and
pkg/controller.v1/{pytorch/envvar.go,xgboost/xgboost.go,tensorflow/tfjob_controller.go}, which append their variables
after those of the container; kubeflow/mpi-operator@caa3c47fc42e pkg/controller newLauncherPodTemplate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.training_jobs.job import Job, problem
from webhook.facts.training_jobs.role import Role
from webhook.paths import render
from webhook.problem import Problem

_OF_MASTER: Final = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
"""Variables of PyTorchJobs and XGBoostJobs that the operator sets where there is a master."""
_VARIABLES: Final[Mapping[str, str]] = {
    "PET_NPROC_PER_NODE": "set spec.nprocPerNode",
    "PET_NNODES": "set elasticPolicy or the replicas",
}


def validate_overwritten(job: Job) -> Iterator[Problem]:
    """Restart policies and variables that the operator writes itself, and amounts that say nothing."""
    owned = _owned(job)
    for role in job.each_role():
        written = _written_policy(role, job)
        if role.pod_restart_policy not in ("", written):
            path = (*role.template, "spec", "restartPolicy")
            fix = f"set {render((*role.path, 'restartPolicy'))} instead"
            message = f"is ignored because the operator writes `{written}`"
            yield problem("pod-restart-policy", path, message, fix, role.pod_restart_policy)
        for name, fix in owned.items():
            if name in role.env:
                message = f"sets variable {name}, which is ignored because the operator sets it too"
                yield problem("operator-variable", role.template, message, fix)
        if role.null_gpus and role.gpus == 0:
            message = f"requests no GPU because `{role.null_gpus[0]}` has no amount and is ignored"
            yield problem("null-amount", role.template, message, "set a number")


def _owned(job: Job) -> Mapping[str, str]:
    """The variables that the operator appends, each with what to do instead; TF_CONFIG where several pods train."""
    if job.kind == "TFJob":
        return {"TF_CONFIG": "remove it"} if job.pods() not in (None, 1) else {}
    has_master = job.kind in ("PyTorchJob", "XGBoostJob") and "Master" in job.roles
    own = _VARIABLES if job.kind == "PyTorchJob" else {}
    return {**own, **dict.fromkeys(_OF_MASTER if has_master else (), "remove it")}


def _written_policy(role: Role, job: Job) -> str:
    """What the operator puts in the pod: ExitCode becomes Never, nothing becomes the default of the kind."""
    if role.restart_policy:
        return "Never" if role.restart_policy == "ExitCode" else role.restart_policy
    is_retried = job.kind in ("PyTorchJob", "PaddleJob") or (job.is_beta and role.name == "Launcher")
    return "OnFailure" if is_retried else "Never"
