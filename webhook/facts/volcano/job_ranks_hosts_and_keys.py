"""The plugins of a Job against the commands of its tasks: what a command reads, a plugin has to give.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins: OnPodCreate of each sets variables and files, and
svc names its variables and files after the tasks, with `_` for `-`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.facts.command_lines.command import MPI
from webhook.facts.command_lines.node_limits import limits_of
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.facts.volcano.commands import Command, commands
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.job_plugins import roles
from webhook.facts.volcano.pod_group import partial
from webhook.facts.volcano_objects.go_flags import is_true
from webhook.facts.volcano_objects.plugins import PLUGINS
from webhook.facts.volcano_objects.types import Job, Task
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

RANKS_AND_SLOTS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ranks-and-slots",
    title="mpirun has a host for every rank where a file of the plugin svc lists its hosts.",
    why="The file has each pod of a task once. Open MPI gives a host of --host one slot, and starts no more ranks.",
    refused_by="mpirun, when the launcher starts",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/svc/svc.go",
    fails="start",
)
PLUGIN_VARIABLE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-variable",
    title="The variables that a command reads are set by a plugin of the Job.",
    why=(
        "VC_TASK_INDEX comes from the plugin env, lists of hosts from svc, MPI_HOST from mpi, MASTER_ADDR, WORLD_SIZE "
        "and RANK from pytorch. Without it they are empty."
    ),
    refused_by="nobody; the variable is empty",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins",
    function="OnPodCreate",
    severity="high",
    fails="start",
)
HOST_FILE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/host-file",
    title="The files of hosts that a command reads are written by the plugin svc.",
    why="For each task svc writes /etc/volcano/<task>.host, with `_` for each `-` of the name of the task.",
    refused_by="nobody; the command fails",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/svc/svc.go",
    function="GenerateHosts",
    severity="high",
    fails="start",
)
SSH_KEYS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ssh-keys",
    title="A Job whose pods log in to each other has keys for it.",
    why=(
        "mpirun and horovodrun start processes in other pods by ssh. The plugin ssh, which mpi brings along, gives "
        "all pods of a Job one key."
    ),
    refused_by="mpirun, when the master starts",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/ssh/ssh.go",
    function="OnPodCreate",
    fails="start",
)
PARTIAL_GANG: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/partial-gang",
    title="The gang of a Job is as large as the training that its pods start.",
    why=(
        "With a smaller minAvailable the first pods start and wait on their devices for others that may never get a "
        "place."
    ),
    refused_by="nobody; pods wait for each other",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go",
    function="OnSessionOpen",
    fails="waiting",
)

_OF_TASK: Final = re.compile(r"VC_(.+)_(HOSTS|NUM)")
_OWNERS: Final[Mapping[str, str]] = {
    "VC_TASK_INDEX": "env",
    "VK_TASK_INDEX": "env",
    "MPI_HOST": "mpi",
    "MASTER_ADDR": "pytorch",
    "MASTER_PORT": "pytorch",
    "WORLD_SIZE": "pytorch",
    "RANK": "pytorch",
    "TF_CONFIG": "tensorflow",
}
"""Variables, and the plugin that sets each."""
_IN_TASKS: Final[Mapping[str, tuple[str, ...]]] = {"MPI_HOST": ("master",), "RANK": ("master", "worker")}
"""Those that a plugin does not set in every task: the roles of the tasks."""
_OF_TORCH: Final = frozenset(("torchrun", "accelerate", "deepspeed", "python"))
"""What has to be started for a variable of the plugin pytorch to mean what it does there."""
_HOSTS: Final = re.compile(r"MPI_HOST|VC_.+_HOSTS")
_NO_SSH: Final = re.compile(r"rsh_agent|launch-agent|ssh[ -]key|\.ssh\b|--gloo\b")
"""What a command says that reaches other pods in a way of its own."""
_HOST_OPTION: Final = r"-(?:-host|H|host)[ =]\"?"
_LISTED: Final = re.compile(
    rf"(?:{_HOST_OPTION}|\b([A-Z_][A-Z0-9_]*)=\"?)"
    r"(?:`|\$\()\s*cat\s+/etc/volcano/([A-Za-z0-9_.-]+)\.host\s*\|\s*tr\s[^|`)]*[`)]"
)
"""Hosts of a file with commas between them, as an argument or in a variable: `cat …/worker.host | tr "\\n" ","`."""
_HOST_VARIABLE: Final = re.compile(rf"{_HOST_OPTION}\$\{{?([A-Z_][A-Z0-9_]*)")
_ASSIGNED: Final = re.compile(r"\b([A-Z_][A-Z0-9_]*)\+?=")
_SEVERAL: Final = 2
Reason: TypeAlias = tuple[str, str]
"""Why a variable is not set, and what to do."""


@dataclass(frozen=True, slots=True)
class _Setup:
    """What the plugins of a Job set up for its commands.

    Args:
        job: the Job.
        tasks: the names of its tasks.
        files: the tasks by their names as svc writes them.
        variables: the same in capital letters.
        roles: the tasks that plugins which set variables in some tasks look for.
        has_variables: whether svc sets variables beside its files.
        pods: how many pods the Job has.
        view: compares names.
    """

    job: Job
    tasks: frozenset[str]
    files: Mapping[str, Task]
    variables: frozenset[str]
    roles: Mapping[str, Mapping[str, str]]
    has_variables: bool
    pods: int
    view: View


def advise_commands(job: Job, subject: Subject) -> Iterator[Problem]:
    """What the commands of a Job count on, and its plugins do not give."""
    if any(map(is_placeholder, (*job.spec.plugins, *job.spec.tasks_by_name))):
        return
    setup = _setup(job, subject)
    for command in commands(job, subject):
        yield from _plugin_variable(command, setup)
        yield from _host_file(command, setup)
        yield from _ssh_keys(command, setup)
        yield from _ranks_and_slots(command, setup)
        yield from _partial_gang(command, setup)


def _setup(job: Job, subject: Subject) -> _Setup:
    files = {task.name.replace("-", "_"): task for task in job.spec.tasks}
    service = PLUGINS["svc"].read(job.spec.plugins.get("svc", ())).values
    return _Setup(
        job=job,
        tasks=frozenset(job.spec.tasks_by_name),
        files=files,
        variables=frozenset(map(str.upper, files)),
        roles={name: roles(job, name) for name in ("mpi", "pytorch") if name in job.spec.plugins},
        has_variables=is_true(service.get("inject-hosts-env", "true")),
        pods=job.spec.pods,
        view=subject.view(),
    )


def _plugin_variable(command: Command, setup: _Setup) -> Iterator[Problem]:
    """Variables that nobody sets, those of one reason together."""
    unset: dict[Reason, list[str]] = {}
    for name in command.reads:
        match = _OF_TASK.fullmatch(name)
        reason = _of_task(match, setup) if match else _of_plugin(name, command, setup)
        if reason is not None:
            unset.setdefault(reason, []).append(name)
    for (why, fix), names in unset.items():
        message = f"reads {', '.join(names)}, which {'is' if len(names) == 1 else 'are'} not set because {why}"
        yield PLUGIN_VARIABLE.problem(command.path, message, fix)


def _of_plugin(name: str, command: Command, setup: _Setup) -> Reason | None:
    """Why a variable that some plugin sets is not; None also where another rule says so."""
    owner, job = _OWNERS.get(name, ""), setup.job
    if not owner or (owner == "pytorch" and command.launch.by not in _OF_TORCH):
        return None
    if owner not in job.spec.plugins:
        return f"the job has no plugin {owner}", f"add `{owner}: []` to the plugins, or set every such variable in env"
    if name not in _IN_TASKS:
        return None
    wanted = setup.roles[owner]
    if owner == "mpi" and wanted["worker"] not in setup.tasks:
        return f"the plugin mpi finds no task `{wanted['worker']}`", "name the task of the workers with --worker=<task>"
    tasks = [wanted[role] for role in _IN_TASKS[name]]
    if command.task.name in tasks or wanted["master"] not in setup.tasks:
        return None
    where = f"task{'s' * (len(tasks) > 1)} {' and '.join(f'`{task}`' for task in tasks)}"
    return (
        f"the plugin {owner} sets it only in {where}",
        "read the variable only there, or set every such variable in env",
    )


def _of_task(match: re.Match[str], setup: _Setup) -> Reason | None:
    """Why the list of hosts of a task, or their number, is not in a variable."""
    if "svc" not in setup.job.spec.plugins:
        return "the job has no plugin svc", "add `svc: []` to the plugins, or set every such variable in env"
    if not setup.has_variables:
        return "the plugin svc has --inject-hosts-env=false", "remove the argument, or read the files of /etc/volcano"
    if match[1] in setup.variables:
        return None
    near = setup.view.nearest(match[1], setup.variables)
    return "no task has this name", f"read VC_{near}_{match[2]}" if near else "name a task of the job"


def _host_file(command: Command, setup: _Setup) -> Iterator[Problem]:
    """Files with hosts of tasks that nobody writes."""
    for name in command.host_files:
        message, file = f"reads /etc/volcano/{name}.host, which does not exist because", name.replace("-", "_")
        if "svc" not in setup.job.spec.plugins:
            why, fix = "only the plugin svc writes it", "add `svc: []` to the plugins"
            yield HOST_FILE.problem(command.path, f"{message} {why}", fix)
        elif name not in setup.files:
            near = file if file in setup.files else setup.view.nearest(file, setup.files)
            why = "the plugin svc writes `_` for `-`" if file in setup.files else "no task has this name"
            fix = f"read /etc/volcano/{near}.host" if near else "name a task of the job"
            yield HOST_FILE.problem(command.path, f"{message} {why}", fix)


def _ssh_keys(command: Command, setup: _Setup) -> Iterator[Problem]:
    """A launcher that logs in to other pods, where nobody gives it keys."""
    if command.launch.by not in MPI or "ssh" in setup.job.spec.plugins or setup.pods < _SEVERAL:
        return
    counts_on_job = command.host_files or any(map(_HOSTS.fullmatch, command.reads))
    if counts_on_job and not _NO_SSH.search(command.script) and not _brings_keys(command):
        why = "but the job has no plugin ssh to give them keys"
        message = f"{command.launch.by} logs in to the other pods by ssh, {why}"
        yield SSH_KEYS.problem(command.path, message, "add `ssh: []` to the plugins")


def _ranks_and_slots(command: Command, setup: _Setup) -> Iterator[Problem]:
    """Ranks of mpirun on the hosts of a file of the plugin svc, each of which is one slot for it."""
    launch = command.launch
    if launch.by != "mpirun" or not launch.whole or launch.oversubscribed or "svc" not in setup.job.spec.plugins:
        return
    files = {*_listed_files(command.script)}
    task = setup.files.get(files.pop()) if len(files) == 1 else None
    if task is not None and setup.job.spec.is_filled and 0 < task.replicas < (launch.ranks or 0):
        have = f"{counted(task.replicas, 'slot')}, one for each pod of task `{task.name}`"
        message = f"mpirun asks for {counted(launch.ranks or 0, 'rank')}, but Open MPI has only {have}, so mpirun fails"
        fix = "lower -np, raise the replicas of the task, or name hosts with slots, as in host:4"
        yield RANKS_AND_SLOTS.problem(command.path, message, fix)


def _listed_files(script: str) -> Iterator[str]:
    """The files whose lines become the hosts of mpirun as they are, at once or by way of a variable."""
    used, assigned = set(_HOST_VARIABLE.findall(script)), Counter(_ASSIGNED.findall(script))
    for name, file in _LISTED.findall(script):
        if not name or (name in used and assigned[name] == 1):
            yield file


def _brings_keys(command: Command) -> bool:
    """Whether a Secret, or another volume that nobody sees into, may hold keys."""
    volumes = command.task.pod.volumes
    return any(source not in ("name", "emptyDir", "downwardAPI") for volume in volumes for source in volume.json)


def _partial_gang(command: Command, setup: _Setup) -> Iterator[Problem]:
    """A gang that may start before there is room for all nodes that a launcher waits for."""
    job, limits = setup.job, limits_of(command.launch)
    if job.spec.is_filled and limits is not None and job.spec.min_available < limits[0] <= setup.pods:
        message = partial(job.spec.min_available, command.launch.by, limits[0])
        fix = f"set {limits[0]}, or remove minAvailable"
        yield PARTIAL_GANG.problem(job.spec.path("minAvailable"), message, fix, job.spec.min_available)
