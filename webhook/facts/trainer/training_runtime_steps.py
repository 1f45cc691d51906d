"""Rules for the replicated jobs of a runtime: names, steps, the volume of initializers, and gangs that never start.

Source: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go and
pkg/runtime/framework/plugins/{volcano,coscheduling}; https://github.com/kubeflow/trainer/pull/4394 for names;
https://github.com/kubeflow/trainer/pull/3714 for the mount of initializers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.releases import Release, release_as_text
from webhook.facts.train_job_pods.nodes_and_processes import (
    STEP_LABEL,
    container_named,
    find_by_name,
    find_trainer_job,
    step_of_job,
)
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT, SHORT_NAMES, STEP_CONTAINERS
from webhook.facts.train_job_pods.types import TRAINING_RUNTIME, TRAINING_RUNTIME_ADVICE, RuntimeSpec
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.job_sets import ReplicatedJob

JOB_NAME_LENGTH: Final = TRAINING_RUNTIME.rule(
    "training-runtime/job-name-length",
    title="The name of the replicated job is longer than 20 characters",
    why="The names of pods contain this name. A longer name leaves too few characters for the name of the TrainJob.",
    source="https://github.com/kubeflow/trainer/pull/4394",
)
STEP_REPLICAS: Final = TRAINING_RUNTIME.rule(
    "training-runtime/step-replicas",
    title="A replicated job for a step of the runtime does not have exactly one replica",
    why="mlPolicy.numNodes sets the number of nodes, so each step has one replica.",
    function="validateReplicatedJobs",
)
STEP_CONTAINER: Final = TRAINING_RUNTIME.rule(
    "training-runtime/step-container",
    title="A replicated job for a step of the runtime lacks the container that Trainer needs",
    why="Trainer applies the settings of TrainJobs to this container, which is `node` for the trainer.",
    source="https://github.com/kubeflow/trainer/pull/2722",
)
TRAINER_STEP: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/trainer-step",
    title="No replicated job is labelled as the trainer",
    why="Trainer applies spec.trainer only to the replicated job with this label.",
    source="https://github.com/kubeflow/trainer/pull/2722",
)
OVERLOOKED_STEP: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/overlooked-step",
    title="The update makes the TrainingRuntime invalid, but Trainer checks this only on creation",
    why=(
        "Trainer's webhook checks these rules only when a TrainingRuntime is created. The same object is refused when "
        "it is created again."
    ),
)
TRAINING_RUNTIME_INITIALIZER_MOUNT: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/initializer-mount",
    title="The initializer does not mount the volume `initializer`",
    why="Since 2.3 Trainer refuses TrainJobs that use the step without the mount.",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="https://github.com/kubeflow/trainer/pull/3714",
    fails="create",
)
ONE_SCHEDULER: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/one-scheduler",
    title="The runtime sets both coscheduling and volcano",
    why="Both schedulers create a group of the same pods.",
    source="https://github.com/kubeflow/trainer/issues/2980",
    fails="pending",
)
GANG_DEPENDENCY: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/gang-dependency",
    title="A gang of this runtime waits for pods that wait for the gang",
    why="The group waits for the pods of every replicated job. Some of these jobs start only after other jobs.",
    source="https://github.com/kubeflow/trainer/issues/2980",
    fails="pending",
)
CONTAINERS: Final = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}
"""The container that each step needs."""
_LONGEST_NAME: Final = 20


def validate_job_name_length(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield names of replicated jobs that are too long for the names of pods (kubeflow/trainer#4394)."""
    for job in replicated_jobs_of(runtime) if release >= SHORT_NAMES else ():
        if len(job.name) > _LONGEST_NAME:
            message = (
                f"has {len(job.name)} characters, but Trainer {release_as_text(release)} allows at most {_LONGEST_NAME}"
            )
            yield JOB_NAME_LENGTH.problem(job.path("name"), message, "use a shorter name", job.name)


def replicated_jobs_of(runtime: RuntimeSpec) -> Items[ReplicatedJob]:
    """Return the replicated jobs of a runtime."""
    return runtime.template.spec.replicated_jobs


def validate_steps(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield labelled steps with other than one replica, or without their container (trainingruntime_webhook.go)."""
    for job in replicated_jobs_of(runtime):
        yield from _check_step_replicas(job, release)
    for job in replicated_jobs_of(runtime) if release >= STEP_CONTAINERS else ():
        yield from _check_step_container(job)


def _check_step_replicas(job: ReplicatedJob, release: Release) -> Iterator[Problem]:
    name = step_of_job(job)
    is_launcher = release < STEP_CONTAINERS and job.name == "launcher"
    if job.replicas != 1 and (name in CONTAINERS or is_launcher):
        step_text = f"step `{name}`" if name in CONTAINERS else "the launcher"
        message = f"must be 1 for {step_text} because mlPolicy.numNodes sets the number of nodes"
        yield STEP_REPLICAS.problem(job.path("replicas"), message, "set 1", job.replicas)


def _check_step_container(job: ReplicatedJob) -> Iterator[Problem]:
    name = step_of_job(job)
    if name in CONTAINERS and container_named(job, CONTAINERS[name]) is None:
        names_text = ", ".join(f"`{container.name}`" for container in job.pod.containers) or "none"
        message = f"must have a container `{CONTAINERS[name]}` for step `{name}`, but has {names_text}"
        fix = f"rename the main container to `{CONTAINERS[name]}`"
        yield STEP_CONTAINER.problem(job.pod.path("containers"), message, fix)


def warn_of_missing_trainer_step(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield the problem of a runtime without a trainer step. All or most fields of spec.trainer then have no effect.

    TrainJobs of an MPI runtime with commands in all its containers, such as a benchmark, need no spec.trainer.
    """
    jobs, path = replicated_jobs_of(runtime), runtime.template.spec.path("replicatedJobs")
    if jobs and find_trainer_job(jobs) is None and not (runtime.ml_policy.has("mpi") and _has_all_commands(jobs)):
        what = "spec.trainer of TrainJobs has no effect"
        policy = runtime.ml_policy
        if policy.has("mpi") and find_by_name(jobs, "node") is not None:
            what = "image, command, args, env and resourcesPerNode in spec.trainer of TrainJobs have no effect"
            if policy.mpi.run_launcher_as_node and container_named(find_by_name(jobs, "node"), "node") is not None:
                what = "image, command and args in spec.trainer of TrainJobs have no effect"
        message = f"has no template with the label `{STEP_LABEL}: trainer`, so {what}"
        yield TRAINER_STEP.problem(
            path, message, f"add the label to template.metadata.labels of {_trainer_of(runtime)}"
        )


def _trainer_of(runtime: RuntimeSpec) -> str:
    """Name the replicated job that should have the trainer label. In an MPI runtime, the launcher has the label."""
    jobs = replicated_jobs_of(runtime)
    names = [name for name in ("launcher", "node") if name == "node" or runtime.ml_policy.has("mpi")]
    return next((f"job `{name}`" for name in names if find_by_name(jobs, name) is not None), "the job that trains")


def _has_all_commands(jobs: Items[ReplicatedJob]) -> bool:
    return all(container.command for job in jobs for container in job.pod.containers)


def advise_overlooked_steps(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield steps that Trainer's webhook rejects in a new runtime but accepts in a changed runtime."""
    for job in replicated_jobs_of(runtime):
        container = CONTAINERS.get(step_of_job(job))
        fixes = {}
        if container and container_named(job, container) is None:
            fixes[f"a container `{container}`"] = f"rename the main container to `{container}`"
        if container and job.replicas != 1:
            fixes["one replica"] = "set replicas to 1"
        if fixes:
            message = (
                f"must have {' and '.join(fixes)} because Trainer accepts this update, but would refuse to create the "
                "runtime again"
            )
            yield OVERLOOKED_STEP.problem(job.at, message, ", and ".join(fixes.values()))


def advise_initializer_mounts(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield containers of initializers without the mount that TrainJobs need."""
    jobs = [job for job in replicated_jobs_of(runtime) if step_of_job(job).endswith("-initializer")]
    for job in jobs if release >= INITIALIZER_MOUNT else ():
        for container in job.pod.containers:
            is_mounted = any(mount.name == "initializer" for mount in container.volume_mounts)
            if container.name == step_of_job(job) and not is_mounted:
                message = (
                    f"has no mount `initializer`, so Trainer {release_as_text(INITIALIZER_MOUNT)} and later refuse "
                    "TrainJobs that use this step"
                )
                yield TRAINING_RUNTIME_INITIALIZER_MOUNT.problem(
                    container.path("volumeMounts"), message, "add a mount `initializer`, such as at /workspace"
                )


def advise_gangs(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield a runtime with two gang schedulers, and gangs that never start because some pods are created later.

    The gang waits for these pods because volcano.go and coscheduling.go count the pods of every replicated job.
    """
    policy = runtime.pod_group_policy
    schedulers = policy.schedulers
    if len(schedulers) > 1:
        message = "has `coscheduling` and `volcano`, which both group the same pods"
        fix = "keep the one that the scheduler of the cluster supports"
        yield ONE_SCHEDULER.problem(policy.at, message, fix)
    if schedulers and any(job.depends_on for job in replicated_jobs_of(runtime)):
        message = (
            "waits for the pods of all replicated jobs, but jobs with dependsOn are created later, so no pod starts"
        )
        fix = "remove podGroupPolicy, or dependsOn if the order of the jobs does not matter"
        yield GANG_DEPENDENCY.problem(policy.path(schedulers[0]), message, fix)
