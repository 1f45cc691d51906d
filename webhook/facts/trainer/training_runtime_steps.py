"""Rules for the steps of a runtime: labelled jobs with one replica and a container of a certain name.

Source: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go; #3714 for the mount of initializers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME, TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.nodes import STEP_LABEL, container_named, find_trainer_job, step_of_job
from webhook.facts.train_job_pods.releases import (
    STEP_CONTAINERS,
)
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.facts.trainer.training_runtime_job_names import replicated_jobs_of
from webhook.problem import Problem
from webhook.releases import Release
from webhook.typed.job_sets import ReplicatedJob

CONTAINERS: Final = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}
"""The container that each step needs."""
STEP_REPLICAS: Final = TRAINING_RUNTIME.rule(
    "training-runtime/step-replicas",
    title="A replicated job that is labelled as a step has one replica.",
    why="mlPolicy.numNodes and the TrainJob say how many nodes there are.",
    function="validateReplicatedJobs",
)
STEP_CONTAINER: Final = TRAINING_RUNTIME.rule(
    "training-runtime/step-container",
    title="A replicated job that is labelled as a step has the container of the step.",
    why="Trainer lays settings of TrainJobs over this container, `node` for the trainer.",
    source="https://github.com/kubeflow/trainer/pull/2722",
)
TRAINER_STEP: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/trainer-step",
    title="A runtime labels the job that trains.",
    why="spec.trainer of TrainJobs goes to the replicated job with this label, and nowhere without one.",
    source="https://github.com/kubeflow/trainer/pull/2722",
)
OVERLOOKED_STEP: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/overlooked-step",
    title="A changed TrainingRuntime keeps the rules of its steps.",
    why="Trainer's webhook does not look at changes of a TrainingRuntime, but refuses it when it is created anew.",
)


def validate_steps(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield labelled steps with several replicas or without their container (trainingruntime_webhook.go)."""
    for job in replicated_jobs_of(runtime):
        yield from _check_step_replicas(job, release)
    for job in replicated_jobs_of(runtime) if release >= STEP_CONTAINERS else ():
        yield from _check_step_container(job)


def _check_step_replicas(job: ReplicatedJob, release: Release) -> Iterator[Problem]:
    name = step_of_job(job)
    is_launcher = release < STEP_CONTAINERS and job.name == "launcher"
    if job.replicas != 1 and (name in CONTAINERS or is_launcher):
        of = f"step `{name}`" if name in CONTAINERS else "the launcher"
        message = f"must be 1 for {of} because mlPolicy.numNodes sets the number of nodes"
        yield STEP_REPLICAS.problem(job.path("replicas"), message, "set 1", job.replicas)


def _check_step_container(job: ReplicatedJob) -> Iterator[Problem]:
    name = step_of_job(job)
    if name in CONTAINERS and container_named(job, CONTAINERS[name]) is None:
        there = ", ".join(f"`{container.name}`" for container in job.pod.containers) or "none"
        message = f"must have a container `{CONTAINERS[name]}` for step `{name}`, but has {there}"
        fix = f"rename the main container to `{CONTAINERS[name]}`"
        yield STEP_CONTAINER.problem(job.pod.path("containers"), message, fix)


def warn_of_missing_trainer_step(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield the problem of a runtime without a trainer step, for which spec.trainer has no effect."""
    jobs, path = replicated_jobs_of(runtime), runtime.template.spec.path("replicatedJobs")
    if jobs and find_trainer_job(jobs) is None:
        message = f"has no template with the label {STEP_LABEL}: trainer, so spec.trainer of TrainJobs has no effect"
        yield TRAINER_STEP.problem(path, message, "add the label to template.metadata.labels of the job that trains")


def advise_overlooked_steps(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield steps that Trainer's webhook rejects in a new runtime, and ignores in a changed one."""
    for job in replicated_jobs_of(runtime):
        container = CONTAINERS.get(step_of_job(job))
        fixes = {}
        if container and container_named(job, container) is None:
            fixes[f"a container `{container}`"] = f"rename the main container to `{container}`"
        if container and job.replicas != 1:
            fixes["one replica"] = "set replicas to 1"
        if fixes:
            message = (
                f"must have {' and '.join(fixes)} because Trainer refuses to create such a runtime, although it lets "
                "this update pass"
            )
            yield OVERLOOKED_STEP.problem(job.at, message, ", and ".join(fixes.values()))
