"""The plugins of a Job: which there are, their arguments, and the tasks that they look for by name.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins. An argument that a plugin cannot read is logged by
the controller, and the defaults stay from there on; of mpi, the webhook asks for the master.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.facts.check import Group
from webhook.facts.volcano.types import Job, Task
from webhook.facts.volcano_objects.go_flags import Flags
from webhook.facts.volcano_objects.plugins import PLUGINS
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.similar_names import nearest
from webhook.wording import did_you_mean

problem: Final = Group("volcano-job").problem


_LARGEST_PORT: Final = 65535
_MOST_DIGITS: Final = 9
_HELP: Final = frozenset(("h", "help"))
_NEVER: Final[Mapping[str, tuple[str, str]]] = {
    "pytorch": ("master", "the ranks do not know where to meet"),
    "ray": ("head", "no pod is created"),
}
"""The task without which the job of a plugin never runs, and why."""


def roles(job: Job, plugin: str) -> Mapping[str, str]:
    """The tasks that a plugin looks for, by role."""
    return {**PLUGINS[plugin].tasks, **PLUGINS[plugin].read(job.spec.plugins[plugin]).values}


def validate_plugins(job: Job) -> Iterator[Problem]:
    """The plugins exist, and the master of mpi."""
    for name in job.spec.plugins:
        yield from _plugin(name, job)
    if "mpi" in job.spec.plugins:
        yield from _mpi_master(job)


def _plugin(name: str, job: Job) -> Iterator[Problem]:
    if name not in PLUGINS and not is_placeholder(name):
        near = nearest(name.lower(), PLUGINS) or (name.lower() if name.lower() in PLUGINS else "")
        fix = did_you_mean(near, f"use one of {', '.join(sorted(PLUGINS))}")
        yield problem("plugin", job.spec.path("plugins", name), "must be a plugin of Volcano", fix, name)


def _mpi_master(job: Job) -> Iterator[Problem]:
    wanted = roles(job, "mpi")["master"]
    if wanted in job.spec.tasks_by_name or is_placeholder(wanted):
        return
    default = PLUGINS["mpi"].tasks["master"]
    looked_for = f"task `{wanted}`, " + ("the default of --master" if wanted == default else "as --master says")
    message = f"looks for the master in {looked_for}, but the job has no such task"
    yield problem("mpi-master", job.spec.path("plugins", "mpi"), message, _choice("master", wanted))


def _choice(role: str, wanted: str) -> str:
    """What to do where the task of a role does not exist."""
    return f"add --{role}=<task> with the name of one of the tasks, or name a task `{wanted}`"


def advise_plugins(job: Job) -> Iterator[Problem]:
    """Arguments that a plugin cannot read, and tasks that it looks for in vain."""
    for name, arguments in job.spec.plugins.items():
        if name in PLUGINS and name != "env" and not any(map(is_placeholder, arguments)):
            flags = PLUGINS[name].read(arguments)
            yield from _plugin_argument(name, arguments, flags, job)
            if name == "ssh":
                yield from _plugin_keys(flags, job)
                yield from _plugin_port(flags, job)
            yield from _advise_roles(name, {**PLUGINS[name].tasks, **flags.values}, job)


def _plugin_argument(name: str, arguments: Sequence[str], flags: Flags, job: Job) -> Iterator[Problem]:
    if flags.error and flags.error.split("`")[1] not in _HELP:
        message = f"cannot be read because {flags.error}, so the plugin ignores this and all later arguments"
        path = job.spec.path("plugins", name, flags.at)
        yield problem("plugin-argument", path, message, flags.fix, arguments[flags.at])


def _plugin_keys(flags: Flags, job: Job) -> Iterator[Problem]:
    """Keys go in pairs: ssh.go OnJobAdd, withUserProvidedRsaKey."""
    private, public = (bool(flags.values.get(f"ssh-{side}-key")) for side in ("private", "public"))
    path = job.spec.path("plugins", "ssh")
    if private and not public:
        message = "has --ssh-private-key without --ssh-public-key, so the pods cannot log in to each other"
        yield problem("plugin-keys", path, message, "add the public key, or remove the private key to get a new pair")
    elif public and not private:
        message = "has --ssh-public-key without --ssh-private-key, so the plugin ignores the key and makes a new pair"
        yield problem("plugin-keys", path, message, "add the private key, or remove the public key")


def _plugin_port(flags: Flags, job: Job) -> Iterator[Problem]:
    """A port that is none is 22: ssh.go validateSSHPort."""
    port = flags.values.get("ssh-port", "22")
    if port.isdecimal() and not 0 < int(port[:_MOST_DIGITS]) <= _LARGEST_PORT:
        message = f"has --ssh-port={port}, but the plugin ignores this port and uses 22"
        path = job.spec.path("plugins", "ssh")
        yield problem("plugin-port", path, message, f"set a port from 1 to {_LARGEST_PORT}")


def _advise_roles(name: str, wanted: Mapping[str, str], job: Job) -> Iterator[Problem]:
    """The tasks that a plugin looks for; the first mistake is reported."""
    broken = _plugin_task(name, wanted, job) or _plugin_role(name, wanted, job)
    if broken:
        yield broken


def _plugin_task(name: str, wanted: Mapping[str, str], job: Job) -> Problem | None:
    role, outcome = _NEVER.get(name, ("", ""))
    if not role or wanted[role] in job.spec.tasks_by_name:
        return None
    message = f"needs a task `{wanted[role]}`, which does not exist, so {outcome}"
    return problem("plugin-task", job.spec.path("plugins", name), message, _choice(role, wanted[role]))


def _plugin_role(name: str, wanted: Mapping[str, str], job: Job) -> Problem | None:
    reason = _absent_role(name, wanted, job) or _left_out(name, wanted, job)
    return problem("plugin-role", job.spec.path("plugins", name), *reason) if reason else None


def _absent_role(name: str, wanted: Mapping[str, str], job: Job) -> tuple[str, str] | None:
    """An argument that names a task that does not exist. The webhook refuses a Job without the master of mpi."""
    tasks = job.spec.tasks_by_name
    named = {role: wanted[role] for role, default in PLUGINS[name].tasks.items() if wanted[role] != default}
    absent = {role: task for role, task in named.items() if task not in tasks}
    if not absent or (name == "mpi" and "master" in absent):
        return None
    role, task = next(iter(absent.items()))
    message = f"names task `{task}` by --{role}, which does not exist, so the plugin leaves this role out"
    return message, f"write the name of a task, or remove --{role}"


def _left_out(name: str, wanted: Mapping[str, str], job: Job) -> tuple[str, str] | None:
    """A task that has no role."""
    tasks, names = job.spec.tasks, [wanted[role] for role in PLUGINS[name].tasks]
    left = next((task.name for task in tasks if task.name not in names), None)
    if left is None:
        return None
    if name == "tensorflow" and not _is_alone(tasks):
        message = f"does not know the role of task `{left}`, so TF_CONFIG leaves the task out"
        return message, f"add an argument with the role of the task, such as --ps={left}"
    worker = wanted.get("worker") if name != "tensorflow" else None
    if worker is not None and worker not in job.spec.tasks_by_name and len(tasks) > 1:
        message = f"looks for a task `{worker}`, which does not exist, so task `{left}` is not set up"
        return message, f"name that task with --worker={left}"
    return None


def _is_alone(tasks: Sequence[Task]) -> bool:
    """One pod trains without TF_CONFIG."""
    return len(tasks) == 1 and tasks[0].replicas == 1
