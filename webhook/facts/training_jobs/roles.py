"""Rules for the roles of a job: names, replicas, containers, variables and shared memory.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/webhooks/*/*_webhook.go validateReplicaSpecs,
pkg/apis/kubeflow.org/v1, pkg/controller.v1/tensorflow for chief and parameter servers, pkg/controller.v1/common/pod.go
createNewPod and pkg/controller.v1/{pytorch/envvar.go,pytorch/master.go,
xgboost/xgboost.go,tensorflow/tfjob_controller.go,paddlepaddle/envvar.go,jax/envvar.go};
kubeflow/mpi-operator@caa3c47fc42e pkg/apis/kubeflow/validation/validation.go validateMPIReplicaSpecs and pkg/controller
newLauncherPodTemplate; https://github.com/NVIDIA/nccl/issues/525 for shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.launch.commands_of_kinds import PYTORCH_VARIABLES, message_of_overwritten_variables
from webhook.facts.storage.shared_memory import MORE_SHARED_MEMORY
from webhook.facts.training_jobs.training_job import (
    check_null_gpu_amounts,
    validate_pod_restart_policy,
    validate_restart_policy,
)
from webhook.facts.training_jobs.typed_job import KINDS, TRAINING_JOB, TRAINING_JOB_ADVICE, RoleOfJob, TrainingJobOfKind
from webhook.rules.problem import Problem
from webhook.text.wording import either

ROLES_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/roles-required",
    title="The job has no replica role such as Worker",
    why="The operator creates no pods for a job without roles, and the job never ends.",
    function="validateReplicaSpecs",
    fails="controller",
)
ROLE_NAME: Final = TRAINING_JOB.rule(
    "training-job/role-name",
    title="The operator does not know this role",
    why="The operator compares names of roles letter by letter, and refuses unknown names.",
    function="validateReplicaSpecs",
)
IGNORED_ROLE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/ignored-role",
    title="The operator ignores this role",
    why=(
        "The MPI Operator starts no pods of an unknown role. In a TFJob, an unknown role does not count for success "
        "or failure."
    ),
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/tensorflow/tfjob_controller.go",
    function="UpdateJobStatus",
)
ONE_CHIEF: Final = TRAINING_JOB.rule(
    "training-job/one-chief",
    title="The TFJob has both a chief and a master",
    why="Both names mean the same role, and the webhook refuses a job with both.",
    function="validateReplicaSpecs",
)
CHIEF_REPLICAS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/chief-replicas",
    title="The TFJob has more than one chief",
    why="TensorFlow allows one chief. Additional chiefs repeat the work of the first chief.",
    source="https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TFConfigClusterResolver",
)
ONE_MASTER: Final = TRAINING_JOB.rule(
    "training-job/one-master",
    title="The master does not set replicas to 1",
    why="The webhook of Training Operator 1.8 and later checks replicas before the default of 1 is set.",
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
    why="Training Operator 1.9 refuses a role without replicas. Older releases start no pods of the role.",
    function="validateReplicaSpecs",
)
PARAMETER_SERVER_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/parameter-server-gpus",
    title="A parameter server requests GPUs",
    why="Parameter servers store and add up weights and compute nothing on GPUs.",
    source="https://github.com/kubeflow/fairing/issues/504",
)
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
    why="The operator refuses a role without a container of this name, which is the container that trains.",
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
    why="The operator adds its own variable after the variables of the container, and the last value counts.",
    function="setPodEnv",
    severity="low",
)
SHARED_MEMORY: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/shared-memory",
    title="A training job has several GPUs in a container but only 64 MiB of shared memory",
    why="NCCL and data loaders need more than the 64 MiB that a container gets, and fail.",
    source="https://github.com/NVIDIA/nccl/issues/525",
    fails="start",
)
_WATCHED_ROLES: Final = frozenset(("ps", "worker", "chief", "master", "evaluator"))
_MOST_NAMES: Final = 3
"""A message names at most this many containers."""
_TORCH_VARIABLES: Final = ("PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK")
_PADDLE_VARIABLES: Final = ("PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID")
_JAX_VARIABLES: Final = ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")
_LIGHT_GBM_VARIABLES: Final = ("WORKER_PORT", "WORKER_ADDRS")
_VARIABLES: Final[Mapping[str, str]] = {
    "PET_NPROC_PER_NODE": "set spec.nprocPerNode instead",
    "PET_NNODES": "set elasticPolicy or the replicas instead",
}


def validate_replica_specs(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Yield unknown roles, and roles without the needed containers, as validateReplicaSpecs of each kind does."""
    if not job.roles and not job.is_open:
        names = " and ".join(f"`{name}`" for name in KINDS[job.kind].roles or ("Worker",))
        yield ROLES_REQUIRED.problem(
            job.roles_path,
            "has no role, so the job has nothing to run",
            f"add {names}",
        )
    for role in job.roles.values():
        if job.is_beta and role.name not in KINDS[job.kind].roles:
            continue  # the MPI Operator ignores such a role
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
            message, fix = (
                "is ignored by the MPI Operator, so no pods of this role start",
                "rename the role to `Launcher` or `Worker`",
            )
        elif job.kind == "TFJob" and role.is_named and role.name.lower() not in _WATCHED_ROLES:
            message = "is not a role of a TFJob, so the operator does not count its pods for success or failure"
            fix = "rename the role to `Chief`, `Worker`, `PS` or `Evaluator`"
        else:
            continue
        yield IGNORED_ROLE.problem(role.path, message, fix, role.name)


def validate_chief(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Yield the problems of a TFJob that has both Chief and Master, or several replicas of Chief or Master."""
    if job.kind != "TFJob":
        return
    leaders = [role for role in job.roles.values() if role.name in ("Chief", "Master")]
    if len(leaders) > 1:
        message = f"must not be set together with {leaders[1].name} because a TFJob has one chief"
        yield ONE_CHIEF.problem(leaders[0].path, message, "remove Master, the older name of this role")
    for role in leaders:
        if role.replicas is not None and role.replicas > 1:
            message = "must be 1 because TensorFlow allows only one chief"
            yield CHIEF_REPLICAS.problem((*role.path, "replicas"), message, "set 1, and add workers", role.replicas)


def validate_replicas(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check the replicas of roles as the webhooks do, before defaults are set."""
    master = job.roles.get("Master")
    if job.kind in ("PyTorchJob", "XGBoostJob") and master is not None and master.replicas not in (None, 1):
        message = f"must be 1 because {job.kind_with_article} has one master"
        yield ONE_MASTER.problem((*master.path, "replicas"), message, "set 1", master.replicas)
    elif job.kind in ("PyTorchJob", "XGBoostJob") and master is not None and not master.sets_replicas:
        message = (
            "is not set, and the webhook of Training Operator 1.8 and later checks the field before the default of 1 "
            "is set"
        )
        yield ONE_MASTER.problem((*master.path, "replicas"), message, "set 1")
    if job.kind == "XGBoostJob" and master is None and job.roles and not job.is_patch:
        message = "is not set, but the master coordinates the workers"
        yield MASTER_REQUIRED.problem((*job.roles_path, "Master"), message, "add Master with 1 replica")
    if job.kind == "PyTorchJob":
        for role in job.roles.values():
            if role.name != "Master" and role.replicas is not None and role.replicas < 1:
                message = "must be at least 1 because Training Operator 1.9 refuses a role without replicas"
                fix = "set 1 or more, or remove the role"
                yield WORKER_REPLICAS.problem((*role.path, "replicas"), message, fix, role.replicas)


def advise_parameter_servers(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of GPUs for the parameter servers of a TFJob."""
    servers = job.roles.get("PS") if job.kind == "TFJob" else None
    if servers is not None and servers.gpus:
        message = "requests GPUs, but parameter servers do not use GPUs"
        yield PARAMETER_SERVER_GPUS.problem(servers.template_path, message, "request GPUs only for the workers")


def validate_containers(role: RoleOfJob, job: TrainingJobOfKind) -> Iterator[Problem]:
    """Require a container in the pods of a role, with the name of the container that the operator prepares."""
    main = KINDS[job.kind].container
    if role.is_open or job.is_patch:
        return
    if not role.containers:
        wanted = f"a container named `{main}`, which the operator prepares" if main else "a container"
        yield CONTAINERS_REQUIRED.problem(role.containers_path, f"must have {wanted}", "add such a container")
    elif not role.has_main:
        shown = [f"`{container.name}`" for container in role.containers[:_MOST_NAMES]]
        names_text = " or ".join((*shown, *(["another"] if len(role.containers) > _MOST_NAMES else [])))
        message = f"has no container named `{main}`, which the operator requires"
        fix = f"rename the container that trains ({names_text}) to {main}"
        yield MAIN_CONTAINER.problem(role.containers_path, message, fix, needs="containers")


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
    """Report restart policies and variables that the operator overwrites, and null amounts of GPUs."""
    owned = _variables_of_operator(job)
    for role in job.roles.values():
        yield from validate_pod_restart_policy(role, job)
        yield from _check_variables_of_operator(role, owned)
        yield from check_null_gpu_amounts(role)


def _check_variables_of_operator(role: RoleOfJob, owned: Mapping[str, str]) -> Iterator[Problem]:
    """Report the variables that the operator sets too: all variables with the same fix in one problem."""
    by_fix: dict[str, list[str]] = {}
    for name, fix in owned.items():
        if name in role.env:
            by_fix.setdefault(fix, []).append(name)
    for fix, names in by_fix.items():
        message = message_of_overwritten_variables(names, "the operator")
        shown_fix = fix.replace("the variable", "the variables") if names[1:] else fix
        yield OPERATOR_VARIABLE.problem(role.template_path, message, shown_fix, words=(names[0],))


def _variables_of_operator(job: TrainingJobOfKind) -> Mapping[str, str]:
    """Return the variables that the operator appends to every container, each with the fix."""
    own = _VARIABLES if job.kind == "PyTorchJob" else {}
    return {**own, **dict.fromkeys(_variables_decided_by_roles(job), "remove the variable")}


def _variables_decided_by_roles(job: TrainingJobOfKind) -> Sequence[str]:
    """Return the variables that the operator computes from the roles, not from fields.

    The operator sets some of these variables only for several pods, or only with a master.
    """
    has_several_pods, has_master = job.count_pods() not in (None, 1), "Master" in job.roles
    match job.kind:
        case "PyTorchJob":
            return (*PYTORCH_VARIABLES, *_TORCH_VARIABLES) if has_master else ()
        case "XGBoostJob":
            return (*PYTORCH_VARIABLES, *(_LIGHT_GBM_VARIABLES if has_several_pods else ())) if has_master else ()
        case "TFJob":
            return ("TF_CONFIG",) if has_several_pods else ()
        case "PaddleJob":
            return _PADDLE_VARIABLES
        case "JAXJob":
            return _JAX_VARIABLES
    return ()


def advise_shared_memory(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of several GPUs with the default 64 MiB of /dev/shm (https://github.com/NVIDIA/nccl/issues/525).

    Roles that start one Python process are left out, because another rule reports their idle GPUs. A program that is
    written in the command itself is left out, because it usually only tests the GPUs.
    """
    for role in job.roles.values():
        is_one_process = role.launch.by == "python" or role.launch.is_inline
        if role.gpus > 1 and not role.shares_memory and not is_one_process:
            message = f"has {role.gpus} GPUs but only 64 MiB of /dev/shm, which is too little for NCCL and data loaders"
            # GPUs that are connected directly need little shared memory
            yield SHARED_MEMORY.problem(role.template_path, message, MORE_SHARED_MEMORY, fails="")
