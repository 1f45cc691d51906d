"""Rules for the launcher of a TrainJob and its number of processes, and for fields that MPI workers do not get.

The options of a launcher override the variables PET_* that Trainer sets: torchrun reads the variables only as
defaults, and accelerate and deepspeed do not read the variables. The rules read the merged container, so a command of
the runtime or of a patch counts too.

Source: pytorch/pytorch@010929fd torch/distributed/argparse_util.py env; kubeflow/trainer@8c0f5059bd51
pkg/runtime/framework/plugins/mpi.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.facts.command_lines.command import LaunchedProgram
from webhook.facts.launch.commands_of_kinds import launch_of_training_container, place_of_launcher_options
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.nodes_and_processes import (
    container_named,
    find_by_name,
    find_trainer_job,
    is_trainer_job,
)
from webhook.facts.train_job_pods.releases import IMAGE_EVERYWHERE
from webhook.facts.train_job_pods.types import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.job_sets import ReplicatedJob

LAUNCHER_PROCESSES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/launcher-processes",
    title="The launcher's number of processes differs from the node's GPUs",
    why=(
        "The number in the command overrides PET_NPROC_PER_NODE. With too few processes, GPUs stay idle. With too "
        "many processes, some fail or share a GPU."
    ),
    source="pytorch/pytorch@010929fd torch/distributed/argparse_util.py",
    function="env",
)
LAUNCHER_AND_FIELD: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/launcher-and-field",
    title="The launcher's command and numProcPerNode set different numbers of processes",
    why=(
        "The number in the command overrides PET_NPROC_PER_NODE, so the launcher starts another number of processes "
        "than Trainer counts."
    ),
    source="pytorch/pytorch@010929fd torch/distributed/argparse_util.py",
    function="env",
)
LAUNCHER_RESOURCES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/launcher-resources",
    title="resourcesPerNode does not reach the MPI workers",
    why="The launcher is the trainer step, so only the launcher gets the resources.",
    source="https://github.com/kubeflow/trainer/issues/2650",
)
LAUNCHER_AS_NODE: Final = TRAIN_JOB.rule(
    "train-job/launcher-as-node",
    title="The MPI runtime lacks the replicated job `launcher` or `node`",
    why="Without both jobs, the mpi plugin allows only one node.",
    function="Validate of plugins/mpi/mpi.go",
)
WORKER_COMMAND: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/worker-command",
    title="The TrainJob replaces the SSH server of the MPI workers",
    why="The launcher connects to the workers by SSH. The new command runs in place of their SSH server.",
    fails="start",
)
WORKER_IMAGE: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/worker-image",
    title="The image does not reach the MPI workers",
    why="Only the launcher gets the image. The workers keep the image of the runtime.",
    source="https://github.com/kubeflow/trainer/issues/4030",
)
_PLUGINS_THAT_RUN_COMMAND: Final = ("torch", "jax", "plain", "none")
"""Plugins for which the command of a node decides how many processes start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherProcesses:
    """A launcher with its own number of processes.

    Args:
        by: torchrun, accelerate or deepspeed; "" without a launcher.
        option: the option with the number, such as `--nproc_per_node`.
        processes: the number of processes on each node; None if the number is not known.
        at: the path of the command as text; spec.runtimeRef if the runtime has the command.
    """

    by: str = ""
    option: str = ""
    processes: int | None = None
    at: str = ""


NO_LAUNCHER: Final = LauncherProcesses()


def launcher_of_job(subject: Subject, gpus: int) -> LauncherProcesses:
    """Return the launcher of a TrainJob, and how many processes the launcher starts on a node with `gpus` GPUs."""
    job = subject.once(merge_train_job)
    if job.plugin not in _PLUGINS_THAT_RUN_COMMAND or job.node_container is None:
        return NO_LAUNCHER
    started = launch_of_training_container(subject)
    option = _process_option(started)
    if not option:
        return NO_LAUNCHER
    starts_one_per_gpu = started.per_node in ("gpu", "auto") and gpus > 0
    processes = gpus if starts_one_per_gpu else started.processes
    return LauncherProcesses(
        by=started.by, option=option, processes=processes or None, at=place_of_launcher_options(subject)
    )


def _process_option(started: LaunchedProgram) -> str:
    """Return the option that sets the number of processes; "" without such an option."""
    if started.by == "torchrun" and (started.processes or started.per_node in ("gpu", "auto")):
        return "--nproc_per_node"
    if started.processes is None:
        return ""
    return {"accelerate": "--num_processes", "deepspeed": "--num_gpus"}.get(started.by, "")


def warn_of_launcher_process_count(job: MergedTrainJob, gpus: int, launcher: LauncherProcesses) -> Iterator[Problem]:
    """Yield a launcher's number of processes that differs from the number of GPUs, or from numProcPerNode."""
    if launcher.processes is None:
        return
    if gpus and launcher.processes != gpus:
        yield _launcher_processes_problem(job, gpus, launcher)
    elif job.plugin == "torch":
        yield from _check_num_proc_matches_launcher(job, launcher)


def _launcher_processes_problem(job: MergedTrainJob, gpus: int, launcher: LauncherProcesses) -> Problem:
    per_node, processes = job.trainer.num_proc_per_node, launcher.processes or 0
    starts = f"{counted(processes, 'process', 'processes')} per node on {counted(gpus, 'GPU')}"
    more = "processes without a GPU of their own fail or share a GPU"
    outcome = more if processes > gpus else "the other GPUs stay idle"
    suffix = f" although numProcPerNode is {per_node}" if per_node == gpus else ""
    message = f"{launcher.by} starts {starts}{suffix}, so {outcome}"
    fix = _fix_for_launcher_number(launcher, gpus, job)
    return LAUNCHER_PROCESSES.problem(launcher.at, message, fix, words=(launcher.option, launcher.by))


def _check_num_proc_matches_launcher(job: MergedTrainJob, launcher: LauncherProcesses) -> Iterator[Problem]:
    per_node, processes = job.trainer.num_proc_per_node, launcher.processes or 0
    if per_node is not None and str(per_node) not in (str(processes), "auto", "gpu"):
        starts = f"{launcher.by} starts {counted(processes, 'process', 'processes')} per node"
        message = f"has no effect because {starts}, as option {launcher.option} says"
        fix = f"set {processes}, or remove {launcher.option}"
        yield LAUNCHER_AND_FIELD.problem("spec.trainer.numProcPerNode", message, fix, per_node)


def _fix_for_launcher_number(launcher: LauncherProcesses, gpus: int, job: MergedTrainJob) -> str:
    """Return the fix for a launcher's number. With accelerate, the option counts the processes of all nodes."""
    return f"set {launcher.option}={gpus * job.number_of_nodes if launcher.by == 'accelerate' else gpus}"


def advise_launcher_resources(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield resourcesPerNode that reach only the launcher of an MPI runtime (kubeflow/trainer#2650)."""
    resources = job.trainer.resources_per_node
    if resources and not job.runtime.spec.ml_policy.mpi.run_launcher_as_node:
        message = f"reaches only the launcher of {job.runtime}, so the workers keep the resources of the runtime"
        fix = "remove resourcesPerNode, and use a runtime whose workers request these resources"
        yield LAUNCHER_RESOURCES.problem(resources.at, message, fix)


def validate_launcher_as_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield numNodes above 1 if the launcher is a node and the runtime lacks job `launcher` or `node` (mpi.go)."""
    nodes = job.trainer.num_nodes
    for name in ("launcher", "node") if nodes is not None and nodes > 1 and is_launcher_node(job) else ():
        if find_by_name(job.replicated_jobs, name) is None:
            message = f"must be 1 because {job.runtime} sets runLauncherAsNode and has no replicated job `{name}`"
            fix = "set 1, or use a runtime with the replicated jobs `launcher` and `node`"
            yield LAUNCHER_AS_NODE.problem("spec.trainer.numNodes", message, fix, nodes)


def is_launcher_node(job: MergedTrainJob) -> bool:
    """Return whether the launcher of an MPI runtime is also a node."""
    return job.plugin == "mpi" and job.runtime.spec.ml_policy.mpi.run_launcher_as_node


def validate_workers(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield fields of spec.trainer that the workers of an MPI runtime do not get, or do not use."""
    worker = find_by_name(job.replicated_jobs, "node") if job.plugin == "mpi" else None
    if worker is None:
        return
    if is_trainer_job(worker):
        yield from _check_worker_command(job)
    elif find_trainer_job(job.replicated_jobs) is not None:
        yield from advise_launcher_resources(job)
        yield from _check_worker_image(job, worker)


def _check_worker_command(job: MergedTrainJob) -> Iterator[Problem]:
    if job.trainer.command:
        message = (
            f"also replaces the command of the workers of {job.runtime}, so the SSH server that the launcher connects "
            "to does not start"
        )
        label = "`trainer.kubeflow.org/trainjob-ancestor-step: trainer`"
        fix = f"remove spec.trainer.command, or use a runtime in which the launcher has the label {label}"
        yield WORKER_COMMAND.problem("spec.trainer.command", message, fix)


def _check_worker_image(job: MergedTrainJob, worker: ReplicatedJob) -> Iterator[Problem]:
    node = container_named(worker, "node")
    image = "" if node is None else node.image
    if job.trainer.image not in ("", image) and job.release < IMAGE_EVERYWHERE:
        message = f"reaches only the launcher, so the workers of {job.runtime} keep image `{image}`"
        fix = "use a runtime in which both the launcher and the workers have your image"
        yield WORKER_IMAGE.problem("spec.trainer.image", message, fix)
