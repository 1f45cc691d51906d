"""Ranks that mpirun asks for in a job of Volcano or a TrainJob, and the slots that it is given there.

Sources: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/mpi/mpi.go sets MPI_HOST to
the workers, each once, as plugins/svc/svc.go sets VC_<task>_HOSTS to the pods of a task; kubeflow/trainer@8c0f5059bd51
pkg/runtime/framework/plugins/mpi/mpi.go writes a hostfile with as many slots for each node as processes. Open MPI gives
a host of --host one slot each time that it is named, and starts no more ranks than slots: open-mpi/ompi@006be92d
orte/util/dash_host/dash_host.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from webhook.deadline import Deadline
from webhook.facts.command_lines.command import MPI, LaunchedProgram
from webhook.facts.launch.groups import LAUNCH
from webhook.facts.launch.member import LaunchedContainer
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.collections import Items
from webhook.wording import counted

RANKS_AND_SLOTS: Final = LAUNCH.rule(
    "launch/ranks-and-slots",
    title="mpirun in a job of Volcano or a TrainJob has a slot for every rank.",
    why=(
        "Open MPI starts no more ranks than there are slots, and ends at once. Volcano's plugin mpi names each worker "
        "once in MPI_HOST, which is one slot; the hostfile of a TrainJob has numProcPerNode slots for each node."
    ),
    refused_by="mpirun, when the master starts",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework/mpi/mpi.go",
    function="OnPodCreate",
    fails="start",
)

_VARIABLE: Final = re.compile(r"\$[{(]?([A-Z][A-Z0-9_]*)[})]?")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}(:([0-9]{1,6}))?", re.ASCII)


class HostSlots(NamedTuple):
    """The slots of a list of hosts, 0 where there is none, what they are, and what to do about too few."""

    number: int
    there: str
    fix: str


def slots_of_named_hosts(launch: LaunchedProgram, deadline: Deadline) -> int | None:
    """Return the slots of the hosts that a command names, `a:4,b` has 5; None where it names none, or leaves
    some open.
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
    """Say what is wrong with a command that asks for more ranks than the hosts that it names have slots; "" for
    nothing.
    """
    slots, ranks = slots_of_named_hosts(launch, deadline), launch.ranks or 0
    if slots is None or ranks <= slots or not launch.whole or launch.oversubscribed:
        return ""
    there = f"the hosts in the command have only {counted(slots, 'slot')}"
    return f"mpirun asks for {counted(ranks, 'rank')}, but {there}, so mpirun fails"


_MORE_REPLICAS: Final = "lower -np, raise the replicas of the task, or name hosts with slots, as in host:4"
MORE_SLOTS: Final = "lower -np, or name more hosts or slots, as in host:4"


def check_ranks_against_task_hosts(
    members: Items[LaunchedContainer], hosts: Mapping[str, str], deadline: Deadline
) -> Iterator[Problem]:
    """Check commands of mpirun against the pods of the tasks that variables list, by the names of the variables."""
    pods = {member.pod_set: member.pods for member in members}
    for member in members:
        launch = member.launch
        match = _VARIABLE.fullmatch(launch.named_hosts) if launch.by == "mpirun" and launch.whole else None
        name = match[1] if match else ""
        slots = pods.get(hosts.get(name, "")) if name not in member.env else None
        there = f"Open MPI has only the {counted(slots or 0, 'slot')} of the hosts in ${name}, one for each pod of task"
        there, fix = f"{there} `{hosts.get(name)}`", _MORE_REPLICAS
        yield from _check_ranks_and_slots(launch, member.path, deadline, HostSlots(slots or 0, there, fix))


def check_command_against_hostfile(
    launch: LaunchedProgram, path: FieldPath, hosts: int, slots: int, deadline: Deadline
) -> Iterator[Problem]:
    """Check the command of a launcher against a hostfile with so many slots for each host."""
    is_bound = launch.by in MPI and launch.whole and not launch.hosts
    there = f"{counted(hosts * slots, 'slot')} ({slots} on each of {counted(hosts, 'node')})"
    fix = f"set -np to at most {hosts * slots}, or raise numProcPerNode or numNodes"
    of_file = HostSlots(hosts * slots if is_bound else 0, f"the hostfile has only {there}", fix)
    yield from _check_ranks_and_slots(launch, path, deadline, of_file)


def _check_ranks_and_slots(
    launch: LaunchedProgram, path: FieldPath, deadline: Deadline, of_list: HostSlots
) -> Iterator[Problem]:
    """Report more ranks than slots: of the hosts that a command names, or of those of a list that it reads."""
    if message := sentence_about_lacking_slots(launch, deadline):
        yield RANKS_AND_SLOTS.problem(path, message, MORE_SLOTS)
    if of_list.number and not launch.oversubscribed and (launch.ranks or 0) > of_list.number:
        asks = f"{launch.by} asks for {counted(launch.ranks or 0, 'rank')}"
        yield RANKS_AND_SLOTS.problem(path, f"{asks}, but {of_list.there}, so {launch.by} fails", of_list.fix)
