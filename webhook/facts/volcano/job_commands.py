"""Compares the commands of a Job's tasks with the gang, and with the host files, SSH keys and ranks from the plugins.

The plugin svc names its variables and files after the tasks, with `_` for `-`. The plugin pytorch sets rank 0 in every
pod of the master. The plugin ray finds containers by name, and replaces their commands with `ray start`.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go; pkg/controllers/job/plugins, the function
OnPodCreate of each plugin, also in distributed-framework.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from webhook.facts.command_lines.command import MPI, node_count_range_of_launch
from webhook.facts.subject import Subject
from webhook.facts.volcano.commands import ContainerCommand, read_commands
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.job_plugins import (
    PluginSetup,
    read_plugin_setup,
    warn_of_several_master_pods,
    warn_of_unset_plugin_variables,
)
from webhook.facts.volcano.pod_group import describe_partial_gang
from webhook.facts.volcano_objects.types import Job, Task
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.pods import Container
from webhook.yamltext.placeholders import is_placeholder

PARTIAL_GANG: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/partial-gang",
    title="minAvailable is below the number of pods that train together",
    why=(
        "With a smaller minAvailable the first pods start and wait on their devices for pods that may never be placed."
    ),
    refused_by="nothing; pods wait for each other",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go",
    function="OnSessionOpen",
    fails="waiting",
)
RANKS_AND_SLOTS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ranks-and-slots",
    title="mpirun starts more ranks than the host file has hosts",
    why=(
        "The host file lists each pod once, which is one slot for Open MPI, and mpirun starts no more ranks than slots."
    ),
    refused_by="mpirun, when the launcher starts",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/svc/svc.go",
    fails="start",
)
HOST_FILE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/host-file",
    title="The command reads a host file that the plugin svc does not write",
    why="For each task svc writes /etc/volcano/<task>.host, with `_` for each `-` of the name of the task.",
    refused_by="nothing; the command fails",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/svc/svc.go",
    function="GenerateHosts",
    severity="high",
    fails="start",
)
SSH_KEYS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ssh-keys",
    title="The pods have no SSH keys to log in to each other",
    why=(
        "mpirun and horovodrun start processes in other pods by ssh. The plugin ssh gives all pods of a Job one key. "
        "The plugin mpi turns on the plugin ssh."
    ),
    refused_by="mpirun, when the master starts",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/ssh/ssh.go",
    function="OnPodCreate",
    fails="start",
)
RAY_CONTAINER: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ray-container",
    title="The plugin ray finds no container to start Ray in",
    why=(
        "The plugin looks for containers named head and worker, or for the names in its arguments. Other containers "
        "stay unchanged."
    ),
    refused_by="nothing; Ray does not start",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/ray/ray.go",
    function="OnPodCreate",
    fails="start",
)
RAY_COMMAND: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/ray-command",
    title="The plugin ray replaces the container's command",
    why="The plugin replaces the command with `ray start`, so the program never runs.",
    refused_by="nothing; the command is never run",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/ray/ray.go",
    function="OnPodCreate",
    severity="high",
)
_HOSTS: Final = re.compile(r"MPI_HOST|VC_.+_HOSTS")
_NO_SSH: Final = re.compile(r"rsh_agent|launch-agent|ssh[ -]key|\.ssh\b|--gloo\b")
"""Matches commands that reach other pods without the keys of the plugin ssh."""
_HOST_OPTION: Final = r"-(?:-host|H|host)[ =]\"?"
_LISTED: Final = re.compile(
    rf"(?:{_HOST_OPTION}|\b([A-Z_][A-Z0-9_]*)=\"?)"
    r"(?:`|\$\()\s*cat\s+/etc/volcano/([A-Za-z0-9_.-]+)\.host\s*\|\s*tr\s[^|`)]*[`)]"
)
"""Matches hosts of a file joined with commas, as an argument or in a variable: `cat …/worker.host | tr " " ","`."""
_HOST_VARIABLE: Final = re.compile(rf"{_HOST_OPTION}\$\{{?([A-Z_][A-Z0-9_]*)")
_ASSIGNED: Final = re.compile(r"\b([A-Z_][A-Z0-9_]*)\+?=")
_SEVERAL: Final = 2
_RAY_IMAGE: Final = re.compile(r"(?:^|[/_-])ray(?:[-_:@]|$|/ray)")
_RAY_START: Final = re.compile(r"\bray start\b")


def advise_partial_gang(command: ContainerCommand, setup: PluginSetup) -> Iterator[Problem]:
    """Report a gang that may start with fewer pods than the nodes that a launcher waits for."""
    job, limits = setup.job, node_count_range_of_launch(command.launch)
    if job.spec.has_no_placeholders and limits is not None and job.spec.min_available < limits[0] <= setup.pods:
        message = describe_partial_gang(job.spec.min_available, command.launch.by, limits[0])
        fix = f"set {limits[0]}, or remove minAvailable"
        yield PARTIAL_GANG.problem(job.spec.path("minAvailable"), message, fix, job.spec.min_available)


def warn_of_setup_missing_for_commands(job: Job, subject: Subject) -> Iterator[Problem]:
    """Report what the commands of a Job need but its plugins do not set up."""
    if any(map(is_placeholder, (*job.spec.plugins, *job.spec.tasks_by_name))):
        return
    setup = read_plugin_setup(job, subject)
    for command in read_commands(job, subject):
        yield from warn_of_unset_plugin_variables(command, setup)
        yield from _check_host_file(command, setup)
        yield from _check_ssh_keys(command, setup)
        yield from _check_ranks_and_slots(command, setup)
        yield from advise_partial_gang(command, setup)


def _check_host_file(command: ContainerCommand, setup: PluginSetup) -> Iterator[Problem]:
    """Report host files that a command reads, but that the plugin svc never writes."""
    for name in command.host_files:
        message, file = f"reads /etc/volcano/{name}.host, which does not exist because", name.replace("-", "_")
        if "svc" not in setup.job.spec.plugins:
            why, fix = "only the plugin svc writes this file", "add `svc: []` to the plugins"
            yield HOST_FILE.problem(command.path, f"{message} {why}", fix)
        elif name not in setup.files:
            near = file if file in setup.files else setup.view.nearest(file, setup.files)
            why = (
                "the plugin svc writes `_` for `-` since Volcano 1.4"
                if file in setup.files
                else "no task has this name"
            )
            fix = f"read /etc/volcano/{near}.host" if near else "name a task of the job"
            yield HOST_FILE.problem(command.path, f"{message} {why}", fix)


def _check_ssh_keys(command: ContainerCommand, setup: PluginSetup) -> Iterator[Problem]:
    """Report a launcher that logs in to other pods without keys."""
    if command.launch.by not in MPI or "ssh" in setup.job.spec.plugins or setup.pods < _SEVERAL:
        return
    counts_on_job = command.host_files or any(map(_HOSTS.fullmatch, command.reads))
    if counts_on_job and not _NO_SSH.search(command.script) and not _may_mount_ssh_keys(command):
        why = "but the job has no plugin ssh to give them keys"
        message = f"{command.launch.by} logs in to the other pods by ssh, {why}"
        yield SSH_KEYS.problem(command.path, message, "add `ssh: []` to the plugins")


def _check_ranks_and_slots(command: ContainerCommand, setup: PluginSetup) -> Iterator[Problem]:
    """Report a command with more ranks than slots: mpirun counts each host in a file of the plugin svc as one slot."""
    launch = command.launch
    if launch.by != "mpirun" or not launch.whole or launch.oversubscribed or "svc" not in setup.job.spec.plugins:
        return
    files = {*_host_files_of_mpirun(command.script)}
    task = setup.files.get(files.pop()) if len(files) == 1 else None
    if task is not None and setup.job.spec.has_no_placeholders and 0 < task.replicas < (launch.ranks or 0):
        have = f"{counted(task.replicas, 'slot')}, one for each pod of task `{task.name}`"
        ranks = launch.ranks or 0
        message = f"mpirun asks for {counted(ranks, 'rank')}, but Open MPI has only {have}, so mpirun fails"
        slots = -(-ranks // task.replicas)
        give = f"give each host {counted(slots, 'slot')} (add `| sed 's/$/:{slots}/'` after cat)"
        fix = f"set -np to {task.replicas}, set replicas of the task to {ranks}, or {give}"
        yield RANKS_AND_SLOTS.problem(command.path, message, fix)


def _host_files_of_mpirun(script: str) -> Iterator[str]:
    """Yield the host files that give mpirun its hosts, directly or through a variable that is set once."""
    used, assigned = set(_HOST_VARIABLE.findall(script)), Counter(_ASSIGNED.findall(script))
    for name, file in _LISTED.findall(script):
        if not name or (name in used and assigned[name] == 1):
            yield file


def _may_mount_ssh_keys(command: ContainerCommand) -> bool:
    """Return whether a volume with unknown content, such as a Secret, may contain keys."""
    volumes = command.task.pod_spec.volumes
    return any(source not in ("name", "emptyDir", "downwardAPI") for volume in volumes for source in volume.json)


def warn_of_tasks_with_plugin_roles(job: Job) -> Iterator[Problem]:
    """Yield the problems of the tasks that have a role in a plugin."""
    yield from warn_of_several_master_pods(job)
    if "ray" in job.spec.plugins:
        wanted = {"headContainer": "head", "workerContainer": "worker", **job.spec.tasks_by_role("ray")}
        for role in ("head", "worker"):
            task = job.spec.tasks_by_name.get(wanted[role])
            if task is not None:
                yield from _check_task_starts_ray(task, wanted[f"{role}Container"], role)


def _check_task_starts_ray(task: Task, name: str, role: str) -> Iterator[Problem]:
    """Yield the problems of the container in which the plugin starts Ray."""
    chosen = next((container for container in task.pod_spec.containers if container.name == name), None)
    if chosen is not None:
        yield from _check_command_replaced_by_ray(chosen)
    elif not is_placeholder(name):
        yield from _check_ray_container_name(task, name, role)


def _check_ray_container_name(task: Task, name: str, role: str) -> Iterator[Problem]:
    for container in task.pod_spec.containers:
        if container.is_found_in(_RAY_IMAGE, (container.image,)) and not container.runs(_RAY_START):
            message = f"does not start Ray because the plugin ray sets only the command of a container `{name}`"
            fix = f"rename the container to {name}, or add --{role}Container={container.name} to the plugin"
            yield RAY_CONTAINER.problem(container.path("name"), message, fix, container.name)
            return


def _check_command_replaced_by_ray(container: Container) -> Iterator[Problem]:
    if container.command and not container.runs(_RAY_START):
        message = "is never run because the plugin ray replaces the command with `ray start`"
        fix = "remove command, and start the program with `ray job submit` or in another container"
        yield RAY_COMMAND.problem(container.path("command"), message, fix)
