"""What the API server and Trainer's webhook refuse of a runtime by itself.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, manifests/base/crds, and branches
release-2.0 to release-2.3. What plugins refuse is runtime_plugins.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME, TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.installation import release_of
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes import container_of, is_trainer, job_named, trainer_step
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    INJECTION,
    SHORT_NAMES,
)
from webhook.facts.train_job_pods.spec_changes import is_changed
from webhook.facts.train_job_pods.types import SUPPORT, MLPolicy, RuntimeSpec, TrainingRuntime
from webhook.facts.trainer.train_job import RESERVED, instead_of
from webhook.facts.trainer.training_runtime_env_injection import validate_env_injection
from webhook.facts.trainer.training_runtime_flux import validate_flux_installer
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import Release, shown
from webhook.typed.collections import Items
from webhook.typed.job_sets import JobSetSpec, ReplicatedJob

JOB_NAME_LENGTH: Final = TRAINING_RUNTIME.rule(
    "training-runtime/job-name-length",
    title="Names of replicated jobs have at most 20 characters since 2.4.",
    why="Longer names leave too little for the names of TrainJobs.",
    source="https://github.com/kubeflow/trainer/pull/4394",
)
IMMUTABLE_FIELD: Final = TRAINING_RUNTIME.rule(
    "training-runtime/immutable-field",
    title="Policies of success, failure and startup, network, claims and dependencies of a runtime do not change.",
    why="The API server refuses a change of these fields.",
    source="https://github.com/kubeflow/trainer/pull/3157",
    severity="low",
)

_FIXED: Final = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")
_LONGEST_NAME: Final = 20
_SWITCH: Final = "trainer.kubeflow.org/webhook-validation"
MPI_IMPLEMENTATION: Final = TRAINING_RUNTIME.rule(
    "training-runtime/mpi-implementation",
    title="The MPI implementation of a runtime is OpenMPI.",
    why="The mpi plugin knows no other and fails on it.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/mpi/mpi.go",
    fails="controller",
)
TORCH_ADDRESS: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/torch-address",
    title="The trainer of a torch runtime is the job `node` in the default subdomain.",
    why="Nodes look for the first one at the address <TrainJob>-node-0-0.<TrainJob>, whatever the runtime says.",
    refused_by="nobody; the nodes wait for each other",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go",
    fails="waiting",
)
TOKEN_VOLUME: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/token-volume",
    title="No volume or mount has the name by which pods report their status.",
    why="Trainer overwrites it.",
    source="https://github.com/kubeflow/trainer/issues/3956",
)
LAUNCHER_COUNT: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/launcher-count",
    title="mlPolicy.numNodes of an MPI runtime is 1.",
    why="The labelled job gets as many pods, which is the launcher.",
)
PLUGIN_VARIABLE: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/plugin-variable",
    title="A torch runtime leaves the variables of torchrun to the plugin.",
    why="The torch plugin writes PET_NNODES, PET_NODE_RANK and the like for each TrainJob, over what the runtime says.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go",
    function="EnforceMLPolicy",
    severity="low",
)
_TOKEN_VOLUME: Final = "kubeflow-trainer-token"  # noqa: S105 - a volume's name
_TOKEN_MOUNT: Final = "/var/run/secrets/kubeflow/trainer"  # noqa: S105 - a path
DEPRECATED: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/deprecated",
    title="A runtime is not labelled deprecated.",
    why="A later release of Trainer removes it.",
)


def is_overlooked(subject: Subject) -> bool:
    """Trainer's webhook looks at no change of a TrainingRuntime, and at nothing with the label of #3683."""
    label = subject.typed(TrainingRuntime).metadata.labels.get(_SWITCH)
    return label == "disabled" or (subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime")


def validate_job_name_length(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Names of replicated jobs leave room for the names of pods (kubeflow/trainer#4394)."""
    for job in jobs_of(runtime) if release >= SHORT_NAMES else ():
        if len(job.name) > _LONGEST_NAME:
            message = f"has {len(job.name)} characters, but Trainer {shown(release)} takes at most {_LONGEST_NAME}"
            yield JOB_NAME_LENGTH.problem(job.path("name"), message, "use a shorter name", job.name)


def validate_immutable_fields(subject: Subject) -> Iterator[Problem]:
    """`self == oldSelf`, which says nothing of a field that is added or removed."""
    now, before = (typed(TrainingRuntime).spec.template.spec for typed in (subject.typed, subject.typed_old))
    names = _FIXED if release_of(subject) >= FLUX_AND_MORE else _FIXED[:-1]
    places = [now.path(name) for name in names if is_changed(name, now, before)]
    old = {job.name: job for job in reversed(before.replicated_jobs)}
    changed = [job for job in now.replicated_jobs if job.name in old and is_changed("dependsOn", job, old[job.name])]
    places += [job.path("dependsOn") for job in changed]
    for place in places:
        fix = "restore the old value, or create a new runtime"
        yield IMMUTABLE_FIELD.problem(place, "cannot change after the runtime was created", fix)


def jobs_of(runtime: RuntimeSpec) -> Items[ReplicatedJob]:
    """The replicated jobs of a runtime."""
    return runtime.template.spec.replicated_jobs


def validate_plugins(policy: MLPolicy, job_set: JobSetSpec, release: Release) -> Iterator[Problem]:
    """Everything that concerns the plugin of a runtime, whose template may be patched by a TrainJob."""
    match policy.plugin:
        case "torch":
            if release >= INJECTION:
                yield from validate_env_injection(policy.torch.env_injection, job_set)
            yield from _torch_address(job_set)
        case "flux":
            yield from validate_flux_installer(job_set)
        case "mpi":
            yield from _mpi_implementation(policy, job_set)
            yield from _launcher_count(policy, job_set)


def _torch_address(job_set: JobSetSpec) -> Iterator[Problem]:
    """torch.go: the master address is `<name>-node-0-0.<name>`, whatever the job and the subdomain are called."""
    why = "because torch nodes look for each other at `<TrainJob>-node-0-0.<TrainJob>`"
    step, network = trainer_step(job_set.replicated_jobs), job_set.network
    if step is not None and step.name != "node":
        message = f"must have `node` as the name of the trainer job, not `{step.name}`, {why}"
        yield TORCH_ADDRESS.problem(job_set.path("replicatedJobs"), message, "rename that job to `node`")
    if network.subdomain:
        path, message = network.path("subdomain"), f"must not be set {why}"
        yield TORCH_ADDRESS.problem(path, message, "remove the subdomain", network.subdomain)


def _mpi_implementation(policy: MLPolicy, job_set: JobSetSpec) -> Iterator[Problem]:
    """mpi.go: looked at where there is a launcher."""
    implementation = policy.mpi.mpi_implementation
    is_used = container_of(job_named(job_set.replicated_jobs, "launcher"), "node") is not None
    if implementation != "OpenMPI" and is_used and not is_placeholder(implementation):
        message = "must be OpenMPI because Trainer knows no other implementation"
        fix = "set the field to OpenMPI, or remove the field"
        yield MPI_IMPLEMENTATION.problem(policy.mpi.path("mpiImplementation"), message, fix, implementation)


def _launcher_count(policy: MLPolicy, job_set: JobSetSpec) -> Iterator[Problem]:
    """mlPolicy.numNodes is how many pods the labelled job gets, which of an mpi runtime is the launcher (nodes.py)."""
    nodes, step = policy.num_nodes, trainer_step(job_set.replicated_jobs)
    if step is not None and step.name != "node" and nodes is not None and nodes > 1:
        message = f"makes {nodes} launchers because it counts the pods of job `{step.name}`, the trainer step"
        fix = "set mlPolicy.numNodes to 1, and set the number of workers as parallelism of job `node`"
        yield LAUNCHER_COUNT.problem(policy.path("numNodes"), message, fix, nodes)


def validate_token_volume(job_set: JobSetSpec) -> Iterator[Problem]:
    """The volume and the mount by which pods report the job's status."""
    for job in job_set.replicated_jobs:
        if any(volume.name == _TOKEN_VOLUME for volume in job.pod.volumes):
            yield _token_volume(job.pod.path("volumes"), _TOKEN_VOLUME)
        for container in job.pod.all_containers():
            for mount in container.volume_mounts:
                if mount.mount_path == _TOKEN_MOUNT:
                    yield _token_volume(mount.path("mountPath"), _TOKEN_MOUNT)


def _token_volume(path: FieldPath, name: str) -> Problem:
    message = "is overwritten by Trainer, which reports the status of the job through it"
    return TOKEN_VOLUME.problem(path, message, "use another name or path", name)


def advise_plugin_variables(runtime: RuntimeSpec) -> Iterator[Problem]:
    """torch.go EnforceMLPolicy: the plugin replaces the variables PET_* of the node of TrainJobs with spec.trainer."""
    jobs = jobs_of(runtime) if runtime.ml_policy.plugin == "torch" else ()
    nodes = (node for job in jobs if is_trainer(job) for node in job.pod.containers if node.name == "node")
    for variable in (variable for node in nodes for variable in node.env):
        if variable.name in RESERVED["torch"]:
            message = "is replaced by the torch plugin, which sets it for each TrainJob with spec.trainer"
            fix = instead_of(variable.name, "TrainJobs")
            yield PLUGIN_VARIABLE.problem(variable.path("name"), message, fix, variable.name)


def advise_deprecation(runtime: TrainingRuntime) -> Iterator[Problem]:
    """Warn of a runtime that its label calls deprecated."""
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
