"""Chooses the rules for the commands of each kind: processes, nodes, ranks, and variables of controllers.

The command of a TrainJob is the command after the merge with its runtime. In jobs of the Training Operator and in
TrainJobs, an operator sets some of the numbers of processes, nodes and ranks. Other modules check the numbers that an
operator sets, and this module checks the numbers in commands.

Controllers overwrite the variables by which the pods of a training find each other. Volcano's plugins pytorch and
tensorflow append variables, and the last value counts. The plugin pytorch does nothing without a master, and the plugin
tensorflow does nothing for a single pod. LeaderWorkerSet puts its own variables first, and drops variables of the
container with the same names.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework pytorch.go and tensorflow.go
OnPodCreate; kubernetes-sigs/lws@060ab4da pkg/utils/pod/pod_utils.go addEnvVarsIfNotExists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.paths import FieldPath, get
from webhook.facts.command_lines.command import LaunchedProgram, cached_launch_of_json, launch_of_json
from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.launch import nodes_and_ranks, processes_and_slots
from webhook.facts.launch.member import (
    INDEXED,
    KUBEFLOW,
    LAUNCH,
    UNRELATED,
    LaunchedContainer,
    PodsTrainingTogether,
    PyTorchJob,
    read_launched_containers,
)
from webhook.facts.launch.nodes_and_ranks import MORE_NODES_THAN_PODS
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.train_job_and_runtime_fields import changes_more_than_suspend
from webhook.facts.volcano_objects import types
from webhook.facts.volcano_objects.defaults import NEED_SERVICE
from webhook.facts.volcano_objects.types import JobSpec
from webhook.rules.problem import Problem
from webhook.typed.collections import Items

OPERATOR_VARIABLE: Final = LAUNCH.rule(
    "launch/operator-variable",
    title="The container sets a variable that its controller overwrites",
    why="The controller sets this variable in every pod, so the value in the container has no effect.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins/distributed-framework",
    function="OnPodCreate",
    severity="low",
    fails="silent",
)
PYTORCH_VARIABLES: Final = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
TENSORFLOW_VARIABLES: Final = ("TF_CONFIG",)
LEADER_WORKER_SET_VARIABLES: Final = ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX")
_WORKER_SET_TEMPLATE: Final = ("leaderWorkerTemplate",)
"""The field that contains the templates of a LeaderWorkerSet, also inside another kind."""
_WITH_SERVICE: Final = frozenset(("svc", *NEED_SERVICE))
_BY_FIELD: Final = "by fieldRef to metadata."


def check_overwritten_variables(container: LaunchedContainer, owned: Collection[str], owner: str) -> Iterator[Problem]:
    """Report variables of a container that the controller overwrites."""
    names = [name for name in owned if name in container.env]
    if names:
        yield _problem_of_variables(container.path, names, owner)


def check_variables_of_worker_sets(subject: Subject) -> Iterator[Problem]:
    """Report variables of containers and init containers that LeaderWorkerSet overwrites, also in a kind that creates
    LeaderWorkerSets. A variable with a value from a field of the pod is not reported, because the field may be a label
    with the same value.
    """
    for podset in subject.once(pod_sets).all:
        if podset.path[-2:-1] == _WORKER_SET_TEMPLATE:
            for container in template_of(podset, subject).spec.all_containers():
                values = container.environment.by_name()
                names = [name for name in LEADER_WORKER_SET_VARIABLES if values.get(name) is not None]
                if names:
                    yield _problem_of_variables(podset.locate(container.at), names, "LeaderWorkerSet")


def _problem_of_variables(path: FieldPath, names: Sequence[str], owner: str) -> Problem:
    fix = f"remove {names[0]}" if len(names) == 1 else "remove the variables"
    return OPERATOR_VARIABLE.problem(path, message_of_overwritten_variables(names, owner), fix, words=(names[0],))


def message_of_overwritten_variables(names: Sequence[str], owner: str) -> str:
    """Return the message about variables of a container that `owner` sets too."""
    if len(names) == 1:
        return f"sets variable {names[0]}, but this value is ignored because {owner} sets the variable too"
    names_text = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"sets variables {names_text}, but these values are ignored because {owner} sets the variables too"


class VariableOwner(Struct, frozen=True, kw_only=True):
    """An operator or plugin that sets variables in the containers of `pod_sets`; None means all pod sets."""

    variables: Collection[str]
    name: str
    pod_sets: Collection[str] | None = None

    def variables_set_in(self, container: LaunchedContainer) -> Collection[str]:
        """Return the variables that the owner sets in a container."""
        return self.variables if self.pod_sets is None or container.pod_set in self.pod_sets else ()


def owners_of_variables(job: JobSpec | None, containers: Sequence[LaunchedContainer]) -> tuple[VariableOwner, ...]:
    """Return the plugins of a Volcano Job that set variables in its pods."""
    return tuple(_variable_owners_of_plugins(job, containers)) if job is not None else ()


def task_by_host_variable(job: JobSpec, containers: Sequence[LaunchedContainer]) -> Mapping[str, str]:
    """Return the task of each variable that lists the hosts of a task.

    The plugin svc sets these variables, and the plugin mpi sets one more variable. Some plugins turn on the plugin svc.
    """
    if _WITH_SERVICE.isdisjoint(job.plugins):
        return {}
    names = {f"VC_{each.pod_set.replace('-', '_').upper()}_HOSTS": each.pod_set for each in containers}
    return {**names, "MPI_HOST": job.tasks_by_role("mpi")["worker"]} if "mpi" in job.plugins else names


def _variable_owners_of_plugins(job: JobSpec, containers: Sequence[LaunchedContainer]) -> Iterator[VariableOwner]:
    names = {container.pod_set for container in containers}
    if "pytorch" in job.plugins and (tasks := job.tasks_by_role("pytorch"))["master"] in names:
        everywhere = [name for name in PYTORCH_VARIABLES if name != "RANK"]
        yield VariableOwner(variables=everywhere, name="the plugin pytorch")
        yield VariableOwner(variables=("RANK",), name="the plugin pytorch", pod_sets=(tasks["master"], tasks["worker"]))
    if "tensorflow" in job.plugins and (len(names) > 1 or any((container.pods or 2) > 1 for container in containers)):
        yield VariableOwner(variables=TENSORFLOW_VARIABLES, name="the plugin tensorflow")


def warn_of_launch_commands(subject: Subject) -> Iterator[Problem]:
    """Yield every warning about what the containers of an object start."""
    listed = subject.once(read_launched_containers)
    operator_sets_number = subject.group_kind == (KUBEFLOW, "PyTorchJob")
    for container in listed:
        # other rules compare the processes of a PyTorchJob with extended resources, but not with claims
        if not operator_sets_number or container.has_claims:
            yield from processes_and_slots.check_processes_match_gpus(
                container, operator_sets_number=operator_sets_number
            )
    if subject.group_kind in UNRELATED:
        yield from processes_and_slots.check_trainer_devices_and_nodes(listed, None)
    else:
        yield from _warn_of_launched_containers(listed, subject)


def _warn_of_launched_containers(listed: Items[LaunchedContainer], subject: Subject) -> Iterator[Problem]:
    if subject.group_kind[0] == KUBEFLOW:
        if subject.group_kind[1] == "PyTorchJob":
            yield from _advise_pytorch_job(listed, subject)
        return
    job = _read_volcano_job(subject)
    together = _pods_training_together(listed, job.plugins if job is not None else (), subject)
    yield from nodes_and_ranks.check_launcher_nodes_match_pods(listed, together)
    yield from processes_and_slots.check_trainer_devices_and_nodes(listed, together)
    setting = owners_of_variables(job, listed)
    worker_set = LEADER_WORKER_SET_VARIABLES if subject.group_kind == LEADER_WORKER_SET else ()
    for container in listed:
        owned = [name for owner in setting for name in owner.variables_set_in(container)] or worker_set
        for by in dict.fromkeys(owner.name for owner in setting):
            variables = [name for owner in setting if owner.name == by for name in owner.variables_set_in(container)]
            yield from check_overwritten_variables(container, variables, by)
        yield from nodes_and_ranks.check_rank_fixed_in_template(container, owned, _pod_index_as_variable(subject))
        yield from nodes_and_ranks.check_address_of_pod(container, together, subject)
    if job is not None and job.plugins:
        yield from processes_and_slots.check_ranks_against_task_hosts(
            listed, task_by_host_variable(job, listed), subject.deadline
        )


def _advise_pytorch_job(listed: Items[LaunchedContainer], subject: Subject) -> Iterator[Problem]:
    """Check nodes and ranks of a PyTorchJob. Other rules report more nodes than pods, and variables that the operator
    overwrites.
    """
    spec = subject.typed(PyTorchJob).spec
    has_master = spec.pytorch_replica_specs.get("Master") is not None
    for container in listed:
        yield from nodes_and_ranks.check_rank_fixed_in_template(
            container,
            PYTORCH_VARIABLES if has_master else (),
            f"{_BY_FIELD}labels['training.kubeflow.org/replica-index']",
        )
    if spec.elastic_policy is not None:
        yield from processes_and_slots.check_trainer_devices_and_nodes(listed, None)
        return
    counts = [container.pods for container in listed if container.path[-1:] == (0,)]
    pods = None if None in counts else sum(count or 0 for count in counts)
    together = PodsTrainingTogether(
        pods=pods, is_one=True, may_train_with_other_objects=False, is_ranked=True, index="RANK"
    )
    for each in nodes_and_ranks.check_launcher_nodes_match_pods(listed, together):
        if each.code != MORE_NODES_THAN_PODS.id:
            yield each
    yield from processes_and_slots.check_trainer_devices_and_nodes(listed, together)


def _pods_training_together(
    listed: Sequence[LaunchedContainer], plugins: Collection[str], subject: Subject
) -> PodsTrainingTogether:
    counts = {container.pod_set: container.pods for container in listed}
    pods = None if None in counts.values() else sum(count or 0 for count in counts.values())
    if subject.group_kind == ("jobset.x-k8s.io", "JobSet"):  # replicas may train together or separately
        counted = subject.fact("podSets")
        pods = None if any(each["pods"] is None for each in counted) else sum(each["pods"] for each in counted)
    return PodsTrainingTogether(
        pods=pods,
        is_one=subject.group_kind == LEADER_WORKER_SET or "pytorch" in plugins,
        may_train_with_other_objects=subject.group_kind in INDEXED and subject.group_kind[1] != "JobSet",
        is_ranked=False,
        index=_pod_index_as_argument(subject),
    )


def _pod_index_as_argument(subject: Subject) -> str:
    """Return how an argument gets the index of a pod, as a text for a fix."""
    if subject.group_kind in INDEXED:
        return "$(JOB_COMPLETION_INDEX), with completionMode: Indexed"
    is_worker_set = subject.group_kind == LEADER_WORKER_SET
    return "$(LWS_WORKER_INDEX)" if is_worker_set else "$(VC_TASK_INDEX), with the plugin env"


def _pod_index_as_variable(subject: Subject) -> str:
    """Return how a variable gets the index of a pod, as a text for a fix. $(JOB_COMPLETION_INDEX) and $(VC_TASK_INDEX)
    do not work in a variable: the controllers of the Jobs add these variables after all other variables.

    Source: kubernetes/kubernetes v1.36.2 pkg/controller/job/indexed_job_utils.go addCompletionIndexEnvVariable;
    volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go createJobPod.
    """
    if subject.group_kind in INDEXED:
        return f"{_BY_FIELD}annotations['batch.kubernetes.io/job-completion-index'], with completionMode: Indexed"
    is_worker_set = subject.group_kind == LEADER_WORKER_SET
    return "to $(LWS_WORKER_INDEX)" if is_worker_set else f"{_BY_FIELD}annotations['volcano.sh/task-index']"


def _read_volcano_job(subject: Subject) -> JobSpec | None:
    """Return the spec of a job of Volcano, or of the jobs of a template; None for other kinds."""
    at = types.SPECS.get(subject.group_kind)
    return JobSpec.of(get(subject.object, at), at, subject.reading_context) if at else None


def check_launch_of_train_job(subject: Subject) -> Iterator[Problem]:
    """Check the nodes and ranks of a TrainJob after the merge with its runtime. Other rules check the processes."""
    job = subject.once(merge_train_job)
    if not job.runtime.is_found or job.node_container is None or not changes_more_than_suspend(subject):
        return
    for each in _check_command_of_train_job(job, launch_of_training_container(subject)):
        yield replace(each, path=place_of_launcher_options(subject))


def _check_command_of_train_job(job: MergedTrainJob, started: LaunchedProgram) -> Iterator[Problem]:
    """Report the problems of the command of a TrainJob; the caller sets the paths of the problems."""
    if job.plugin == "torch":
        words = () if job.node_container is None else job.node_container.words
        container = LaunchedContainer(pod_set="", path=(), launch=started, pods=job.number_of_nodes, words=words)
        together = PodsTrainingTogether(
            pods=job.number_of_nodes,
            is_one=True,
            may_train_with_other_objects=False,
            is_ranked=True,
            index="PET_NODE_RANK",
        )
        yield from nodes_and_ranks.check_launcher_nodes_match_pods((container,), together)
    elif job.plugin == "mpi" and job.processes.count:
        counts = (replicated.parallelism for replicated in job.replicated_jobs if replicated.name == "node")
        hosts = sum(counts) + job.runtime.spec.ml_policy.mpi.run_launcher_as_node
        yield from processes_and_slots.check_command_against_hostfile(
            started, (), hosts, job.processes.count, job.object.reading.deadline
        )


def launch_of_training_container(subject: Subject) -> LaunchedProgram:
    """Return what the command of the container that trains starts."""
    node = subject.once(merge_train_job).node_container
    return cached_launch_of_json({} if node is None else node.json, subject)


def place_of_launcher_options(subject: Subject) -> str:
    """Return the path of the launcher's options: the command or the arguments, in the TrainJob or in the runtime."""
    job = subject.once(merge_train_job)
    field = "command"
    if job.node_container is not None and job.node_container.args:
        by_command = launch_of_json({**job.node_container.json, "args": []}, subject.deadline)
        field = "command" if by_command.by and by_command == launch_of_training_container(subject) else "args"
    return f"spec.trainer.{field}" if job.trainer.json.get(field) else job.path_for_runtime_problem(is_own=False)
