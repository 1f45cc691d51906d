"""Rules of the API server and Trainer's webhook for a runtime: plugins, volumes, fields that do not change or exist.

The mlPolicy is in training_runtime_ml_policy.py, steps are in training_runtime_steps.py.

Source: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, manifests/base/crds, and branches
release-2.0 to release-2.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes_and_processes import container_named, find_trainer_job, job_named
from webhook.facts.train_job_pods.releases import FLUX_AND_MORE, INJECTION, find_trainer_release
from webhook.facts.train_job_pods.train_job_and_runtime_fields import FieldRules, is_field_changed
from webhook.facts.train_job_pods.types import (
    SUPPORT,
    TRAINING_RUNTIME,
    TRAINING_RUNTIME_ADVICE,
    MLPolicy,
    TrainingRuntime,
)
from webhook.facts.trainer.training_runtime_ml_policy import (
    advise_torch_address,
    validate_env_injection,
    validate_flux_installer,
)
from webhook.rules.problem import Problem
from webhook.typed.job_sets import JobSetSpec
from webhook.yamltext.placeholders import is_placeholder

MPI_IMPLEMENTATION: Final = TRAINING_RUNTIME.rule(
    "training-runtime/mpi-implementation",
    title="mpiImplementation is not OpenMPI",
    why="The mpi plugin fails on every other implementation.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/mpi/mpi.go",
    fails="controller",
)
TOKEN_VOLUME: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/token-volume",
    title="Trainer overwrites a volume of this name",
    why="Trainer replaces the volume with its own.",
    source="https://github.com/kubeflow/trainer/issues/3956",
)
LAUNCHER_COUNT: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/launcher-count",
    title="mlPolicy.numNodes of an MPI runtime is not 1",
    why="The job with the trainer label is the launcher, so Trainer starts several launchers.",
)
DEPRECATED: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/deprecated",
    title="The runtime is deprecated",
    why="A later release of Trainer removes it.",
)
IMMUTABLE_FIELD: Final = TRAINING_RUNTIME.rule(
    "training-runtime/immutable-field",
    title="An immutable field was changed",
    why="The API server refuses a change of these fields.",
    source="https://github.com/kubeflow/trainer/pull/3157",
    severity="low",
    refused_on_updates="manifests/base/crds, the rules about oldSelf",
)
TRAINING_RUNTIME_UNKNOWN_FIELD: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/unknown-field",
    title="The field does not exist",
    why="The API server drops a field that it does not know, unless the client asks for strict validation.",
    refused_by="nothing; the field is dropped",
)
TRAINING_RUNTIME_OTHER_RELEASE_FIELD: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/other-release-field",
    title="The field belongs to another release of Trainer",
    why="The API server drops a field that its release does not have.",
    refused_by="nothing; the field is dropped",
    source="https://github.com/kubeflow/trainer/issues/3492",
    issues=(
        "https://github.com/kubeflow/trainer/pull/3239",
        "https://github.com/kubeflow/trainer/pull/3235",
    ),
)
RUNTIME_FIELD_RULES: Final = FieldRules(TRAINING_RUNTIME_UNKNOWN_FIELD, TRAINING_RUNTIME_OTHER_RELEASE_FIELD)
_SWITCH: Final = "trainer.kubeflow.org/webhook-validation"
_TOKEN_VOLUME: Final = "kubeflow-trainer-token"  # noqa: S105 - a volume's name
_TOKEN_MOUNT: Final = "/var/run/secrets/kubeflow/trainer"  # noqa: S105 - a path
_FIXED: Final = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")


def is_ignored_by_trainer(subject: Subject) -> bool:
    """Return whether Trainer's webhook ignores a runtime: a changed TrainingRuntime, or one with the label of #3683."""
    label = subject.typed(TrainingRuntime).metadata.labels.get(_SWITCH)
    return label == "disabled" or (subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime")


def validate_plugins(policy: MLPolicy, job_set: JobSetSpec, release: Release) -> Iterator[Problem]:
    """Yield the problems of a runtime's plugin; a TrainJob may patch the runtime's template."""
    match policy.plugin:
        case "torch":
            if release >= INJECTION:
                yield from validate_env_injection(policy.torch.env_injection, job_set)
            yield from advise_torch_address(job_set)
        case "flux":
            yield from validate_flux_installer(job_set)
        case "mpi":
            yield from _check_mpi_implementation(policy, job_set)
            yield from _check_launcher_count(policy, job_set)


def _check_mpi_implementation(policy: MLPolicy, job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield the problem of an MPI implementation other than OpenMPI, which mpi.go checks if there is a launcher."""
    implementation = policy.mpi.mpi_implementation
    is_used = container_named(job_named(job_set.replicated_jobs, "launcher"), "node") is not None
    if implementation != "OpenMPI" and is_used and not is_placeholder(implementation):
        message = "must be OpenMPI because Trainer knows no other implementation"
        fix = "set the field to OpenMPI, or remove the field"
        yield MPI_IMPLEMENTATION.problem(policy.mpi.path("mpiImplementation"), message, fix, implementation)


def _check_launcher_count(policy: MLPolicy, job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield a numNodes that creates several launchers, because the labelled job of an mpi runtime is the launcher."""
    nodes, step = policy.num_nodes, find_trainer_job(job_set.replicated_jobs)
    if step is not None and step.name != "node" and nodes is not None and nodes > 1:
        message = f"makes {nodes} launchers because it counts the pods of job `{step.name}`, the trainer step"
        fix = "set mlPolicy.numNodes to 1, and set the number of workers as parallelism of job `node`"
        yield LAUNCHER_COUNT.problem(policy.path("numNodes"), message, fix, nodes)


def check_token_volume_conflict(job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield a volume or mount with the name of those by which pods report the job's status."""
    for job in job_set.replicated_jobs:
        if any(volume.name == _TOKEN_VOLUME for volume in job.pod.volumes):
            yield _token_volume_problem(job.pod.path("volumes"), _TOKEN_VOLUME)
        for container in job.pod.all_containers():
            for mount in container.volume_mounts:
                if mount.mount_path == _TOKEN_MOUNT:
                    yield _token_volume_problem(mount.path("mountPath"), _TOKEN_MOUNT)


def _token_volume_problem(path: FieldPath, name: str) -> Problem:
    message = "is overwritten by Trainer, which reports the status of the job through it"
    return TOKEN_VOLUME.problem(path, message, "use another name or path", name)


def advise_deprecation(runtime: TrainingRuntime) -> Iterator[Problem]:
    """Yield the problem of a runtime that its label calls deprecated."""
    if runtime.is_deprecated:
        yield _deprecated_problem()


def advise_deprecated_runtime(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a TrainJob that names a deprecated runtime."""
    if job.runtime.object.is_deprecated:
        yield _deprecated_problem(str(job.runtime))


def _deprecated_problem(runtime: str = "") -> Problem:
    """Return the problem of a deprecated runtime, or of a TrainJob that names one."""
    path: FieldPath = ("metadata", "labels", SUPPORT)
    message = "says that the runtime is deprecated, so a later release of Trainer removes it"
    fix = "use another runtime for new TrainJobs"
    if runtime:
        path, fix = ("spec", "runtimeRef", "name"), "choose another runtime"
        message = f"names {runtime}, which is labelled deprecated and will be removed"
    return DEPRECATED.problem(path, message, fix)


def validate_immutable_fields(subject: Subject) -> Iterator[Problem]:
    """Yield changes of immutable fields (`self == oldSelf`, which allows adding and removing)."""
    now, before = (typed(TrainingRuntime).spec.template.spec for typed in (subject.typed, subject.typed_old))
    names = _FIXED if find_trainer_release(subject) >= FLUX_AND_MORE else _FIXED[:-1]
    places = [now.path(name) for name in names if is_field_changed(name, now, before)]
    old = {job.name: job for job in reversed(before.replicated_jobs)}
    changed = [
        job for job in now.replicated_jobs if job.name in old and is_field_changed("dependsOn", job, old[job.name])
    ]
    places += [job.path("dependsOn") for job in changed]
    for place in places:
        fix = "restore the old value, or create a new runtime"
        yield IMMUTABLE_FIELD.problem(place, "cannot change after the runtime was created", fix)
