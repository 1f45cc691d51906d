"""Compares processes with the GPUs of a container, settings of PyTorch Lightning's Trainer with GPUs and pods, and
ranks of mpirun with slots.

- torchrun starts one process unless --nproc_per_node or PET_NPROC_PER_NODE sets another number. For PyTorchJobs and
  TrainJobs, operators set the number, and other modules have the rules.
- Frameworks such as NeMo and BioNeMo read options of the Trainer as Hydra does (`trainer.num_nodes=2`). LightningCLI
  reads `--trainer.num_nodes=2`. Scripts also use short names such as `--num_nodes`. A short name counts only together
  with another option of the Trainer, because it may mean the nodes of a graph.
- Open MPI counts one slot each time that --host names a host, and starts no more ranks than slots. Volcano names each
  worker once in MPI_HOST. Kubeflow Trainer writes a hostfile with one slot for each process of a node.

Source: pytorch/pytorch@010929fd torch/distributed/run.py determine_local_world_size; Lightning-AI/pytorch-lightning 2.5
fabric/utilities/device_parser.py, which refuses more devices than there are, and pytorch/strategies/ddp.py, which
counts nodes times devices; volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/mpi/mpi.go
and plugins/svc/svc.go, which sets VC_<task>_HOSTS to the pods of a task; kubeflow/trainer@8c0f5059bd51
pkg/runtime/framework/plugins/mpi/mpi.go; open-mpi/ompi@006be92d orte/util/dash_host/dash_host.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.facts.command_lines.command import MPI, LaunchedProgram
from webhook.facts.launch.member import LAUNCH, LaunchedContainer, PodsTrainingTogether, pod_count_with_verb
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.collections import Items

PROCESSES_AND_GPUS: Final = LAUNCH.rule(
    "launch/processes-and-gpus",
    title="The command starts more or fewer processes than the pod has GPUs",
    why=(
        "GPUs that no program uses stay idle, and processes without a GPU fail or share a GPU. By default, torchrun "
        "starts one process."
    ),
    function="determine_local_world_size",
    fails="silent",
)
TRAINER_NODES: Final = LAUNCH.rule(
    "launch/trainer-nodes",
    title="num_nodes differs from the number of pods",
    why="The trainer waits for nodes that never join, or divides the data among the wrong number of nodes.",
    refused_by="nothing; the trainer waits or trains on parts of the data",
    source="Lightning-AI/pytorch-lightning 2.5 src/lightning/pytorch/strategies/ddp.py",
    function="distributed_sampler_kwargs",
)
TRAINER_DEVICES: Final = LAUNCH.rule(
    "launch/trainer-devices",
    title="The trainer's number of devices differs from the container's GPUs",
    why="With more devices than the container has GPUs, the trainer fails. With fewer devices, GPUs may stay idle.",
    refused_by="PyTorch Lightning, when the pods start",
    source="Lightning-AI/pytorch-lightning 2.5 src/lightning/fabric/utilities/device_parser.py",
    function="_sanitize_gpu_ids",
    fails="start",
)
RANKS_AND_SLOTS: Final = LAUNCH.rule(
    "launch/ranks-and-slots",
    title="mpirun starts more ranks than it has slots",
    why=(
        "With more ranks than slots, Open MPI exits at once. Volcano's plugin mpi names each worker once in MPI_HOST, "
        "which is one slot. The hostfile of a TrainJob has numProcPerNode slots for each node."
    ),
    refused_by="mpirun, when the master starts",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/mpi/mpi.go",
    function="OnPodCreate",
    fails="start",
)
PER_NODE: Final = "PET_NPROC_PER_NODE"
MORE_SLOTS: Final = "lower -np, or name more hosts or slots, as in host:4"
_OPTIONS: Final = {"torchrun": "--nproc_per_node", "accelerate": "--num_processes", "deepspeed": "--num_gpus"}
_RANKS: Final = ("-np", "-n", "--np", "mpirun")
_COUNT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_TRAINER_OPTION: Final = re.compile(
    r"(?:^|\s)(?:\+{0,2}trainer\.|--trainer\.|(--))(num[_-]nodes|devices)(?:=|\s+)['\"]?([0-9]{1,6})['\"]?(?=\s|$|;|\\)"
)
_OF_LIGHTNING: Final = re.compile(r"(?:^|\s)--(?:accelerator|strategy|devices)(?:=|\s)")
_ALL_GPUS: Final = re.compile(r"\s--gpu[_-]ids[= ]all(?=\s|$)")
_OTHER_USER: Final = re.compile(
    r"(?i)vllm|sglang|tritonserver|CUDA_VISIBLE_DEVICES|cuda:[0-9]|device[_-]map|parallelize"
)
_LONGEST: Final = 128 * 1024
"""Linux's MAX_ARG_STRLEN, in characters."""
_VARIABLE: Final = re.compile(r"\$[{(]?([A-Z][A-Z0-9_]*)[})]?")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}(:([0-9]{1,6}))?", re.ASCII)
_MORE_REPLICAS: Final = "lower -np, raise the replicas of the task, or name hosts with slots, as in host:4"


def check_processes_match_gpus(container: LaunchedContainer, *, operator_sets_number: bool) -> Iterator[Problem]:
    """Report a number of processes that differs from the number of GPUs of the container.

    Args:
        container: the container.
        operator_sets_number: whether an operator sets the number for torchrun if the command does not set it.
    """
    option = _OPTIONS.get(container.launch.by)
    started = _count_processes_per_pod(container, operator_sets_number=operator_sets_number)
    if option is None or started is None or not container.gpus or started == container.gpus:
        return
    if started == 1 and (container.has_ports or _gives_all_gpus(container)):
        return  # a server, and accelerate with all GPUs, divide the model of one process among the GPUs
    processes_text = f"{counted(started, 'process', 'processes')} on {counted(container.gpus, 'GPU')}"
    outcome = "processes without a GPU fail or share a GPU"
    if started < container.gpus:
        if _names_other_user_of_gpus(container):
            return
        outcome = "some GPUs stay idle unless another program uses them"
    fix = f"set {option}={container.gpus}"
    if container.launch.by == "accelerate":
        fix = f"set {option} to {container.gpus} for each machine"
    message = f"{container.launch.by} starts {processes_text}, so {outcome}"
    yield PROCESSES_AND_GPUS.problem(container.path, message, fix, words=(option, container.launch.by))


def _names_other_user_of_gpus(container: LaunchedContainer) -> bool:
    """Return whether a command names an inference server or GPUs by their numbers. The training then leaves GPUs to the
    server, as GRPO with vLLM does.
    """
    text = " ".join(container.words)
    return len(text) <= _LONGEST and _OTHER_USER.search(text) is not None


def _gives_all_gpus(container: LaunchedContainer) -> bool:
    text = " ".join(container.words)
    return len(text) <= _LONGEST and _ALL_GPUS.search(text) is not None


def _count_processes_per_pod(container: LaunchedContainer, *, operator_sets_number: bool) -> int | None:
    """Return how many processes one pod starts; None if the number is not known."""
    launch = container.launch
    if launch.by != "torchrun" or launch.per_node or not launch.whole or operator_sets_number:
        return launch.processes
    if PER_NODE in container.env:
        value = container.env[PER_NODE] or ""
        return int(value) if _COUNT.fullmatch(value) else None
    return None if container.has_other_env else 1


def check_trainer_devices_and_nodes(
    containers: Sequence[LaunchedContainer], together: PodsTrainingTogether | None
) -> Iterator[Problem]:
    """Report trainers with a wrong number of devices or, if the pods train together, a wrong number of nodes."""
    for container in containers:
        options = _read_trainer_number_options(container)
        devices, nodes = options.get("devices"), options.get("num-nodes")
        if devices is not None:
            yield from _check_number_of_devices(container, devices)
        if nodes is not None and together is not None:
            yield from _check_number_of_nodes(container, nodes, together)


def _check_number_of_devices(container: LaunchedContainer, devices: int) -> Iterator[Problem]:
    gpus = container.gpus
    if gpus and devices not in (0, gpus):
        idle = "so some GPUs stay idle unless another program uses them"
        outcome = "so the trainer fails" if devices > gpus else idle
        message = f"passes {counted(devices, 'device')} to the trainer, but the container has {counted(gpus, 'GPU')}"
        words = ("trainer.devices", "--devices")
        message, fix, is_conditional = f"{message}, {outcome}", f"set devices to {gpus}", devices < gpus
        yield TRAINER_DEVICES.problem(container.path, message, fix, words=words, is_conditional=is_conditional)


def _check_number_of_nodes(
    container: LaunchedContainer, nodes: int, together: PodsTrainingTogether
) -> Iterator[Problem]:
    pods = together.pods
    if pods is None or nodes == pods or (together.may_train_with_other_objects and pods < 2):
        return
    if nodes > pods or together.is_one:
        outcome = "so the trainer waits for nodes that never join" if nodes > pods else "so the data is divided wrongly"
        message = f"passes {counted(nodes, 'node')} to the trainer, but there {pod_count_with_verb(pods)}, {outcome}"
        words = ("trainer.num_nodes", "--num_nodes")
        yield TRAINER_NODES.problem(container.path, message, f"set num_nodes to {pods}", words=words)


def _read_trainer_number_options(container: LaunchedContainer) -> dict[str, int]:
    """Return the numbers in the Trainer's options, by option. An option with several values is left out. The result is
    empty for a command that is longer than Linux allows. The result is also empty for a command with mpirun, because
    mpirun starts the program in other pods.
    """
    text = " ".join(container.words)
    if container.launch.by in MPI or len(text) > _LONGEST:
        return {}
    is_lightning = _OF_LIGHTNING.search(text) is not None
    given: dict[str, set[int]] = {}
    for is_short, name, number in _TRAINER_OPTION.findall(text):
        if not is_short or is_lightning:
            given.setdefault(name.replace("_", "-"), set()).add(int(number))
    return {name: next(iter(numbers)) for name, numbers in given.items() if len(numbers) == 1}


class HostSlots(NamedTuple):
    """The slots in a list of hosts: their number, a clause that states the number in a message, and the fix for too few
    slots. Without a list, `number` is 0.
    """

    number: int
    clause: str
    fix: str


def slots_of_named_hosts(launch: LaunchedProgram, deadline: Deadline) -> int | None:
    """Return the number of slots of the hosts that a command of mpirun names (`a:4,b` has 5). Return None for other
    commands, for a command without hosts, and if a variable has hosts.
    """
    if launch.by != "mpirun":
        return None
    slots = 0
    for each in deadline.charge_for_items(launch.named_hosts.split(",")):
        host = _HOST.fullmatch(each)
        if host is None:
            return None
        slots += int(host[2] or 1)
    return slots


def sentence_about_lacking_slots(launch: LaunchedProgram, deadline: Deadline) -> str:
    """Return the message for a command with more ranks than slots on the hosts that the command names; "" if the slots
    are enough, or may be enough.
    """
    slots, ranks = slots_of_named_hosts(launch, deadline), launch.ranks or 0
    if slots is None or ranks <= slots or not launch.whole or launch.oversubscribed:
        return ""
    clause = f"the hosts in the command have only {counted(slots, 'slot')}"
    return f"mpirun should start {counted(ranks, 'rank')}, but {clause}, so mpirun fails"


def check_ranks_against_task_hosts(
    containers: Items[LaunchedContainer], hosts: Mapping[str, str], deadline: Deadline
) -> Iterator[Problem]:
    """Compare the ranks of mpirun with the pods of a task, if a variable lists the hosts of the task. `hosts` has the
    task of each variable.
    """
    pods = {container.pod_set: container.pods for container in containers}
    for container in containers:
        launch = container.launch
        match = _VARIABLE.fullmatch(launch.named_hosts) if launch.by == "mpirun" and launch.whole else None
        name = match[1] if match else ""
        slots = pods.get(hosts.get(name, "")) if name not in container.env else None
        clause = (
            f"Open MPI has only the {counted(slots or 0, 'slot')} of the hosts in ${name}, one for each pod of task"
        )
        clause, fix = f"{clause} `{hosts.get(name)}`", _MORE_REPLICAS
        yield from _check_ranks_and_slots(launch, container.path, deadline, HostSlots(slots or 0, clause, fix))


def check_command_against_hostfile(
    launch: LaunchedProgram, path: FieldPath, hosts: int, slots: int, deadline: Deadline
) -> Iterator[Problem]:
    """Compare the ranks of a launcher with the slots of a hostfile: `hosts` hosts with `slots` slots each."""
    is_bound = launch.by in MPI and launch.whole and not launch.hosts
    slots_text = f"{counted(hosts * slots, 'slot')} ({slots} on each of {counted(hosts, 'node')})"
    fix = f"set -np to at most {hosts * slots}, or raise numProcPerNode or numNodes"
    slots_of_file = HostSlots(hosts * slots if is_bound else 0, f"the hostfile has only {slots_text}", fix)
    yield from _check_ranks_and_slots(launch, path, deadline, slots_of_file)


def _check_ranks_and_slots(
    launch: LaunchedProgram, path: FieldPath, deadline: Deadline, slots_of_list: HostSlots
) -> Iterator[Problem]:
    """Report more ranks than slots. The hosts are in the command, or in a list that the command reads."""
    if message := sentence_about_lacking_slots(launch, deadline):
        yield RANKS_AND_SLOTS.problem(path, message, MORE_SLOTS, words=_RANKS)
    if slots_of_list.number and not launch.oversubscribed and (launch.ranks or 0) > slots_of_list.number:
        asks = f"{launch.by} should start {counted(launch.ranks or 0, 'rank')}"
        message = f"{asks}, but {slots_of_list.clause}, so {launch.by} fails"
        yield RANKS_AND_SLOTS.problem(path, message, slots_of_list.fix, words=_RANKS)
