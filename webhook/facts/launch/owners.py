"""Variables by which the pods of a training find each other, and the controllers that overwrite them.

Volcano's plugins pytorch and tensorflow append their variables, and the last one counts. pytorch does nothing without a
master, tensorflow nothing for a single pod. A LeaderWorkerSet puts its own variables first and leaves out others with
their names.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework pytorch.go and tensorflow.go
OnPodCreate; kubernetes-sigs/lws@060ab4da pkg/utils/pod/pod_utils.go addEnvVarsIfNotExists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.facts.launch.member import LAUNCH, LaunchedContainer
from webhook.facts.volcano_objects.defaults import NEED_SERVICE
from webhook.facts.volcano_objects.types import JobSpec
from webhook.rules.problem import Problem

OPERATOR_VARIABLE: Final = LAUNCH.rule(
    "launch/operator-variable",
    title="The container sets a variable that its controller overwrites",
    why="The controller sets this variable in every pod, so the value of the container has no effect.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework",
    function="OnPodCreate",
    severity="low",
    fails="silent",
)
PYTORCH_VARIABLES: Final = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
TENSORFLOW_VARIABLES: Final = ("TF_CONFIG",)
LEADER_WORKER_SET_VARIABLES: Final = ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX")
_WORKER_SET: Final = "LWS_"
_WITH_SERVICE: Final = frozenset(("svc", *NEED_SERVICE))


def check_overwritten_variables(member: LaunchedContainer, owned: Collection[str], owner: str) -> Iterator[Problem]:
    """Report variables of a container that its controller overwrites; variables of LeaderWorkerSet count only with a
    written value, because labels of its pods have the same values.
    """
    for name in owned:
        if member.env.get(name) is not None or (name in member.env and not name.startswith(_WORKER_SET)):
            message = f"sets variable {name}, but this value is ignored because {owner} sets the variable too"
            yield OPERATOR_VARIABLE.problem(member.path, message, f"remove {name}", words=(name,))


class VariableOwner(Struct, frozen=True, kw_only=True):
    """An operator or plugin that sets variables in the containers of some or all pod sets, and its name."""

    variables: Collection[str]
    name: str
    pod_sets: Collection[str] | None = None

    def variables_set_in(self, member: LaunchedContainer) -> Collection[str]:
        """Return the variables that the owner sets in a container."""
        return self.variables if self.pod_sets is None or member.pod_set in self.pod_sets else ()


def owners_of_variables(
    job: JobSpec | None, members: Sequence[LaunchedContainer], *, is_worker_set: bool
) -> tuple[VariableOwner, ...]:
    """Return the owners of an object's variables: plugins of a job of Volcano, or LeaderWorkerSet."""
    if is_worker_set:
        return (VariableOwner(variables=LEADER_WORKER_SET_VARIABLES, name="LeaderWorkerSet"),)
    return tuple(_variable_owners_of_plugins(job, members)) if job is not None else ()


def task_by_host_variable(job: JobSpec, members: Sequence[LaunchedContainer]) -> Mapping[str, str]:
    """Map each variable to the task with the hosts that it lists; plugin svc sets them, some plugins add svc, mpi has
    one more.
    """
    if _WITH_SERVICE.isdisjoint(job.plugins):
        return {}
    names = {f"VC_{each.pod_set.replace('-', '_').upper()}_HOSTS": each.pod_set for each in members}
    return {**names, "MPI_HOST": job.tasks_by_role("mpi")["worker"]} if "mpi" in job.plugins else names


def _variable_owners_of_plugins(job: JobSpec, members: Sequence[LaunchedContainer]) -> Iterator[VariableOwner]:
    names = {member.pod_set for member in members}
    if "pytorch" in job.plugins and (tasks := job.tasks_by_role("pytorch"))["master"] in names:
        everywhere = [name for name in PYTORCH_VARIABLES if name != "RANK"]
        yield VariableOwner(variables=everywhere, name="the plugin pytorch")
        yield VariableOwner(variables=("RANK",), name="the plugin pytorch", pod_sets=(tasks["master"], tasks["worker"]))
    if "tensorflow" in job.plugins and (len(names) > 1 or any((member.pods or 2) > 1 for member in members)):
        yield VariableOwner(variables=TENSORFLOW_VARIABLES, name="the plugin tensorflow")
