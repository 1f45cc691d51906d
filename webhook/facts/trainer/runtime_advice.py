"""Runtimes that Trainer takes and on which TrainJobs run otherwise than they read, or never start.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{jobset,volcano,coscheduling}; #3714 for the mount
of initializers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.nodes import STEP_LABEL, container_of, is_trainer, step, trainer_step
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT, WHOLE_JOBSET
from webhook.facts.train_job_pods.train_job import MergedTrainJob
from webhook.facts.train_job_pods.types import SUPPORT, RuntimeSpec, TrainingRuntime
from webhook.facts.trainer.plugin_validation import RESERVED, instead_of
from webhook.facts.trainer.runtime_plugins import jobs_of
from webhook.facts.trainer.runtime_validation import CONTAINERS
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.releases import Release, shown

DEPRECATED: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/deprecated",
    title="A runtime is not labelled deprecated.",
    why="A later release of Trainer removes it.",
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
PLUGIN_VARIABLE: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/plugin-variable",
    title="A torch runtime leaves the variables of torchrun to the plugin.",
    why="The torch plugin writes PET_NNODES, PET_NODE_RANK and the like for each TrainJob, over what the runtime says.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go",
    function="EnforceMLPolicy",
    severity="low",
)
ML_POLICY: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/ml-policy",
    title="A runtime has an mlPolicy.",
    why="Since 2.3 Trainer leaves resourcesPerNode of TrainJobs out without one.",
)
TRAINING_RUNTIME_INITIALIZER_MOUNT: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/initializer-mount",
    title="The container of an initializer mounts the volume `initializer`.",
    why="Since 2.3 Trainer refuses TrainJobs that use the step without it.",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="https://github.com/kubeflow/trainer/pull/3714",
    fails="create",
)
ONE_SCHEDULER: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/one-scheduler",
    title="A runtime has one gang scheduler.",
    why="coscheduling and volcano both make a group of the same pods.",
    source="https://github.com/kubeflow/trainer/issues/2980",
    fails="pending",
)
GANG_DEPENDENCY: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/gang-dependency",
    title="A runtime with a gang scheduler has no dependsOn.",
    why="The group waits for the pods of every replicated job, of which some are made only after others are done.",
    source="https://github.com/kubeflow/trainer/issues/2980",
    fails="pending",
)


def advise_deprecation(runtime: TrainingRuntime) -> Iterator[Problem]:
    """A runtime whose label says so."""
    if runtime.is_deprecated:
        yield _deprecated()


def advise_deprecated_runtime(job: MergedTrainJob) -> Iterator[Problem]:
    """A TrainJob that names such a runtime."""
    if job.runtime.object.is_deprecated:
        yield _deprecated(str(job.runtime))


def _deprecated(runtime: str = "") -> Problem:
    """The problem of a runtime that is labelled so, or of a TrainJob that names such a runtime."""
    path: FieldPath = ("metadata", "labels", SUPPORT)
    message = "says that the runtime is deprecated, so a later release of Trainer removes it"
    fix = "use another runtime for new TrainJobs"
    if runtime:
        path, fix = ("spec", "runtimeRef", "name"), "choose another runtime"
        message = f"names {runtime}, which is labelled deprecated and will be removed"
    return DEPRECATED.problem(path, message, fix)


def advise_trainer_step(runtime: RuntimeSpec) -> Iterator[Problem]:
    """A runtime whose TrainJobs cannot say what runs."""
    jobs, path = jobs_of(runtime), runtime.template.spec.path("replicatedJobs")
    if jobs and trainer_step(jobs) is None:
        message = f"has no template with the label {STEP_LABEL}: trainer, so spec.trainer of TrainJobs has no effect"
        yield TRAINER_STEP.problem(path, message, "add the label to template.metadata.labels of the job that trains")


def advise_overlooked_steps(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Steps that Trainer's webhook refuses in a new runtime, and overlooks in a changed one."""
    for job in jobs_of(runtime):
        container = CONTAINERS.get(step(job))
        fixes = {}
        if container and container_of(job, container) is None:
            fixes[f"a container `{container}`"] = f"rename the main container to `{container}`"
        if container and job.replicas != 1:
            fixes["one replica"] = "set replicas to 1"
        if fixes:
            message = (
                f"must have {' and '.join(fixes)} because Trainer refuses to create such a runtime, although it lets "
                "this update pass"
            )
            yield OVERLOOKED_STEP.problem(job.at, message, ", and ".join(fixes.values()))


def advise_ml_policy(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Since 2.3 resourcesPerNode needs a policy."""
    if release >= WHOLE_JOBSET and not runtime.ml_policy:
        message = f"is not set, so Trainer {shown(release)} ignores resourcesPerNode of TrainJobs"
        fix = "set an mlPolicy, such as torch: {}, or {numNodes: 1} for a plain command"
        yield ML_POLICY.problem(runtime.path("mlPolicy"), message, fix)


def advise_plugin_variables(runtime: RuntimeSpec) -> Iterator[Problem]:
    """torch.go EnforceMLPolicy: the plugin replaces the variables PET_* of the node of TrainJobs with spec.trainer."""
    jobs = jobs_of(runtime) if runtime.ml_policy.plugin == "torch" else ()
    nodes = (node for job in jobs if is_trainer(job) for node in job.pod.containers if node.name == "node")
    for variable in (variable for node in nodes for variable in node.env):
        if variable.name in RESERVED["torch"]:
            message = "is replaced by the torch plugin, which sets it for each TrainJob with spec.trainer"
            fix = instead_of(variable.name, "TrainJobs")
            yield PLUGIN_VARIABLE.problem(variable.path("name"), message, fix, variable.name)


def advise_initializer_mounts(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Containers of initializers without the mount that TrainJobs need."""
    jobs = [job for job in jobs_of(runtime) if step(job).endswith("-initializer")]
    for job in jobs if release >= INITIALIZER_MOUNT else ():
        for container in job.pod.containers:
            is_mounted = any(mount.name == "initializer" for mount in container.volume_mounts)
            if container.name == step(job) and not is_mounted:
                message = (
                    f"has no mount `initializer`, so Trainer {shown(release)} refuses TrainJobs that use this step"
                )
                yield TRAINING_RUNTIME_INITIALIZER_MOUNT.problem(
                    container.path("volumeMounts"), message, "add the mount"
                )


def advise_gangs(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Pods that never start together: volcano.go and coscheduling.go count those of every replicated job."""
    policy = runtime.pod_group_policy
    schedulers = policy.schedulers
    if len(schedulers) > 1:
        message = "has `coscheduling` and `volcano`, which both group the same pods"
        fix = "keep the one that the scheduler of the cluster supports"
        yield ONE_SCHEDULER.problem(policy.at, message, fix)
    if schedulers and any(job.depends_on for job in jobs_of(runtime)):
        message = (
            "waits for the pods of all replicated jobs, but jobs with dependsOn are created later, so no pod starts"
        )
        yield GANG_DEPENDENCY.problem(policy.path(schedulers[0]), message, "remove dependsOn or podGroupPolicy")
