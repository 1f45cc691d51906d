"""The checks of what launchers start: processes, nodes, ranks and variables, in each kind that makes pods.

Jobs of the Training Operator and TrainJobs have rules of their own about numbers that their operators set; here they
are asked what those leave open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from webhook.facts.check import Check
from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.launch import mpi_ranks_and_slots, pods_and_nodes, processes, ranks, trainers, variables
from webhook.facts.launch.member import (
    LaunchedContainer,
    PodsTrainingTogether,
    may_run_launcher,
    read_launched_containers,
)
from webhook.facts.launch.owners import owners_of_variables, task_by_host_variable
from webhook.facts.launch.pods_and_nodes import MORE_NODES_THAN_PODS
from webhook.facts.launch.train_jobs import check_launch_of_train_job
from webhook.facts.launch.types import PyTorchJob
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import kinds
from webhook.facts.volcano_objects.types import JobSpec
from webhook.paths import get
from webhook.problem import Problem
from webhook.typed.collections import Items

_KUBEFLOW: Final = "kubeflow.org"
_LWS: Final = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_INDEXED: Final = frozenset((("batch", "Job"), ("batch", "CronJob"), ("jobset.x-k8s.io", "JobSet")))
_OTHERS: Final = frozenset(
    (
        ("", "Pod"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService")),
    )
)
"""Kinds whose pods need not know each other."""
_OPERATORS: Final = frozenset(
    (_KUBEFLOW, kind) for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob")
)


def warn_of_launch_commands(subject: Subject) -> Iterator[Problem]:
    """Yield every warning about what the containers of an object start."""
    if subject.group_kind in _OTHERS and not may_run_launcher(subject):
        return
    listed = subject.once(read_launched_containers)
    is_told = subject.group_kind == (_KUBEFLOW, "PyTorchJob")
    for member in listed:
        if not is_told or member.has_claims:  # the number of its resources is what its own rules compare
            yield from processes.check_processes_match_gpus(member, is_told=is_told)
    if subject.group_kind in _OTHERS:
        yield from trainers.check_trainer_devices_and_nodes(listed, None)
    else:
        yield from _warn_of_launched_containers(listed, subject)


def _warn_of_launched_containers(listed: Items[LaunchedContainer], subject: Subject) -> Iterator[Problem]:
    if subject.group_kind[0] == _KUBEFLOW:
        if subject.group_kind[1] == "PyTorchJob":
            yield from _advise_pytorch_job(listed, subject)
        return
    job = _read_volcano_job(subject)
    together = _pods_training_together(listed, job.plugins if job is not None else (), subject)
    yield from pods_and_nodes.check_launcher_nodes_match_pods(listed, together)
    yield from trainers.check_trainer_devices_and_nodes(listed, together)
    setting = owners_of_variables(job, listed, is_worker_set=subject.group_kind == _LWS)
    for member in listed:
        owned = [name for owner in setting for name in owner.variables_set_in(member)]
        for owner in setting:
            yield from variables.check_overwritten_variables(member, owner.variables_set_in(member), owner.name)
        yield from ranks.check_rank_fixed_in_template(member, owned, _name_of_pod_index_variable(subject))
    if job is not None and job.plugins:
        yield from mpi_ranks_and_slots.check_ranks_against_task_hosts(
            listed, task_by_host_variable(job, listed), subject.deadline
        )


def _advise_pytorch_job(listed: Items[LaunchedContainer], subject: Subject) -> Iterator[Problem]:
    """Check nodes and ranks of a PyTorchJob; other rules are about too many nodes and variables that its
    operator sets.
    """
    spec = subject.typed(PyTorchJob).spec
    has_master = spec.pytorch_replica_specs.get("Master") is not None
    for member in listed:
        yield from ranks.check_rank_fixed_in_template(
            member, variables.PYTORCH if has_master else (), "the index of the pod"
        )
    if spec.elastic_policy is not None:
        yield from trainers.check_trainer_devices_and_nodes(listed, None)
        return
    counts = [member.pods for member in listed if member.path[-1:] == (0,)]
    pods = None if None in counts else sum(count or 0 for count in counts)
    together = PodsTrainingTogether(pods=pods, is_one=True, is_alone=False, is_ranked=True, index="RANK")
    for each in pods_and_nodes.check_launcher_nodes_match_pods(listed, together):
        if each.code != MORE_NODES_THAN_PODS.id:
            yield each
    yield from trainers.check_trainer_devices_and_nodes(listed, together)


def _pods_training_together(
    listed: Sequence[LaunchedContainer], plugins: Collection[str], subject: Subject
) -> PodsTrainingTogether:
    counts = {member.pod_set: member.pods for member in listed}
    pods = None if None in counts.values() else sum(count or 0 for count in counts.values())
    if subject.group_kind == ("jobset.x-k8s.io", "JobSet"):  # replicas may train together, or apart
        counted = subject.fact("podSets")
        pods = None if any(each["pods"] is None for each in counted) else sum(each["pods"] for each in counted)
    return PodsTrainingTogether(
        pods=pods,
        is_one=subject.group_kind == _LWS or "pytorch" in plugins,
        is_alone=subject.group_kind in _INDEXED and subject.group_kind[1] != "JobSet",
        is_ranked=False,
        index=_name_of_pod_index_variable(subject),
    )


def _name_of_pod_index_variable(subject: Subject) -> str:
    """Name the variable in which the pods of a kind find their number."""
    if subject.group_kind in _INDEXED:
        return "JOB_COMPLETION_INDEX of an Indexed Job"
    return "LWS_WORKER_INDEX" if subject.group_kind == _LWS else "VC_TASK_INDEX of the plugin env"


def _read_volcano_job(subject: Subject) -> JobSpec | None:
    """Return the spec of a job of Volcano, or of the jobs of a template; None for other kinds."""
    at = kinds.SPECS.get(subject.group_kind)
    return JobSpec.of(get(subject.object, at), at, subject.reading_context) if at else None


CHECKS: Final = (
    Check(
        group="launch",
        run=warn_of_launch_commands,
        kinds=frozenset((*_OTHERS, *_INDEXED, *_OPERATORS, *kinds.SPECS, _LWS)),
        lookups=LOOKUPS,
        of_made_objects=False,
    ),
    Check(group="launch", run=check_launch_of_train_job, kinds=frozenset((TRAIN_JOB,))),
)
