"""The plugins of a Job: their arguments, and the tasks that they look for by name.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins. An argument that a plugin cannot read is logged by
the controller, and the defaults stay from there on; of mpi, the webhook asks for the master.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.volcano.job import Job, problem
from webhook.facts.volcano_objects.plugins import PLUGINS
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.similar_names import nearest
from webhook.wording import did_you_mean

_LARGEST_PORT: Final = 65535
_MOST_DIGITS: Final = 9
_HELP: Final = frozenset(("h", "help"))
_NEVER: Final[Mapping[str, tuple[str, str]]] = {
    "pytorch": ("master", "the ranks do not know where to meet"),
    "ray": ("head", "no pod is created"),
}
"""The task without which the job of a plugin never runs, and why."""


def validate_plugins(job: Job) -> Iterator[Problem]:
    """The plugins exist, and the master of mpi."""
    for name in job.deadline.each(job.plugins):
        if name not in PLUGINS and not is_placeholder(name):
            near = nearest(name.lower(), PLUGINS) or (name.lower() if name.lower() in PLUGINS else "")
            fix = did_you_mean(near, f"use one of {', '.join(sorted(PLUGINS))}")
            yield problem("plugin", (*job.at, "plugins", name), "must be a plugin of Volcano", fix, name)
    if "mpi" in job.plugins:
        wanted = roles(job, "mpi")["master"]
        if wanted not in job.places() and not is_placeholder(wanted):
            default = PLUGINS["mpi"].tasks["master"]
            looked_for = f"task `{wanted}`, " + ("the default of --master" if wanted == default else "as --master says")
            message = f"looks for the master in {looked_for}, but the job has no such task"
            yield problem("mpi-master", (*job.at, "plugins", "mpi"), message, _choice("master", wanted))


def _choice(role: str, wanted: str) -> str:
    """What to do where the task of a role does not exist."""
    return f"add --{role}=<task> with the name of one of the tasks, or name a task `{wanted}`"


def roles(job: Job, plugin: str) -> Mapping[str, str]:
    """The tasks that a plugin looks for, by role."""
    known = PLUGINS[plugin]
    return {**known.tasks, **known.read(job.plugins[plugin]).values}


def advise_plugins(job: Job) -> Iterator[Problem]:
    """Arguments that a plugin cannot read, and tasks that it looks for in vain."""
    places = job.places()
    for name, arguments in job.deadline.each(job.plugins.items()):
        known = PLUGINS.get(name)
        if known is None or name == "env" or any(map(is_placeholder, job.deadline.each(arguments))):
            continue
        flags = known.read(arguments)
        if flags.error and flags.error.split("`")[1] not in _HELP:
            message = f"cannot be read because {flags.error}, so the plugin ignores this and all later arguments"
            path = (*job.at, "plugins", name, flags.at)
            yield problem("plugin-argument", path, message, flags.fix, arguments[flags.at])
        if name == "ssh":
            yield from _advise_keys(flags.values, (*job.at, "plugins", name))
        wanted = {**known.tasks, **flags.values}
        yield from _advise_roles(name, {role: wanted[role] for role in known.tasks}, places, job)


def _advise_keys(given: Mapping[str, str], at: FieldPath) -> Iterator[Problem]:
    """Keys go in pairs, and a port that is none is 22: ssh.go OnJobAdd, withUserProvidedRsaKey and validateSSHPort."""
    private, public = (bool(given.get(f"ssh-{side}-key")) for side in ("private", "public"))
    if private and not public:
        message = "has --ssh-private-key without --ssh-public-key, so the pods cannot log in to each other"
        yield problem("plugin-keys", at, message, "add the public key, or remove the private key to get a new pair")
    elif public and not private:
        message = "has --ssh-public-key without --ssh-private-key, so the plugin ignores the key and makes a new pair"
        yield problem("plugin-keys", at, message, "add the private key, or remove the public key")
    port = given.get("ssh-port", "22")
    if port.isdecimal() and not 0 < int(port[:_MOST_DIGITS]) <= _LARGEST_PORT:
        message = f"has --ssh-port={port}, but the plugin ignores this port and uses 22"
        yield problem("plugin-port", at, message, f"set a port from 1 to {_LARGEST_PORT}")


def _advise_roles(name: str, wanted: Mapping[str, str], places: Mapping[str, object], job: Job) -> Iterator[Problem]:
    at = (*job.at, "plugins", name)
    named = {role: task for role, task in wanted.items() if task not in places and task != PLUGINS[name].tasks[role]}
    if name in _NEVER:
        role, outcome = _NEVER[name]
        if wanted[role] not in places:
            message = f"needs a task `{wanted[role]}`, which does not exist, so {outcome}"
            yield problem("plugin-task", at, message, _choice(role, wanted[role]))
            return
    for role, task in named.items() if name != "mpi" or "master" not in named else ():
        message = f"names task `{task}` by --{role}, which does not exist, so the plugin leaves this role out"
        yield problem("plugin-role", at, message, f"write the name of a task, or remove --{role}")
        return
    if name == "tensorflow":
        left = [task.name for task in job.tasks if task.name not in wanted.values()]
        if left and not _is_alone(job):
            message = f"does not know the role of task `{left[0]}`, so TF_CONFIG leaves the task out"
            fix = f"add an argument with the role of the task, such as --ps={left[0]}"
            yield problem("plugin-role", at, message, fix)
    elif "worker" in wanted and wanted["worker"] not in places and len(job.tasks) > 1:
        left = [task.name for task in job.tasks if task.name not in wanted.values()]
        if left:
            message = f"looks for a task `{wanted['worker']}`, which does not exist, so task `{left[0]}` is not set up"
            yield problem("plugin-role", at, message, f"name that task with --worker={left[0]}")


def _is_alone(job: Job) -> bool:
    """One pod trains without TF_CONFIG."""
    return len(job.tasks) == 1 and job.tasks[0].replicas == 1
