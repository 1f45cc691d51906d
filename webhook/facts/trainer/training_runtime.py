"""Rules of the API server and Trainer's webhook for a runtime: plugins, mlPolicy, volumes, and immutable fields.

The rules about steps are in training_runtime_steps.py.

Source: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, manifests/base/crds and
pkg/runtime/framework/plugins/{flux/flux,torch/torch}.go, and branches release-2.0 to release-2.3; release-2.1
manifests/base/crds for elasticPolicy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release, release_as_text
from webhook.facts.jobset.job_set import jobs_by_name
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes_and_processes import (
    container_named,
    find_by_name,
    find_trainer_job,
    init_container_of,
    is_trainer_job,
)
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    INJECTION,
    NUMBERS_ONLY,
    REFUSES_ZERO,
    WHOLE_JOBSET,
    find_trainer_release,
)
from webhook.facts.train_job_pods.train_job_and_runtime_fields import FieldRules, is_field_changed
from webhook.facts.train_job_pods.types import (
    SUPPORT,
    TRAINING_RUNTIME,
    TRAINING_RUNTIME_ADVICE,
    EnvInjection,
    MLPolicy,
    RuntimeSpec,
    TrainingRuntime,
)
from webhook.facts.trainer.train_job import RESERVED_VARIABLES, fix_for_variable_of_plugin
from webhook.facts.trainer.training_runtime_steps import replicated_jobs_of
from webhook.rules.problem import Problem
from webhook.typed.fields import read_whole_number
from webhook.typed.job_sets import JobSetSpec
from webhook.yamltext.placeholders import is_placeholder

MPI_IMPLEMENTATION: Final = TRAINING_RUNTIME.rule(
    "training-runtime/mpi-implementation",
    title="mpiImplementation is not OpenMPI",
    why="The mpi plugin supports only OpenMPI.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/mpi/mpi.go",
    fails="controller",
)
TOKEN_VOLUME: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/token-volume",
    title="The runtime uses the name or the path of Trainer's token volume",
    why="Trainer replaces the volume and the mount with its own.",
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
    why="A later release of Trainer removes the runtime.",
)
IMMUTABLE_FIELD: Final = TRAINING_RUNTIME.rule(
    "training-runtime/immutable-field",
    title="An immutable field of the runtime was changed",
    why="The API server refuses a change of this field.",
    source="https://github.com/kubeflow/trainer/pull/3157",
    severity="low",
    refused_on_updates="manifests/base/crds, the rules about oldSelf",
)
TRAINING_RUNTIME_UNKNOWN_FIELD: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/unknown-field",
    title="The runtime has a field that does not exist",
    why="The API server drops a field that it does not know, unless the client asks for strict validation.",
    refused_by="nothing; the field is dropped",
)
TRAINING_RUNTIME_OTHER_RELEASE_FIELD: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/other-release-field",
    title="A field of the runtime belongs to another release of Trainer",
    why="The API server drops a field that the installed release of Trainer does not have.",
    refused_by="nothing; the field is dropped",
    source="https://github.com/kubeflow/trainer/issues/3492",
    issues=(
        "https://github.com/kubeflow/trainer/pull/3239",
        "https://github.com/kubeflow/trainer/pull/3235",
    ),
)
ELASTIC_NODES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/elastic-nodes",
    title="torch.elasticPolicy and numNodes are both set",
    why="Trainer 2.0 and 2.1 refuse a runtime that sets both fields.",
    source="kubeflow/trainer release-2.1 manifests/base/crds",
)
PROCESSES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/processes",
    title="Trainer does not accept the numProcPerNode of the runtime in this release",
    why=(
        "The CustomResourceDefinition requires at least 1: for flux since 2.2, for mpi since 2.4. torch of 2.0 and "
        "2.1 also accepts auto, cpu and gpu."
    ),
)
INJECTED_NODE: Final = TRAINING_RUNTIME.rule(
    "training-runtime/injected-node",
    title="torch.envInjection names the container `node`",
    why="Container `node` always gets the variables, so the CustomResourceDefinition refuses the name `node` here.",
)
ENV_INJECTION: Final = TRAINING_RUNTIME.rule(
    "training-runtime/env-injection",
    title="torch.envInjection names a container that does not exist",
    why="Trainer refuses TrainJobs that use this runtime.",
    function="validateEnvInjectionTargets",
)
ONE_POLICY: Final = TRAINING_RUNTIME.rule(
    "training-runtime/one-policy",
    title="The runtime has several machine learning policies",
    why="Each policy is a plugin that sets up the nodes differently, so Trainer accepts only one policy.",
)
ML_POLICY: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/ml-policy",
    title="The runtime has no mlPolicy",
    why="Since 2.3, Trainer ignores resourcesPerNode of TrainJobs if the runtime has no mlPolicy.",
)
FLUX_INSTALLER: Final = TRAINING_RUNTIME.rule(
    "training-runtime/flux-installer",
    title="An init container has the name `flux-installer`, which the flux plugin uses itself",
    why="The flux plugin adds an init container of this name.",
    function="Validate of plugins/flux/flux.go",
)
TORCH_ADDRESS: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/torch-address",
    title="The nodes cannot find the first node of the torch runtime",
    why="Nodes look for the first node at the fixed address <TrainJob>-node-0-0.<TrainJob>.",
    refused_by="nothing; the nodes wait for each other",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go",
    fails="waiting",
)
PLUGIN_VARIABLE: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/plugin-variable",
    title="The runtime sets a variable that the torch plugin overwrites",
    why="The torch plugin overwrites variables such as PET_NNODES and PET_NODE_RANK for each TrainJob.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go",
    function="EnforceMLPolicy",
    severity="low",
)
RUNTIME_FIELD_RULES: Final = FieldRules(TRAINING_RUNTIME_UNKNOWN_FIELD, TRAINING_RUNTIME_OTHER_RELEASE_FIELD)
_VALIDATION_LABEL: Final = "trainer.kubeflow.org/webhook-validation"
_TOKEN_VOLUME: Final = "kubeflow-trainer-token"  # noqa: S105 - a volume's name
_TOKEN_MOUNT: Final = "/var/run/secrets/kubeflow/trainer"  # noqa: S105 - a path
_IMMUTABLE_FIELDS: Final = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")
_WORDS: Final = ("auto", "cpu", "gpu")
_FIRST_PLUGINS: Final = ("torch", "mpi")


def is_ignored_by_trainer(subject: Subject) -> bool:
    """Return whether Trainer's webhook skips a runtime: an updated TrainingRuntime, or a runtime with a label that
    turns validation off (kubeflow/trainer#3683).
    """
    label = subject.typed(TrainingRuntime).metadata.labels.get(_VALIDATION_LABEL)
    return label == "disabled" or (subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime")


def validate_plugins(policy: MLPolicy, job_set: JobSetSpec, release: Release) -> Iterator[Problem]:
    """Yield settings of the JobSet that the plugin of the runtime refuses or cannot use.

    `job_set` is the JobSet of the runtime, with the patches of a TrainJob if there is one.
    """
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
    """Yield an MPI implementation other than OpenMPI. mpi.go checks the implementation only if there is a launcher."""
    implementation = policy.mpi.mpi_implementation
    is_used = container_named(find_by_name(job_set.replicated_jobs, "launcher"), "node") is not None
    if implementation != "OpenMPI" and is_used and not is_placeholder(implementation):
        message = "must be OpenMPI because Trainer knows no other implementation"
        fix = "set the field to OpenMPI, or remove the field"
        yield MPI_IMPLEMENTATION.problem(policy.mpi.path("mpiImplementation"), message, fix, implementation)


def _check_launcher_count(policy: MLPolicy, job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield a numNodes that creates several launchers: numNodes sets the pods of the job with the trainer label, and in
    an mpi runtime this job is the launcher.
    """
    nodes, step = policy.num_nodes, find_trainer_job(job_set.replicated_jobs)
    if step is not None and step.name != "node" and nodes is not None and nodes > 1:
        message = (
            f"makes {nodes} launchers because numNodes is the number of pods of the trainer step, job `{step.name}`"
        )
        fix = "set mlPolicy.numNodes to 1, and set the number of workers as parallelism of job `node`"
        yield LAUNCHER_COUNT.problem(policy.path("numNodes"), message, fix, nodes)


def check_token_volume_conflict(job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield a volume with the name, or a mount with the path, of the volume through which pods report the job's
    status.
    """
    for job in job_set.replicated_jobs:
        if any(volume.name == _TOKEN_VOLUME for volume in job.pod.volumes):
            yield _token_volume_problem(job.pod.path("volumes"), _TOKEN_VOLUME)
        for container in job.pod.all_containers():
            for mount in container.volume_mounts:
                if mount.mount_path == _TOKEN_MOUNT:
                    yield _token_volume_problem(mount.path("mountPath"), _TOKEN_MOUNT)


def _token_volume_problem(path: FieldPath, name: str) -> Problem:
    message = "is overwritten by Trainer because pods report the status of the job through this volume"
    return TOKEN_VOLUME.problem(path, message, "use another name or path", name)


def advise_deprecation(runtime: TrainingRuntime) -> Iterator[Problem]:
    """Yield the problem of a runtime that a label marks as deprecated."""
    if runtime.is_deprecated:
        yield _deprecated_problem()


def advise_deprecated_runtime(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a TrainJob that names a deprecated runtime."""
    if job.runtime.object.is_deprecated:
        yield _deprecated_problem(str(job.runtime))


def _deprecated_problem(runtime: str = "") -> Problem:
    """Return the problem of a deprecated runtime, or of a TrainJob that names `runtime`."""
    path: FieldPath = ("metadata", "labels", SUPPORT)
    message = "says that the runtime is deprecated, so a later release of Trainer removes the runtime"
    fix = "use another runtime for new TrainJobs"
    if runtime:
        path, fix = ("spec", "runtimeRef", "name"), "choose another runtime"
        message = f"names {runtime}, which is labelled deprecated and will be removed"
    return DEPRECATED.problem(path, message, fix)


def validate_immutable_fields(subject: Subject) -> Iterator[Problem]:
    """Yield changes of immutable fields (`self == oldSelf`, which does not apply to an added or removed field)."""
    now, before = (typed(TrainingRuntime).spec.template.spec for typed in (subject.typed, subject.typed_old))
    names = _IMMUTABLE_FIELDS if find_trainer_release(subject) >= FLUX_AND_MORE else _IMMUTABLE_FIELDS[:-1]
    places = [now.path(name) for name in names if is_field_changed(name, now, before)]
    old = {job.name: job for job in reversed(before.replicated_jobs)}
    changed = [
        job for job in now.replicated_jobs if job.name in old and is_field_changed("dependsOn", job, old[job.name])
    ]
    places += [job.path("dependsOn") for job in changed]
    for place in places:
        fix = "restore the old value, or create a new runtime"
        yield IMMUTABLE_FIELD.problem(place, "cannot change after the runtime was created", fix)


def validate_ml_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    """Yield the problems that the CustomResourceDefinition would report."""
    yield from _check_one_policy(policy, release)
    yield from validate_processes(policy, release)
    if release >= INJECTION:
        yield from check_node_not_injection_target(policy)
    if release < NUMBERS_ONLY:
        yield from validate_elastic_nodes(policy)
        yield from validate_processes_of_first_releases(policy)


def _check_one_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    plugins = [name for name in policy.plugins if release >= FLUX_AND_MORE or name in _FIRST_PLUGINS]
    if len(plugins) > 1:
        message = f"must have one policy, but has {', '.join(f'`{name}`' for name in plugins)}"
        yield ONE_POLICY.problem("spec.mlPolicy", message, "keep one of them")


def warn_of_missing_ml_policy(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield the problem of a runtime without mlPolicy. Since 2.3, Trainer then ignores resourcesPerNode."""
    if release >= WHOLE_JOBSET and not runtime.ml_policy:
        since = release_as_text(WHOLE_JOBSET)
        message = f"is not set, so Trainer {since} and later ignore resourcesPerNode of TrainJobs"
        fix = "set torch: {} if the nodes run torchrun, or numNodes: 1 for a plain command"
        yield ML_POLICY.problem(runtime.path("mlPolicy"), message, fix)


def validate_flux_installer(job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield an init container `flux-installer`, because the plugin adds an init container of this name (flux.go)."""
    if init_container_of(find_by_name(job_set.replicated_jobs, "node"), "flux-installer") is not None:
        message = "must not have an init container `flux-installer` in job `node` because Trainer adds one of this name"
        yield FLUX_INSTALLER.problem(job_set.path("replicatedJobs"), message, "remove or rename the init container")


def advise_torch_address(job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield settings with which torch nodes cannot find `<name>-node-0-0.<name>`, the master address of torch.go."""
    why = "because torch nodes look for each other at `<TrainJob>-node-0-0.<TrainJob>`"
    step, network = find_trainer_job(job_set.replicated_jobs), job_set.network
    if step is not None and step.name != "node":
        message = f"must have `node` as the name of the trainer job, not `{step.name}`, {why}"
        yield TORCH_ADDRESS.problem(job_set.path("replicatedJobs"), message, "rename that job to `node`")
    if network.subdomain:
        path, message = network.path("subdomain"), f"must not be set {why}"
        yield TORCH_ADDRESS.problem(path, message, "remove the subdomain", network.subdomain)


def advise_plugin_variables(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield variables PET_* of a runtime, which the plugin replaces for TrainJobs with spec.trainer (torch.go
    EnforceMLPolicy).
    """
    jobs = replicated_jobs_of(runtime) if runtime.ml_policy.plugin == "torch" else ()
    nodes = (node for job in jobs if is_trainer_job(job) for node in job.pod.containers if node.name == "node")
    for variable in (variable for node in nodes for variable in node.env):
        if variable.name in RESERVED_VARIABLES["torch"]:
            message = "is replaced by the torch plugin, which sets this variable for each TrainJob with spec.trainer"
            fix = fix_for_variable_of_plugin(variable.name, "TrainJobs")
            yield PLUGIN_VARIABLE.problem(variable.path("name"), message, fix, variable.name)


def validate_elastic_nodes(policy: MLPolicy) -> Iterator[Problem]:
    """Yield the problem of numNodes together with torch.elasticPolicy, a rule of 2.0 and 2.1."""
    if policy.num_nodes is not None and policy.torch.elastic_policy is not None:
        message = "must not be set because torch.elasticPolicy sets the number of nodes"
        fix = "remove numNodes, or torch.elasticPolicy for a fixed number of nodes"
        yield ELASTIC_NODES.problem(policy.path("numNodes"), message, fix)


def validate_processes(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    """Yield a numProcPerNode below 1 of the plugins mpi and flux."""
    for plugin, since in ((policy.mpi, REFUSES_ZERO), (policy.flux, FLUX_AND_MORE)):
        number = plugin.num_proc_per_node
        if release >= since and number is not None and number < 1:
            yield _processes_problem(plugin.path("numProcPerNode"), number)


def _processes_problem(path: FieldPath, value: JSON, *, is_word_allowed: bool = False) -> Problem:
    """Return the problem of a number of processes. `is_word_allowed`: for torch of 2.0 and 2.1, which also accepts
    three words.
    """
    if is_word_allowed:
        message = "must be auto, cpu, gpu or a whole number of at least 1"
        return PROCESSES.problem(path, message, "set one of these", value)
    return PROCESSES.problem(path, "must be at least 1", "set 1 or more", value)


def validate_processes_of_first_releases(policy: MLPolicy) -> Iterator[Problem]:
    """Yield a numProcPerNode that is neither a number of at least 1 nor one of the three words of 2.0 and 2.1."""
    per_node = policy.torch.num_proc_per_node
    is_word = isinstance(per_node, str) and per_node not in _WORDS and not is_placeholder(per_node)
    if is_word or ((number := read_whole_number(per_node)) is not None and number < 1):
        yield _processes_problem(policy.torch.path("numProcPerNode"), per_node, is_word_allowed=True)


def check_node_not_injection_target(policy: MLPolicy) -> Iterator[Problem]:
    """Yield targets that name the container `node`, which the CustomResourceDefinition refuses."""
    for target in policy.torch.env_injection.targets:
        if "node" in target.container_names:
            message = "must not name container `node` because this container always gets the variables"
            fix = "remove `node` from the list" if len(target.container_names) > 1 else "remove this target"
            yield INJECTED_NODE.problem(target.path("containerNames"), message, fix)


def validate_env_injection(injection: EnvInjection, job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield targets with jobs or containers that the runtime does not have (torch.go validateEnvInjectionTargets)."""
    jobs = jobs_by_name(job_set) if injection.targets else {}
    containers: dict[str, set[str]] = {}
    for target in injection.targets:
        job = target.job_name
        if job not in containers:
            listed = jobs[job].pod.all_containers() if job in jobs else ()
            containers[job] = {container.name for container in listed}
        for name in target.container_names:
            if name not in containers[job]:
                message = f"must name a container of a replicated job, but job `{job}` has no container `{name}`"
                yield ENV_INJECTION.problem(
                    target.at, message, _fix_for_target(target.container_names, name, containers[job])
                )


def _fix_for_target(names: Iterable[str], absent: str, containers: set[str]) -> str:
    """Return the fix for a target with a container that its job does not have. Container `node` must not be a target,
    and a target needs a container.
    """
    possible = containers - {"node"}
    listed = possible.intersection(names)
    if others := sorted(possible - listed):
        return f"name another container of the job, such as `{others[0]}`"
    return f"remove `{absent}` from containerNames" if listed else "remove this target"
