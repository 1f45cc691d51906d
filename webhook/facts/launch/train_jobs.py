"""What the command of a TrainJob starts, merged with its runtime, and where the command stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from webhook.facts.command_lines.command import LaunchedProgram, cached_launch_of_json, launch_of_json
from webhook.facts.launch import mpi_ranks_and_slots, pods_and_nodes
from webhook.facts.launch.member import LaunchedContainer, PodsTrainingTogether
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.spec_changes import changes_more_than_suspend
from webhook.problem import Problem


def check_launch_of_train_job(subject: Subject) -> Iterator[Problem]:
    """Check the nodes and ranks of a TrainJob, merged with its runtime; other rules compare its processes."""
    job = subject.once(merge_train_job)
    if not job.runtime.is_found or job.node_container is None or not changes_more_than_suspend(subject):
        return
    for each in _check_command_of_train_job(job, launch_of_training_container(subject)):
        yield replace(each, path=place_of_launcher_options(subject))


def _check_command_of_train_job(job: MergedTrainJob, started: LaunchedProgram) -> Iterator[Problem]:
    """Report what is wrong with the command of a TrainJob, wherever that stands."""
    if job.plugin == "torch":
        member = LaunchedContainer(pod_set="", path=(), launch=started, pods=job.number_of_nodes)
        together = PodsTrainingTogether(
            pods=job.number_of_nodes, is_one=True, is_alone=False, is_ranked=True, index="PET_NODE_RANK"
        )
        yield from pods_and_nodes.check_launcher_nodes_match_pods((member,), together)
    elif job.plugin == "mpi" and job.processes.count:
        counts = (replicated.parallelism for replicated in job.replicated_jobs if replicated.name == "node")
        hosts = sum(counts) + job.runtime.spec.ml_policy.mpi.run_launcher_as_node
        yield from mpi_ranks_and_slots.check_command_against_hostfile(
            started, (), hosts, job.processes.count, job.object.reading.deadline
        )


def launch_of_training_container(subject: Subject) -> LaunchedProgram:
    """Return what the command of the container that trains starts."""
    node = subject.once(merge_train_job).node_container
    return cached_launch_of_json({} if node is None else node.json, subject)


def place_of_launcher_options(subject: Subject) -> str:
    """Say where the launcher and its options stand: in the command or the arguments, of the TrainJob or of the
    runtime.
    """
    job = subject.once(merge_train_job)
    said = "command"
    if job.node_container is not None and job.node_container.args:
        by_command = launch_of_json({**job.node_container.json, "args": []}, subject.deadline)
        said = "command" if by_command.by and by_command == launch_of_training_container(subject) else "args"
    return f"spec.trainer.{said}" if job.trainer.json.get(said) else job.path_for_runtime_problem(is_own=False)
