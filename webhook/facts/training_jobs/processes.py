"""How many processes a PyTorchJob starts, on how many GPUs and nodes, and how many pods torchrun waits for.

The operator sets WORLD_SIZE only if there is a master. If nprocPerNode is a number, WORLD_SIZE is the number of pods
times nprocPerNode.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/controller.v1/pytorch/envvar.go; pytorch/pytorch@010929fd
torch/distributed/run.py determine_local_world_size and parse_min_max_nnodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.facts.training_jobs.autoscaler import max_pods_of_job
from webhook.facts.training_jobs.roles import advise_shared_memory
from webhook.facts.training_jobs.typed_job import (
    PROCESSES_OF_ELASTIC_POLICY,
    TRAINING_JOB,
    TRAINING_JOB_ADVICE,
    RoleOfJob,
    TrainingJobOfKind,
)
from webhook.rules.problem import Problem
from webhook.text.wording import counted

NPROC_VALUE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/nproc-value",
    title="nprocPerNode is neither a number above 0 nor a device kind",
    why="torchrun exits on any other text.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="determine_local_world_size",
    fails="start",
)
MORE_NODES_THAN_PODS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/more-nodes-than-pods",
    title="torchrun waits for more nodes than there are pods",
    why="The missing nodes never come, so the job never begins to train.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="parse_min_max_nnodes",
    fails="waiting",
)
WORLD_SIZE_AS_NODES: Final = TRAINING_JOB.rule(
    "training-job/world-size-as-nodes",
    title="WORLD_SIZE counts processes but is passed as the number of nodes",
    why="With a number in nprocPerNode, WORLD_SIZE is pods times processes. torchrun waits for that many nodes.",
    refused_by="nothing; torchrun waits",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/envvar.go",
    function="setPodEnv",
    fails="waiting",
    issues=("https://github.com/kubeflow/trainer/issues/1790",),
)
WORLD_SIZE_UNSET: Final = TRAINING_JOB.rule(
    "training-job/world-size-unset",
    title="torchrun gets $(WORLD_SIZE), which a job without a master does not set",
    why="The operator sets WORLD_SIZE only in jobs with a master. torchrun gets the text `$(WORLD_SIZE)` and exits.",
    refused_by="torchrun, when the pods start",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/envvar.go",
    function="setPodEnv",
    fails="start",
    issues=("https://github.com/kubeflow/trainer/issues/1790",),
)
PROCESSES_AND_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/processes-and-gpus",
    title="A role starts more or fewer processes than its pods have GPUs",
    why="GPUs without a process stay idle, and processes without a GPU fail or share a GPU.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="determine_local_world_size",
    issues=("https://github.com/kubeflow/pytorch-operator/issues/331",),
)
NPROC_AND_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/nproc-and-gpus",
    title="nprocPerNode differs from the pod's GPUs",
    why="GPUs without a process stay idle, and processes without a GPU fail or share a GPU.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="determine_local_world_size",
    issues=("https://github.com/kubeflow/pytorch-operator/issues/331",),
)
PROCESSES_OF_THE_HOST: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/processes-of-the-host",
    title="torchrun starts one process for each CPU of the host",
    why="torchrun counts the CPUs of the node and ignores the limit of the container, so far too many processes start.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="determine_local_world_size",
    fails="start",
    issues=("https://github.com/kubeflow/trainer/issues/2407",),
)
GPU_FOR_TORCHRUN: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/gpu-for-torchrun",
    title="torchrun counts GPUs but the pod has none",
    why="torchrun exits if nprocPerNode is `gpu` and the pod has no GPU.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="determine_local_world_size",
    fails="start",
)
ONE_PROCESS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/one-process",
    title="Several GPUs have only one process",
    why="A Python program uses one GPU unless it starts more processes itself.",
    source="https://github.com/kubeflow/trainer/issues/1992",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1872",
        "https://github.com/kubeflow/trainer/issues/1713",
    ),
)
PROCESSES_AWAITED: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/processes-awaited",
    title="WORLD_SIZE counts more processes than start",
    why=(
        "Python without a launcher is one process. This process waits for processes that never start, and training "
        "never begins."
    ),
    function="setPodEnv",
    fails="waiting",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1790",
        "https://github.com/kubeflow/trainer/issues/1836",
    ),
)
UNEQUAL_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/unequal-gpus",
    title="One nprocPerNode is set for roles with different GPU counts",
    why="One number cannot fit roles with different numbers of GPUs.",
    function="setPodEnv",
    issues=("https://github.com/kubeflow/pytorch-operator/issues/331",),
)
PROCESSES_TWICE: Final = TRAINING_JOB.rule(
    "training-job/processes-twice",
    title="The number of processes is set in two places",
    why="elasticPolicy.nProcPerNode is the older field, and the webhook refuses a job with both fields.",
    function="ValidateCreate",
)
_VALUE: Final = re.compile(r"[?]|[1-9][0-9]*|auto|cpu|gpu|xpu|hpu|npu|mps|mlu|musa")
_NODES: Final = re.compile(r"([0-9]{1,9})(:[0-9]{1,9})?")
_LAUNCHERS: Final = ("torchrun", "accelerate", "deepspeed")
_SETS_PROCESSES: Final = re.compile(r"--?(?:n|num)?[-_]?(?:proc|gpu|device)[\w-]{0,24}[ =](?![01](?:\s|$))[0-9$]")
"""Matches an option that sets how many processes a script starts: `--nproc_per_node=4`, `--num-gpus 8`."""
_WORLD_SIZE: Final = ("$(WORLD_SIZE)", "$WORLD_SIZE", "${WORLD_SIZE}")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")
_AT: Final = ("spec", "nprocPerNode")
_PROCESS_OPTIONS: Final = ("--nproc_per_node", "--num_processes", "--num_gpus")


def validate_processes(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Yield every problem of the processes of a PyTorchJob."""
    if job.kind == "PyTorchJob":
        for validate in (
            _check_world_size,
            _check_processes_of_commands,
            _check_nproc_per_node_setting,
            advise_nodes_of_torchrun,
            advise_shared_memory,
        ):
            yield from validate(job)


def _value_of_nproc_per_node(job: TrainingJobOfKind) -> str:
    """Return the value that PET_NPROC_PER_NODE gets; `?` for a placeholder."""
    if job.is_placeholder_at("nprocPerNode") or job.is_placeholder_at("elasticPolicy", "nProcPerNode"):
        return "?"
    values = (job.value_at("nprocPerNode"), job.value_at("elasticPolicy", "nProcPerNode"))
    return str(next((each for each in values if each is not None), "auto"))


def _number_of_processes(job: TrainingJobOfKind) -> int | None:
    """Return the number of processes that PET_NPROC_PER_NODE gets; None for a word or a placeholder."""
    value = _value_of_nproc_per_node(job)
    return int(value) if _COUNT.fullmatch(value) else None


def _check_world_size(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report a command that passes WORLD_SIZE to torchrun as the number of nodes."""
    value = str(job.value_at("nprocPerNode") or "")
    has_master = "Master" in job.roles
    passed = [role for role in job.roles.values() if role.launch.nodes in _WORLD_SIZE]
    if re.fullmatch("[0-9]+", value) and value not in ("0", "1") and has_master and passed:
        message = "makes WORLD_SIZE the number of processes, but --nnodes makes torchrun wait for WORLD_SIZE nodes"
        fix = "write --nnodes=$(PET_NNODES), or remove nprocPerNode"
        yield WORLD_SIZE_AS_NODES.problem(_AT, message, fix, value)
    for role in passed if not has_master and not job.is_open else ():
        if role.launch.nodes == _WORLD_SIZE[0] and role.env.isdisjoint(("WORLD_SIZE", "*")):
            message = (
                "passes $(WORLD_SIZE) to torchrun as --nnodes, but only a job with a `Master` gets this variable, so "
                "torchrun fails"
            )
            fix = "use --nnodes=$(PET_NNODES), or remove --nnodes"
            yield WORLD_SIZE_UNSET.problem(role.template_path, message, fix, words=("--nnodes",))


def _check_processes_of_commands(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check the processes that commands start; a number in the command overrides the operator's number."""
    has_number = _number_of_processes(job) is not None
    for role in job.roles.values():
        started, by = role.launch.processes, role.launch.by
        if by in _LAUNCHERS and role.gpus and started is not None and started != role.gpus:
            processes_text = (
                f"{counted(started, 'process', 'processes')} in each pod, which has {counted(role.gpus, 'GPU')}"
            )
            message = f"{by} starts {processes_text}, so {_describe_outcome(started, role.gpus)}"
            fix = f"set --nproc_per_node={role.gpus}" if by == "torchrun" else f"start {role.gpus} in each pod"
            yield PROCESSES_AND_GPUS.problem(role.template_path, message, fix, words=(*_PROCESS_OPTIONS, by))
        if by == "python" and role.gpus > 1 and not has_number and not _may_use_all_gpus(role, job):
            message = f"runs a single Python process for {role.gpus} GPUs unless the script itself starts more"
            yield ONE_PROCESS.problem(role.template_path, message, "start the script with torchrun")
        if _is_torchrun_without_gpu(role) and _processes_for_torchrun(role, job) == "gpu":
            field = _name_of_processes_field(job) if _is_torchrun_without_process_count(role) else "--nproc_per_node"
            message = f"requests no GPU, but {field} is `gpu`, so torchrun looks for GPUs and fails"
            fix = f"request GPUs, or set {field} to a number of processes"
            yield GPU_FOR_TORCHRUN.problem(role.template_path, message, fix, words=_PROCESS_OPTIONS)


def _may_use_all_gpus(role: RoleOfJob, job: TrainingJobOfKind) -> bool:
    """Return whether a command that starts one Python process may use all GPUs.

    Options of the script may set a number of processes. In a job with one pod, DataParallel or a model that is split
    over GPUs needs only one process.
    """
    return job.count_pods() == 1 or any(container.runs(_SETS_PROCESSES) for container in role.containers)


def _name_of_processes_field(job: TrainingJobOfKind) -> str:
    return path_as_text(_path_of_processes_field(job))


def _path_of_processes_field(job: TrainingJobOfKind) -> FieldPath:
    """Return the path of the field that sets the number of processes."""
    elastic = ("elasticPolicy", "nProcPerNode")
    is_elastic = job.value_at("nprocPerNode") is None and job.value_at(*elastic) is not None
    return ("spec", *elastic) if is_elastic else _AT


def _describe_outcome(processes: int, gpus: int) -> str:
    if processes > gpus:
        return "processes without a GPU fail or share a GPU"
    return "some GPUs stay idle unless another program uses them"


def _is_torchrun_without_gpu(role: RoleOfJob) -> bool:
    is_known = not role.has_open_gpus and not role.null_gpus and not role.claims
    return role.launch.by == "torchrun" and role.gpus == 0 and is_known


def _processes_for_torchrun(role: RoleOfJob, job: TrainingJobOfKind) -> str:
    """Return the number of processes for torchrun: from the command, or from the operator's variable."""
    return _value_of_nproc_per_node(job) if _is_torchrun_without_process_count(role) else role.launch.per_node


def _is_torchrun_without_process_count(role: RoleOfJob) -> bool:
    return role.launch.by == "torchrun" and role.launch.per_node == "" and role.launch.whole


def _check_nproc_per_node_setting(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check nprocPerNode for roles with commands that do not set the number of processes."""
    value, number, roles = _value_of_nproc_per_node(job), _number_of_processes(job), tuple(job.roles.values())
    yield from advise_nproc_value(value)
    hosts = [
        role
        for role in roles
        if _is_torchrun_without_gpu(role) and role.cpus and _processes_for_torchrun(role, job) == "auto"
    ]
    if hosts:
        yield _process_per_cpu_problem(job, [each for each in hosts if _is_torchrun_without_process_count(each)], hosts)
    if number is not None:
        yield from _check_number_of_processes(job, number, roles)


def _process_per_cpu_problem(
    job: TrainingJobOfKind, without_number: list[RoleOfJob], hosts: list[RoleOfJob]
) -> Problem:
    """Return the problem of roles without GPUs that start one process for each CPU of the node.

    without_number: the roles with commands that do not set the number of processes, so that a field of the job sets it.
    """
    roles, given = without_number or hosts, job.value_at("nprocPerNode") if without_number else None
    processes_text = "one process for each CPU of the node"
    why = f"{_role_names_as_text(roles)} {'has' if len(roles) == 1 else 'have'} no GPU"
    of_pod = "the number of CPUs of a pod"
    if not without_number:
        message = (
            f"has no effect on {_role_names_as_text(roles)}, where torchrun with --nproc_per_node=auto starts "
            f"{processes_text} because "
            f"{why}"
        )
        return PROCESSES_OF_THE_HOST.problem(_AT, message, f"set --nproc_per_node={roles[0].cpus}, {of_pod}")
    effect = "is not set, so torchrun starts" if given is None else "makes torchrun start"
    fix = f'set "{roles[0].cpus}" (a string), {of_pod}'
    return PROCESSES_OF_THE_HOST.problem(_AT, f"{effect} {processes_text} because {why}", fix, given)


def _check_number_of_processes(job: TrainingJobOfKind, number: int, roles: tuple[RoleOfJob, ...]) -> Iterator[Problem]:
    unequal = [role for role in roles if _is_torchrun_without_process_count(role) and role.gpus and role.gpus != number]
    if unequal:
        gpus = " and ".join(f"a pod of `{role.name}` has {counted(role.gpus, 'GPU')}" for role in unequal)
        message = f"starts {counted(number, 'process', 'processes')} in each pod, but {gpus}"
        path = _path_of_processes_field(job)
        text = f'"{unequal[0].gpus}" (a string)' if path == _AT else f"{unequal[0].gpus}"
        same = f"set {text}, or " if len({role.gpus for role in roles}) == 1 else ""
        fix = f"{same}remove {_name_of_processes_field(job)}"
        yield NPROC_AND_GPUS.problem(path, f"{message}, so {_describe_outcome(number, unequal[0].gpus)}", fix)
    elif len({role.gpus for role in roles}) > 1 and not any(role.has_open_gpus for role in roles):
        gpus = " and ".join(f"`{role.name}` has {counted(role.gpus, 'GPU')}" for role in roles)
        message = f"{gpus}, but nprocPerNode is the same for all roles"
        yield UNEQUAL_GPUS.problem(job.roles_path, message, "request the same number of GPUs in every role")
    alone = [role for role in roles if role.launch.by == "python"]
    if number > 1 and "Master" in job.roles and alone:
        message = (
            f"makes WORLD_SIZE count {number} processes for each pod, but each pod of "
            f"{_role_names_as_text(alone)} starts only one process, which waits for ever unless its script starts more"
        )
        yield PROCESSES_AWAITED.problem(
            _path_of_processes_field(job),
            message,
            f"start the script with torchrun, or remove {_name_of_processes_field(job)} if one process is enough",
            is_conditional=True,
        )


def _role_names_as_text(roles: list[RoleOfJob]) -> str:
    return " and ".join(f"`{role.name}`" for role in roles)


def check_nproc_field_set_once(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Refuse the older field together with the newer field, as ValidateCreate of PyTorchJobs does."""
    if job.value_at(*PROCESSES_OF_ELASTIC_POLICY) is not None and job.value_at("nprocPerNode") is not None:
        message = "must not be set together with spec.nprocPerNode, which replaces this field"
        yield PROCESSES_TWICE.problem(
            ("spec", *PROCESSES_OF_ELASTIC_POLICY), message, "remove elasticPolicy.nProcPerNode"
        )


def advise_nproc_value(nproc: str) -> Iterator[Problem]:
    """Warn of a number of processes that torchrun cannot read."""
    if not _VALUE.fullmatch(nproc):
        message = "must be a number of processes or a kind of device because torchrun fails on every other value"
        yield NPROC_VALUE.problem(
            ("spec", "nprocPerNode"), message, "set auto, cpu, gpu or a whole number of at least 1", nproc
        )


def advise_nodes_of_torchrun(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn about more nodes than pods, including pods that an autoscaler may add."""
    pods = max_pods_of_job(job)
    if pods is None:
        return
    for role in job.roles.values():
        match = _NODES.fullmatch(role.launch.nodes)
        if match and int(match[1]) > pods:
            message = f"torchrun waits for {role.launch.nodes} nodes, but the job has {counted(pods, 'pod')}"
            fix = "use --nnodes=$(PET_NNODES), or remove --nnodes"
            yield MORE_NODES_THAN_PODS.problem(role.template_path, message, fix, words=("--nnodes",))
