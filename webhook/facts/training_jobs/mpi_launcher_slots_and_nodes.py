"""Rules for MPIJobs: mistakes that the operators refuse, and commands for which mpirun has too few slots.

Neither operator has a webhook for MPIJobs, so a refused job only gets an event. Open MPI uses only the slots of the
hostfile unless an option of mpirun allows more.

Source: kubeflow/mpi-operator@caa3c47fc42e pkg/apis/kubeflow/validation/validation.go and pkg/controller;
kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/controller.v1/mpi; Open MPI rmaps_base_map_job.c and rmaps_ppr.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.command_lines.command import MPI, LaunchedProgram
from webhook.facts.launch.processes_and_slots import MORE_SLOTS, sentence_about_lacking_slots
from webhook.facts.training_jobs.training_job import warn_of_fields_of_other_version
from webhook.facts.training_jobs.typed_job import TRAINING_JOB, TRAINING_JOB_ADVICE, RoleOfJob, TrainingJobOfKind
from webhook.rules.problem import Problem
from webhook.text.wording import counted, either

LAUNCHER_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/launcher-required",
    title="The MPIJob has no launcher",
    why="The launcher runs mpirun, and the operator refuses a job without a launcher.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/apis/kubeflow/validation/validation.go",
    function="validateMPIReplicaSpecs",
    fails="controller",
    refused_on_updates="",
)
ONE_LAUNCHER: Final = TRAINING_JOB.rule(
    "training-job/one-launcher",
    title="The launcher of the MPIJob does not have exactly one replica",
    why="The operator accepts exactly one launcher.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/apis/kubeflow/validation/validation.go",
    function="validateLauncherReplicaSpec",
    fails="controller",
    refused_on_updates="",
)
MPI_WORKERS: Final = TRAINING_JOB.rule(
    "training-job/mpi-workers",
    title="The MPIJob has no workers",
    why="The MPI Operator counts 0 workers if replicas is not set, and refuses a role Worker with 0 replicas.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/apis/kubeflow/validation/validation.go",
    function="validateWorkerReplicaSpec",
    fails="controller",
    refused_on_updates="",
)
SLOTS_NOT_NEGATIVE: Final = TRAINING_JOB.rule(
    "training-job/slots-not-negative",
    title="slotsPerWorker is negative",
    why="The MPI Operator refuses a negative number. For an MPIJob v1, mpirun cannot read the hostfile.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/apis/kubeflow/validation/validation.go",
    function="validateMPIJobSpec",
    fails="controller",
    refused_on_updates="",
)
MPI_IMPLEMENTATION: Final = TRAINING_JOB.rule(
    "training-job/mpi-implementation",
    title="The MPI Operator does not know this MPI implementation",
    why="The operator compares names letter by letter, and refuses unknown names.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/apis/kubeflow/validation/validation.go",
    function="validateMPIJobSpec",
    fails="controller",
    refused_on_updates="",
)
SLOTS_FOR_RANKS: Final = TRAINING_JOB.rule(
    "training-job/slots-for-ranks",
    title="mpirun starts more ranks than there are slots",
    why=(
        "By default Open MPI starts at most one rank for each slot in the hostfile. With more ranks, mpirun exits at "
        "once."
    ),
    refused_by="mpirun, when the launcher starts",
    source="open-mpi/ompi v4.1 orte/mca/rmaps/base/rmaps_base_map_job.c",
    function="orte_rmaps_base_map_job",
    fails="start",
    issues=(
        "https://github.com/kubeflow/mpi-operator/issues/318",
        "https://github.com/kubeflow/mpi-operator/issues/291",
        "https://github.com/kubeflow/mpi-operator/issues/680",
    ),
)
SLOTS_PER_NODE: Final = TRAINING_JOB.rule(
    "training-job/slots-per-node",
    title="mpirun starts more ranks on a node than the node has slots",
    why=("By default Open MPI starts at most one rank for each slot of a node. With more ranks, mpirun exits at once."),
    refused_by="mpirun, when the launcher starts",
    source="open-mpi/ompi v4.1 orte/mca/rmaps/ppr/rmaps_ppr.c",
    function="ppr_mapper",
    fails="start",
)
NODES_FOR_RANKS: Final = TRAINING_JOB.rule(
    "training-job/nodes-for-ranks",
    title="mpirun limits the ranks on each worker, and there are too few workers for all ranks",
    why="-np asks for more ranks than mpirun may start on all workers together, so mpirun exits at once.",
    refused_by="mpirun, when the launcher starts",
    source="open-mpi/ompi v4.1 orte/mca/rmaps/ppr/rmaps_ppr.c",
    function="ppr_mapper",
    fails="start",
)
SLOTS_OF_HOSTS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/slots-of-hosts",
    title="The hosts in the command have too few slots for the ranks",
    why=(
        "A host in --host has one slot, or the number of slots after the colon. With more ranks than slots, mpirun "
        "exits at once."
    ),
    refused_by="mpirun, when the launcher starts",
    source="https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html",
    fails="start",
)
SLOTS_AND_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/slots-and-gpus",
    title="slotsPerWorker differs from the worker's GPUs",
    why="GPUs without a rank stay idle, and ranks without a GPU of their own share a GPU.",
    source="https://github.com/kubeflow/mpi-operator/issues/680",
)
LAUNCHER_GPUS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/launcher-gpus",
    title="The launcher requests GPUs that its processes may not see",
    why=(
        "The operator empties NVIDIA_VISIBLE_DEVICES in the launcher. A container runtime that reads this variable "
        "shows no GPU, and other pods cannot use the GPUs."
    ),
    source="kubeflow/mpi-operator caa3c47fc42e pkg/controller/mpi_job_controller.go",
    function="newLauncherPodTemplate",
    issues=(
        "https://github.com/kubeflow/mpi-operator/issues/476",
        "https://github.com/kubeflow/mpi-operator/issues/329",
    ),
)
NO_SSHD: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/no-sshd",
    title="The workers of the MPIJob only wait, and run no sshd",
    why=(
        "The MPI Operator starts sshd in a worker that has neither command nor args. mpirun starts the ranks over SSH, "
        "so it cannot reach a worker that runs another program. An MPIJob v1 needs no sshd, and its workers wait."
    ),
    refused_by="mpirun, when the launcher starts",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/controller/mpi_job_controller.go",
    function="newWorker",
    fails="start",
)
LAUNCHER_CREATION_POLICY: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/launcher-creation-policy",
    title="The MPI Operator does not know this launcherCreationPolicy",
    why="The operator treats every unknown value as WaitForWorkersReady.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/controller/mpi_job_controller.go",
    function="syncHandler",
    severity="low",
)

_WAITS: Final = re.compile(r"(.*/)?(sleep [0-9a-z.]+|tail -f /dev/null)|while (true|:); *do sleep [0-9a-z.]+; *done")
"""A whole command that only waits."""
_SHELL: Final = re.compile(r"(.*/)?(ba|da)?sh")
_IMPLEMENTATIONS: Final = ("OpenMPI", "Intel", "MPICH")
_CREATIONS: Final = ("AtStartup", "WaitForWorkersReady")
_PER_NODE: Final = re.compile("(GPUS?|N_?PROCS?|PROCESSES)_PER_(NODE|HOST)|NODE_RANK")
"""Variables with these names show that a script starts several processes on its node."""
_OTHER_MPI: Final = re.compile("(?i)intel|oneapi|mpich")
"""A part of the names of images with another implementation of MPI than Open MPI."""
_SEVERAL_GPUS: Final = re.compile(r"\.sh\b|torchrun|torch\.distributed|accelerate launch| -g[ =]?([2-9]|[1-9][0-9])\b")
"""A part of a command line that may use several GPUs: a script, a launcher of PyTorch, or `-g 8` of NCCL's tests."""


def validate_mpi_replicas(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Require one launcher, and in v2beta1 at least one worker if the role is set, as validateMPIReplicaSpecs does."""
    if job.kind != "MPIJob":
        return
    launcher, worker = job.roles.get("Launcher"), job.roles.get("Worker")
    if launcher is None and job.roles and not job.is_patch:
        yield LAUNCHER_REQUIRED.problem(
            (*job.roles_path, "Launcher"),
            "is not set, but the launcher runs mpirun",
            "add a Launcher",
        )
    if launcher is not None and launcher.replicas not in (None, 1):
        message = "must be 1 because an MPIJob has one launcher"
        yield ONE_LAUNCHER.problem((*launcher.path, "replicas"), message, "set 1", launcher.replicas)
    if job.is_beta and worker is not None and worker.replicas is not None and worker.replicas < 1:
        reason = "the MPI Operator refuses a Worker role without replicas"
        message = (
            f"must be at least 1 because {reason}" if worker.sets_replicas else f"is not set, so it is 0, and {reason}"
        )
        replicas = worker.replicas if worker.sets_replicas else None
        yield MPI_WORKERS.problem((*worker.path, "replicas"), message, "set 1 or more", replicas)


def validate_mpi_settings(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Yield the problems that validateMPIJobSpec would report, and fields of the other version, which are dropped."""
    if job.kind != "MPIJob":
        return
    slots = job.number_at("slotsPerWorker")
    if slots is not None and slots < 0:  # the hostfile of v1 would have `slots=-1`, which mpirun rejects
        fix = "set the number of ranks that one worker runs"
        yield SLOTS_NOT_NEGATIVE.problem(("spec", "slotsPerWorker"), "must not be negative", fix, slots)
    implementation = job.value_at("mpiImplementation")
    if job.is_beta and implementation not in (None, *_IMPLEMENTATIONS):
        message = f"must be {either(_IMPLEMENTATIONS)}, in this spelling, because the MPI Operator refuses other values"
        yield MPI_IMPLEMENTATION.problem(("spec", "mpiImplementation"), message, "set one of them", implementation)
    creation = job.value_at("launcherCreationPolicy")
    if job.is_beta and creation not in (None, *_CREATIONS):
        message, fix = (
            "is treated as WaitForWorkersReady because the operator does not know this value",
            f"set {either(_CREATIONS)}",
        )
        yield LAUNCHER_CREATION_POLICY.problem(("spec", "launcherCreationPolicy"), message, fix, creation)
    yield from warn_of_fields_of_other_version(job)


def check_sshd_of_workers(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report workers of v2beta1 that only wait. Another container, or a hook of the container, may start sshd."""
    worker = job.roles.get("Worker") if job.kind == "MPIJob" and job.is_beta else None
    if worker is None or worker.is_open or len(worker.containers) != 1:
        return
    container = worker.containers[0]
    words = [*container.command, *container.args]
    if len(words) == 3 and _SHELL.fullmatch(words[0]) and words[1].startswith("-") and words[1].endswith("c"):
        words = words[2:]
    container.charge_search("".join(words))
    if container.command and not container.has("lifecycle") and _WAITS.fullmatch(" ".join(words).strip(" ;")):
        message = "only waits, so no sshd runs in the workers, and mpirun cannot start ranks there"
        fix = "remove command and args, so that the MPI Operator starts sshd"
        yield NO_SSHD.problem(container.path("command"), message, fix)


def validate_slots(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report more ranks than the slots that the hostfile gives mpirun, or than mpirun may start on the workers."""
    launch, hosts, slots = _launch_of_launcher(job), _count_hosts_of_mpirun(job), _slots_per_worker(job)
    if launch is None or not hosts:
        return
    by, ranks, each = launch.by, launch.ranks, launch.processes
    names = _workers_as_text(job, hosts)
    slots_text = f"{counted(slots, 'slot')} to each of {names}"
    if ranks is not None and ranks > hosts * slots:
        together = f"{slots_text} ({counted(hosts * slots, 'slot')} in all)" if hosts > 1 else slots_text
        message = f"gives {together}, but {by} in the launcher asks for {counted(ranks, 'rank')}, so {by} fails"
        fix = f"set -np to at most {hosts * slots}, or raise slotsPerWorker or the number of workers"
        yield SLOTS_FOR_RANKS.problem(("spec", "slotsPerWorker"), message, fix, excess=ranks - hosts * slots)
    if each is not None and each > slots:
        message = f"gives {slots_text}, but {by} in the launcher starts {counted(each, 'rank')} on each, so {by} fails"
        fix = f"set {each} or more"
        yield SLOTS_PER_NODE.problem(("spec", "slotsPerWorker"), message, fix, excess=each - slots)
    if by == "mpirun" and each is not None and ranks is not None and ranks > each * hosts:
        message = (
            f"gives {names}, but mpirun in the launcher asks for {counted(ranks, 'rank')} with at most {each} "
            "on each, so mpirun fails"
        )
        fix = f"set -np to at most {each * hosts}, or raise the number of workers"
        path = (*job.roles_path, "Worker", "replicas")
        yield NODES_FOR_RANKS.problem(path, message, fix, excess=ranks - each * hosts)


def _workers_as_text(job: TrainingJobOfKind, hosts: int) -> str:
    """Return the number of workers for a message, with the launcher if it is also a host."""
    worker = job.roles.get("Worker")
    workers = hosts if worker is None or worker.replicas is None else worker.replicas
    return f"{counted(workers, 'worker')}{' and the launcher' if workers < hosts else ''}"


def _slots_per_worker(job: TrainingJobOfKind) -> int:
    slots = job.number_at("slotsPerWorker")
    return 1 if slots is None else slots


def _count_hosts_of_mpirun(job: TrainingJobOfKind) -> int:
    """Return how many hosts have slots for mpirun; 0 for an unknown number, or if the implementation ignores slots."""
    worker, launcher = job.roles.get("Worker"), job.roles.get("Launcher")
    if any(job.is_placeholder_at(name) for name in ("slotsPerWorker", "runLauncherAsWorker", "mpiImplementation")):
        return 0
    if job.is_beta and job.value_at("mpiImplementation") not in (None, "OpenMPI"):
        return 0
    if worker is None or worker.replicas is None or _slots_per_worker(job) < 1:
        return 0
    # in v1, a launcher with GPUs is also a host of mpirun
    is_host = job.value_at("runLauncherAsWorker") is True if job.is_beta else bool(launcher and launcher.limits_gpus)
    return worker.replicas + is_host


def _launch_of_launcher(job: TrainingJobOfKind) -> LaunchedProgram | None:
    """Return what the launcher starts. Return None if the command is not known, does not run mpirun of Open MPI, names
    hosts, or allows more ranks than slots. Variables of envFrom may allow more ranks, too.
    """
    launcher = job.roles.get("Launcher") if job.kind == "MPIJob" else None
    launch = launcher.launch if launcher is not None else None
    container = next(iter(launcher.containers), None) if launcher is not None else None
    if container is not None and (container.env_from or _OTHER_MPI.search(container.image)):
        return None
    if launch is None or launch.by not in MPI or not launch.whole or launch.hosts or launch.oversubscribed:
        return None
    return launch


def _may_start_processes(launcher: RoleOfJob) -> bool:
    """Return whether each rank may use several GPUs, by one process for each GPU or as NCCL's tests with `-g 8`.

    A shell script in a command, torchrun, or a variable such as NPROC_PER_NODE, is a sign of more processes.
    """
    return any(
        any(map(_PER_NODE.search, container.environment.by_name())) or container.runs(_SEVERAL_GPUS)
        for container in launcher.containers
    )


def _uses_slots_of_job(launcher: RoleOfJob) -> bool:
    """Return whether mpirun in the launcher reads the slots in the job's hostfile. Another hostfile, hosts in the
    command and other programs have other slots. Without a command, the image probably runs mpirun.
    """
    launch = launcher.launch
    if launch.by == "mpirun":
        return not launch.hosts and not launch.named_hosts
    return launch.by == "" and not any(container.words for container in launcher.containers[:1])


def _requests_gpus_of_nvidia(launcher: RoleOfJob) -> bool:
    """Return whether the launcher requests GPUs that NVIDIA_VISIBLE_DEVICES may hide, not devices of a claim."""
    names = (name for container in launcher.containers[:1] for name in container.resources.written_limits)
    return launcher.gpus > 0 and any(name.startswith("nvidia.com/") for name in names)


def warn_of_gpus_without_mpi_rank(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of slots that do not fit the ranks or the GPUs, and of GPUs that the launcher cannot see."""
    if job.kind != "MPIJob":
        return
    launcher, worker, slots = job.roles.get("Launcher"), job.roles.get("Worker"), _slots_per_worker(job)
    launch = launcher.launch if launcher is not None else None
    is_open_mpi = not job.is_beta or job.value_at("mpiImplementation") in (None, "OpenMPI")
    if (
        launch is not None
        and launcher is not None
        and is_open_mpi
        and (message := sentence_about_lacking_slots(launch, job.deadline))
    ):
        yield SLOTS_OF_HOSTS.problem(launcher.template_path, message, MORE_SLOTS, words=("-np", "-n", "mpirun"))
    is_used = launcher is None or _uses_slots_of_job(launcher)
    is_known = slots >= 1 and not job.is_placeholder_at("slotsPerWorker") and is_used
    starts_more = launcher is not None and slots < (worker.gpus if worker else 0) and _may_start_processes(launcher)
    processes = launch.processes if launch is not None and launch.by in MPI else None
    fits = (
        worker is not None and processes is not None and (processes == worker.gpus or processes < worker.gpus < slots)
    )
    if is_known and worker is not None and worker.gpus >= 1 and worker.gpus != slots and not (starts_more or fits):
        idle = "some GPUs stay idle unless each rank uses several GPUs"
        what = idle if slots < worker.gpus else "ranks share GPUs if mpirun uses all slots"
        slots_text = f"{counted(slots, 'slot')} to each worker, which has {counted(worker.gpus, 'GPU')}"
        message = f"gives {slots_text}, so {what}"
        yield SLOTS_AND_GPUS.problem(("spec", "slotsPerWorker"), message, f"set {worker.gpus}")
    is_worker = job.value_at("runLauncherAsWorker") is True or job.is_placeholder_at("runLauncherAsWorker")
    if job.is_beta and launcher is not None and not is_worker and _requests_gpus_of_nvidia(launcher):
        message = (
            "requests GPUs, but the operator empties NVIDIA_VISIBLE_DEVICES of a launcher, so a runtime that reads "
            "this variable shows none"
        )
        yield LAUNCHER_GPUS.problem(
            launcher.template_path, message, "remove the GPUs, or set spec.runLauncherAsWorker: true"
        )
