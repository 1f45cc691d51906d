"""Rules for the containers of a role: what the operators refuse, variables that they overwrite, and shared memory.

Each operator appends its variables to the variables of the container. Shared memory matters in pods with several GPUs.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/webhooks, pkg/controller.v1/common/pod.go createNewPod and
pkg/controller.v1/{pytorch/envvar.go,pytorch/master.go,xgboost/xgboost.go,tensorflow/tfjob_controller.go,
paddlepaddle/envvar.go,jax/envvar.go}; kubeflow/mpi-operator@caa3c47fc42e pkg/controller newLauncherPodTemplate;
https://github.com/NVIDIA/nccl/issues/525 for shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.storage.shared_memory import MORE_SHARED_MEMORY
from webhook.facts.training_jobs.training_job import check_null_gpu_amounts, validate_pod_restart_policy
from webhook.facts.training_jobs.typed_job import KINDS, RoleOfJob, TrainingJobOfKind
from webhook.facts.training_jobs.types import TRAINING_JOB, TRAINING_JOB_ADVICE
from webhook.rules.problem import Problem

CONTAINERS_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/containers-required",
    title="The role has no containers",
    why="The operator refuses a role without containers.",
    function="validateReplicaSpecs",
)
IMAGE_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/image-required",
    title="The container has no image",
    why="The API server refuses the pods after the job was accepted.",
    function="validateReplicaSpecs",
    fails="controller",
)
CONTAINER_NAME_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/container-name-required",
    title="The container has no name",
    why="The API server refuses the pods after the job was accepted.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateContainerCommon",
    fails="controller",
)
MAIN_CONTAINER: Final = TRAINING_JOB.rule(
    "training-job/main-container",
    title="No container has the name that the operator looks for",
    why="The operator sets the variables of distributed training only in the container with this name.",
    function="validateReplicaSpecs",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1563",
        "https://github.com/kubeflow/trainer/issues/813",
        "https://github.com/NascentCore/3k/issues/401",
    ),
)
OPERATOR_VARIABLE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/operator-variable",
    title="The container sets a variable that the operator overwrites",
    why="The operator adds its own variable after those of the container, and the last value counts.",
    function="setPodEnv",
    severity="low",
)
SHARED_MEMORY: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/shared-memory",
    title="A container with several GPUs has only 64 MiB of shared memory",
    why="NCCL and data loaders need more than the 64 MiB that a container gets, and fail.",
    source="https://github.com/NVIDIA/nccl/issues/525",
    fails="start",
)
_MOST_NAMES: Final = 3
"""Containers that a message names."""
_RENDEZVOUS: Final = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
_OF_TORCH: Final = ("PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK")
_OF_PADDLE: Final = ("PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID")
_OF_JAX: Final = ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")
_OF_LIGHT_GBM: Final = ("WORKER_PORT", "WORKER_ADDRS")
_VARIABLES: Final[Mapping[str, str]] = {
    "PET_NPROC_PER_NODE": "set spec.nprocPerNode instead",
    "PET_NNODES": "set elasticPolicy or the replicas instead",
}


def validate_containers(role: RoleOfJob, job: TrainingJobOfKind) -> Iterator[Problem]:
    """Require containers in the pods of a role, one of them with the name that the operator prepares."""
    main = KINDS[job.kind].container
    if role.is_open:
        return
    if not role.containers:
        wanted = f"a container named `{main}`, which the operator prepares" if main else "a container"
        yield CONTAINERS_REQUIRED.problem(role.containers_path, f"must have {wanted}", "add such a container")
    elif not role.has_main:
        shown = [f"`{container.name}`" for container in role.containers[:_MOST_NAMES]]
        there = " or ".join((*shown, *(["another"] if len(role.containers) > _MOST_NAMES else [])))
        message = f"has no container named `{main}`, the only container that the operator sets up for training"
        yield MAIN_CONTAINER.problem(
            role.containers_path, message, f"rename the container that trains ({there}) to {main}"
        )


def validate_names_and_images(role: RoleOfJob) -> Iterator[Problem]:
    """Require a name and an image of every container of a role."""
    for container in () if role.is_open else role.containers:
        name = container.name
        if not container.image:
            message = "is not set, and no container starts without an image"
            fix = f"set the image of `{name}`" if name else "set an image"
            yield IMAGE_REQUIRED.problem(container.path("image"), message, fix)
        if not name:
            message = "is not set, and Kubernetes refuses a container without a name"
            yield CONTAINER_NAME_REQUIRED.problem(container.path("name"), message, "set a name")


def check_settings_that_operator_overwrites(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report restart policies and variables that the operator writes itself, and amounts without an effect."""
    owned = _variables_of_operator(job)
    for role in job.roles.values():
        yield from validate_pod_restart_policy(role, job)
        for name, fix in owned.items():
            if name in role.env:
                message = f"sets variable {name}, but this value is ignored because the operator sets the variable too"
                yield OPERATOR_VARIABLE.problem(role.template_path, message, fix, words=(name,))
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


def advise_shared_memory(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of several GPUs with the default 64 MiB of /dev/shm (https://github.com/NVIDIA/nccl/issues/525).

    If a role starts one Python process, another rule reports that most of its GPUs are idle. A program that is written
    in the command itself mostly inspects or tests its GPUs.
    """
    for role in job.roles.values():
        is_one_process = role.launch.by == "python" or role.launch.is_inline
        if role.gpus > 1 and not role.shares_memory and not is_one_process:
            message = f"has {role.gpus} GPUs but only 64 MiB of /dev/shm, which is too little for NCCL and data loaders"
            yield SHARED_MEMORY.problem(role.template_path, message, MORE_SHARED_MEMORY)
