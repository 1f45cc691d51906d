"""Finds variables in the commands of a Job that none of its plugins sets.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins: OnPodCreate of each sets variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from webhook.facts.volcano.commands import ContainerCommand
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.plugin_setup import PluginSetup
from webhook.problem import Problem

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
"""The plugin that sets each variable."""
_IN_TASKS: Final[Mapping[str, tuple[str, ...]]] = {"MPI_HOST": ("master",), "RANK": ("master", "worker")}
"""The roles of the tasks in which a plugin sets a variable, for those that it does not set in all."""
_OF_TORCH: Final = frozenset(("torchrun", "accelerate", "deepspeed", "python"))
"""Launchers for which a variable of the plugin pytorch has its usual meaning."""
Reason: TypeAlias = tuple[str, str]
"""The reason why a variable is not set, and the fix."""


def warn_of_unset_plugin_variables(command: ContainerCommand, setup: PluginSetup) -> Iterator[Problem]:
    """Yield variables that nobody sets, grouped by the reason."""
    unset: dict[Reason, list[str]] = {}
    for name in command.reads:
        match = _OF_TASK.fullmatch(name)
        reason = (
            _explain_unset_svc_variable(match, setup) if match else _explain_unset_plugin_variable(name, command, setup)
        )
        if reason is not None:
            unset.setdefault(reason, []).append(name)
    for (why, fix), names in unset.items():
        message = f"reads {', '.join(names)}, which {'is' if len(names) == 1 else 'are'} not set because {why}"
        yield PLUGIN_VARIABLE.problem(command.path, message, fix)


def _explain_unset_plugin_variable(name: str, command: ContainerCommand, setup: PluginSetup) -> Reason | None:
    """Return why a plugin's variable is not set; None if it is set or another rule reports it."""
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


def _explain_unset_svc_variable(match: re.Match[str], setup: PluginSetup) -> Reason | None:
    """Return why the hosts of a task, or their number, are not in a variable; None if they are."""
    if "svc" not in setup.job.spec.plugins:
        return "the job has no plugin svc", "add `svc: []` to the plugins, or set every such variable in env"
    if not setup.has_variables:
        return "the plugin svc has --inject-hosts-env=false", "remove the argument, or read the files of /etc/volcano"
    if match[1] in setup.variables:
        return None
    near = setup.view.nearest(match[1], setup.variables)
    return "no task has this name", f"read VC_{near}_{match[2]}" if near else "name a task of the job"
