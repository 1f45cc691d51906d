"""Rules for the plugins of a Job: their names and arguments, the tasks that they need, and the variables that they set.

If a plugin cannot read an argument, the controller writes an error to its log, and uses defaults for this argument and
all later arguments. The webhook refuses the plugin mpi without a master task. The plugin svc names its variables and
files after the tasks, with `_` for `-`.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins, the function OnPodCreate of each plugin, and
pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano.commands import ContainerCommand
from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano_objects.plugins import PLUGINS, ParsedFlags, is_true_in_go
from webhook.facts.volcano_objects.types import Job, Task
from webhook.rules.problem import Problem
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean
from webhook.yamltext.placeholders import is_placeholder

PLUGIN: Final = VOLCANO_JOB.rule(
    "volcano-job/plugin",
    title="The plugin does not exist",
    why="Names of plugins are in lower case, and Volcano refuses unknown plugins.",
    function="validateJobCreate",
)
PLUGIN_ARGUMENT: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-argument",
    title="The plugin cannot read its arguments",
    why=(
        "A plugin ignores an unknown argument and all arguments after it, and reports this only in the log of the "
        "controller."
    ),
    refused_by="nothing; the plugin uses its defaults",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins",
)
PLUGIN_KEYS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-keys",
    title="The plugin ssh has only one key of the pair",
    why=(
        "The public key lets the pods log in to each other. Without a private key, the plugin creates its own pair of "
        "keys."
    ),
    refused_by="nothing; logins fail, or other keys are used",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/ssh/ssh.go",
    function="withUserProvidedRsaKey",
    fails="start",
)
PLUGIN_PORT: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-port",
    title="The plugin ssh has an invalid port",
    why="The plugin uses port 22 instead of an invalid port, and says so only in the log of the controller.",
    refused_by="nothing; the plugin uses port 22",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/ssh/ssh.go",
    function="validateSSHPort",
    fails="start",
)
PLUGIN_TASK: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-task",
    title="The task that the plugin needs does not exist",
    why="The plugin pytorch sets no MASTER_ADDR without a master, and the plugin ray creates no pods without a head.",
    refused_by="nothing; the job never runs",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework",
    severity="high",
    fails="waiting",
)
PLUGIN_ROLE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-role",
    title="A plugin such as pytorch leaves a task out, or names a task that does not exist",
    why="A plugin finds tasks by name, and does not set up tasks with other names.",
    refused_by="nothing; the plugin leaves tasks out",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework",
)
PLUGIN_ONE_POD: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-one-pod",
    title="The master, head or chief has several pods",
    why="Plugins set up one pod of these roles. A second pod gets the same rank, or starts the work again.",
    refused_by="nothing; ranks are wrong, or the work starts twice",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework",
    function="OnPodCreate",
)
PLUGIN_VARIABLE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/plugin-variable",
    title="The command reads a variable that no plugin sets in this task",
    why=(
        "The variable is empty in the command. VC_TASK_INDEX comes from the plugin env, lists of hosts from svc, "
        "MPI_HOST from mpi, MASTER_ADDR from pytorch."
    ),
    refused_by="nothing; the variable is empty",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins",
    function="OnPodCreate",
    severity="high",
    fails="start",
)
MPI_MASTER: Final = VOLCANO_JOB.rule(
    "volcano-job/mpi-master",
    title="The plugin mpi finds no master task",
    why=(
        "The plugin sets up the launcher in the master task. If the plugin cannot read an option, it ignores all later "
        "options."
    ),
    function="validateJobCreate",
)
Reason: TypeAlias = tuple[str, str]
"""The reason why a variable is not set, and the fix."""
_PLUGINS_OF_OTHER_BUILDS: Final = frozenset(("configmap1980",))
"""Plugins that only a provider's build of Volcano has. Huawei Cloud's plugin writes the rank table of Ascend 1980."""
_REMOVED_OPTIONS: Final = {("ssh", "no-root"): " since Volcano 1.1"}
"""The release that removed an option, as the end of a message, by plugin and option."""
_LARGEST_PORT: Final = 65535
_MOST_DIGITS: Final = 9
_HELP: Final = frozenset(("h", "help"))
_REQUIRED_TASKS: Final[Mapping[str, tuple[str, str]]] = {
    "pytorch": ("master", "the ranks do not know where to meet"),
    "ray": ("head", "no pod is created"),
}
"""For each plugin, the task that the job needs, and what happens without this task."""
_ONE_POD: Final[Mapping[str, tuple[str, str]]] = {
    "mpi": ("master", "every pod would start the whole program on all workers"),
    "pytorch": ("master", "every pod would get rank 0"),
    "ray": ("head", "the workers join only the first pod"),
    "tensorflow": ("chief", "TensorFlow allows only one chief"),
}
"""For each plugin, the role that must have one pod, and what happens with more pods."""
_SVC_VARIABLE: Final = re.compile(r"VC_(.+)_(HOSTS|NUM)")
_PLUGIN_OF_VARIABLE: Final[Mapping[str, str]] = {
    "VC_TASK_INDEX": "env",
    "VK_TASK_INDEX": "env",
    "MPI_HOST": "mpi",
    "MASTER_ADDR": "pytorch",
    "MASTER_PORT": "pytorch",
    "WORLD_SIZE": "pytorch",
    "RANK": "pytorch",
    "TF_CONFIG": "tensorflow",
}
"""The plugin that sets each variable."""
_ROLES_WITH_VARIABLE: Final[Mapping[str, tuple[str, ...]]] = {"MPI_HOST": ("master",), "RANK": ("master", "worker")}
"""The roles with the variable, for variables that a plugin does not set in every task."""
_TORCH_LAUNCHERS: Final = frozenset(("torchrun", "accelerate", "deepspeed", "python"))
"""Launchers of PyTorch. In commands of other launchers, a variable such as RANK may have another meaning."""


@dataclass(frozen=True, slots=True)
class PluginSetup:
    """What the plugins of a Job set up for its commands.

    Args:
        job: the Job.
        tasks: the names of the tasks.
        files: the tasks by the names of the host files that svc writes.
        variables: the names of the tasks in capital letters, with `_` for `-`. svc names variables after them.
        roles: for each plugin that sets variables only in some tasks, the name of the task of each role.
        has_variables: whether svc sets variables in addition to its files.
        pods: how many pods the Job has.
        view: the view of the cluster, which finds similar names.
    """

    job: Job
    tasks: frozenset[str]
    files: Mapping[str, Task]
    variables: frozenset[str]
    roles: Mapping[str, Mapping[str, str]]
    has_variables: bool
    pods: int
    view: ClusterView


def read_plugin_setup(job: Job, subject: Subject) -> PluginSetup:
    """Return what the plugins of a Job set up."""
    files = {task.name.replace("-", "_"): task for task in job.spec.tasks}
    service = job.spec.plugin_flags["svc"].values if "svc" in job.spec.plugins else {}
    return PluginSetup(
        job=job,
        tasks=frozenset(job.spec.tasks_by_name),
        files=files,
        variables=frozenset(map(str.upper, files)),
        roles={name: job.spec.tasks_by_role(name) for name in ("mpi", "pytorch") if name in job.spec.plugins},
        has_variables=is_true_in_go(service.get("inject-hosts-env", "true")),
        pods=job.spec.pod_count,
        view=subject.cluster_view(),
    )


def check_plugins_exist(job: Job) -> Iterator[Problem]:
    """Yield plugins that do not exist."""
    for name in job.spec.plugins:
        yield from _check_plugin_exists(name, job)


def _check_plugin_exists(name: str, job: Job) -> Iterator[Problem]:
    if name not in PLUGINS and name not in _PLUGINS_OF_OTHER_BUILDS and not is_placeholder(name):
        near = nearest_name(name.lower(), PLUGINS) or (name.lower() if name.lower() in PLUGINS else "")
        fix = did_you_mean(near, f"use one of {', '.join(sorted(PLUGINS))}")
        yield PLUGIN.problem(job.spec.path("plugins", name), "must be a plugin of Volcano", fix, name)


def fix_for_role_without_task(role: str, wanted: str) -> str:
    """Return the fix for a role without a task."""
    return f"add --{role}=<task> with the name of one of the tasks, or name a task `{wanted}`"


def warn_of_plugin_arguments_and_tasks(job: Job) -> Iterator[Problem]:
    """Yield arguments that a plugin cannot read, and tasks that the plugin does not find."""
    for name, arguments in job.spec.plugins.items():
        if name in PLUGINS and name != "env" and not any(map(is_placeholder, arguments)):
            flags = job.spec.plugin_flags[name]
            yield from _check_plugin_argument(name, arguments, flags, job)
            if name == "ssh":
                yield from _check_ssh_key_pair(flags, job)
                yield from _check_ssh_port(flags, job)
            yield from _check_tasks_of_plugin_roles(name, job.spec.tasks_by_role(name), job)


def _check_plugin_argument(name: str, arguments: Sequence[str], flags: ParsedFlags, job: Job) -> Iterator[Problem]:
    if flags.error and flags.unknown not in _HELP:
        why = flags.error + _REMOVED_OPTIONS.get((name, flags.unknown), "")
        message = f"cannot be read because {why}, so the plugin ignores this and all later arguments"
        path = job.spec.path("plugins", name, flags.at)
        yield PLUGIN_ARGUMENT.problem(path, message, flags.fix, arguments[flags.at])


def _check_ssh_key_pair(flags: ParsedFlags, job: Job) -> Iterator[Problem]:
    """Yield a private key without a public key, or the reverse (ssh.go OnJobAdd, withUserProvidedRsaKey)."""
    private, public = (bool(flags.values.get(f"ssh-{side}-key")) for side in ("private", "public"))
    path = job.spec.path("plugins", "ssh")
    if private and not public:
        message = "has --ssh-private-key without --ssh-public-key, so the pods cannot log in to each other"
        yield PLUGIN_KEYS.problem(path, message, "add the public key, or remove the private key to get a new pair")
    elif public and not private:
        message = "has --ssh-public-key without --ssh-private-key, so the plugin ignores the key and makes a new pair"
        yield PLUGIN_KEYS.problem(path, message, "add the private key, or remove the public key")


def _check_ssh_port(flags: ParsedFlags, job: Job) -> Iterator[Problem]:
    """Yield an invalid port; the plugin uses 22 instead (ssh.go validateSSHPort)."""
    port = flags.values.get("ssh-port", "22")
    if port.isdecimal() and not 0 < int(port[:_MOST_DIGITS]) <= _LARGEST_PORT:
        message = f"has --ssh-port={port}, but the plugin ignores this port and uses 22"
        path = job.spec.path("plugins", "ssh")
        yield PLUGIN_PORT.problem(path, message, f"set a port from 1 to {_LARGEST_PORT}")


def _check_tasks_of_plugin_roles(name: str, wanted: Mapping[str, str], job: Job) -> Iterator[Problem]:
    """Yield the first problem of the tasks that a plugin looks for."""
    broken = _missing_required_task_problem(name, wanted, job) or _plugin_role_problem(name, wanted, job)
    if broken:
        yield broken


def _missing_required_task_problem(name: str, wanted: Mapping[str, str], job: Job) -> Problem | None:
    role, outcome = _REQUIRED_TASKS.get(name, ("", ""))
    if not role or wanted[role] in job.spec.tasks_by_name:
        return None
    message = f"needs a task `{wanted[role]}`, which does not exist, so {outcome}"
    return PLUGIN_TASK.problem(job.spec.path("plugins", name), message, fix_for_role_without_task(role, wanted[role]))


def _plugin_role_problem(name: str, wanted: Mapping[str, str], job: Job) -> Problem | None:
    reason = _explain_argument_with_missing_task(name, wanted, job) or _explain_task_without_role(name, wanted, job)
    return PLUGIN_ROLE.problem(job.spec.path("plugins", name), *reason) if reason else None


def _explain_argument_with_missing_task(name: str, wanted: Mapping[str, str], job: Job) -> tuple[str, str] | None:
    """Return the message and the fix for an argument that names a missing task; None without such an argument."""
    tasks = job.spec.tasks_by_name
    named = {role: wanted[role] for role, default in PLUGINS[name].tasks.items() if wanted[role] != default}
    absent = {role: task for role, task in named.items() if task not in tasks}
    if not absent or (name == "mpi" and "master" in absent):
        return None
    role, task = next(iter(absent.items()))
    message = f"names task `{task}` in --{role}, but no task has this name, so the plugin sets up no task for this role"
    return message, f"write the name of a task, or remove --{role}"


def _explain_task_without_role(name: str, wanted: Mapping[str, str], job: Job) -> tuple[str, str] | None:
    """Return the message and the fix for a task that has no role in a plugin, or None."""
    tasks, names = job.spec.tasks, [wanted[role] for role in PLUGINS[name].tasks]
    left = next((task.name for task in tasks if task.name not in names), None)
    if left is None:
        return None
    if name == "tensorflow" and not _has_single_pod(tasks):
        message = f"does not know the role of task `{left}`, so TF_CONFIG leaves the task out"
        return message, f"add an argument with the role of the task, such as --ps={left}"
    worker = wanted.get("worker") if name != "tensorflow" else None
    if worker is not None and worker not in job.spec.tasks_by_name and len(tasks) > 1:
        message = f"looks for a task `{worker}`, which does not exist, so task `{left}` is not set up"
        return message, f"name that task with --worker={left}"
    return None


def _has_single_pod(tasks: Sequence[Task]) -> bool:
    """Return whether a job has a single pod, which trains without TF_CONFIG."""
    return len(tasks) == 1 and tasks[0].replicas == 1


def warn_of_several_master_pods(job: Job) -> Iterator[Problem]:
    """Yield a master, head or chief task of a plugin with several pods."""
    for plugin, (role, outcome) in _ONE_POD.items():
        task = job.spec.tasks_by_name.get(job.spec.tasks_by_role(plugin)[role]) if plugin in job.spec.plugins else None
        if task is not None and task.replicas > 1:
            message = f"must be 1 because the task is the {role} of the plugin {plugin}, and {outcome}"
            yield PLUGIN_ONE_POD.problem(task.path("replicas"), message, "set 1", task.replicas)


def warn_of_unset_plugin_variables(command: ContainerCommand, setup: PluginSetup) -> Iterator[Problem]:
    """Yield variables that are never set, grouped by the reason."""
    unset: dict[Reason, list[str]] = {}
    for name in command.reads:
        match = _SVC_VARIABLE.fullmatch(name)
        reason = (
            _explain_unset_svc_variable(match, setup) if match else _explain_unset_plugin_variable(name, command, setup)
        )
        if reason is not None:
            unset.setdefault(reason, []).append(name)
    for (why, fix), names in unset.items():
        message = f"reads {', '.join(names)}, which {'is' if len(names) == 1 else 'are'} not set because {why}"
        yield PLUGIN_VARIABLE.problem(command.path, message, fix)


def _explain_unset_plugin_variable(name: str, command: ContainerCommand, setup: PluginSetup) -> Reason | None:
    """Return why a plugin's variable is not set; None if the variable is set, or if another rule reports the
    variable.
    """
    owner, job = _PLUGIN_OF_VARIABLE.get(name, ""), setup.job
    if not owner or (owner == "pytorch" and command.launch.by not in _TORCH_LAUNCHERS):
        return None
    if owner not in job.spec.plugins:
        return (
            f"the job has no plugin {owner}",
            f"add `{owner}: []` to the plugins, or set each of these variables in env",
        )
    if name not in _ROLES_WITH_VARIABLE:
        return None
    wanted = setup.roles[owner]
    if owner == "mpi" and wanted["worker"] not in setup.tasks:
        return f"the plugin mpi finds no task `{wanted['worker']}`", "name the task of the workers with --worker=<task>"
    tasks = [wanted[role] for role in _ROLES_WITH_VARIABLE[name]]
    if command.task.name in tasks or wanted["master"] not in setup.tasks:
        return None
    where = f"task{'s' * (len(tasks) > 1)} {' and '.join(f'`{task}`' for task in tasks)}"
    return (
        f"the plugin {owner} sets this variable only in {where}",
        "read the variable only there, or set each of these variables in env",
    )


def _explain_unset_svc_variable(match: re.Match[str], setup: PluginSetup) -> Reason | None:
    """Return why svc does not set VC_<task>_HOSTS or VC_<task>_NUM; None if svc sets the variable."""
    if "svc" not in setup.job.spec.plugins:
        return "the job has no plugin svc", "add `svc: []` to the plugins, or set each of these variables in env"
    if not setup.has_variables:
        return "the plugin svc has --inject-hosts-env=false", "remove the argument, or read the files of /etc/volcano"
    if match[1] in setup.variables:
        return None
    near = setup.view.nearest(match[1], setup.variables)
    return "no task has this name", f"read VC_{near}_{match[2]}" if near else "name a task of the job"


def validate_mpi_master(job: Job) -> Iterator[Problem]:
    """Yield the problem of a missing master task, if the Job has the plugin mpi."""
    if "mpi" not in job.spec.plugins:
        return
    wanted = job.spec.tasks_by_role("mpi")["master"]
    if wanted in job.spec.tasks_by_name or is_placeholder(wanted):
        return
    default = PLUGINS["mpi"].tasks["master"]
    looked_for = f"task `{wanted}`, " + ("the default of --master" if wanted == default else "as --master says")
    message = f"looks for the master in {looked_for}, but the job has no such task"
    yield MPI_MASTER.problem(job.spec.path("plugins", "mpi"), message, fix_for_role_without_task("master", wanted))
