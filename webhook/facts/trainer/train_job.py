"""Rules of the API server and Trainer's webhook for a TrainJob, and for the runtime and images that the TrainJob names.

train_job_claims.py has the rules about claims, and train_job_pods/train_job_patches.py has the rules about patches
that do not fit the runtime.

Source: kubeflow/trainer@8c0f5059bd51 manifests/base/crds, pkg/webhooks/trainjob_webhook.go, pkg/runtime/core and
pkg/runtime/framework/plugins/jobset/{jobset,builder}.go, and branches release-2.0 to release-2.3; k8s.io/kubernetes
v1.36 pkg/apis/core/validation for images; k8s.io/apimachinery pkg/util/validation IsDomainPrefixedPath for managers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.names import (
    dns1035_label_errors,
    has_form_of_subdomain,
    label_fault,
    label_fix,
)
from webhook.apimachinery.paths import path_as_text
from webhook.apimachinery.releases import Release, release_as_text
from webhook.facts.kinds import TRAINER
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.releases import (
    INITIALIZER_MOUNT,
    INJECTION,
    NUMBERS_ONLY,
    PATCHES,
    TEMPLATES,
    read_trainer_installation,
)
from webhook.facts.train_job_pods.runtimes import NEWEST_WITH_RUNTIMES, releases_with_runtime
from webhook.facts.train_job_pods.train_job_and_runtime_fields import FieldRules
from webhook.facts.train_job_pods.train_job_patches import check_patched_env
from webhook.facts.train_job_pods.types import TRAIN_JOB, TRAIN_JOB_ADVICE, ClusterTrainingRuntime
from webhook.facts.trainer.generated_pods import GeneratedPods
from webhook.rules.problem import Problem
from webhook.typed.pods import Container
from webhook.yamltext.placeholders import is_placeholder

NAME: Final = TRAIN_JOB.rule(
    "train-job/name",
    title="The name of the TrainJob is not a DNS label",
    why="The JobSet, its jobs and pods are named after the TrainJob.",
    function="ValidateCreate of trainjob_webhook.go",
    refused_on_updates="",
)
SOURCE_SCHEME: Final = TRAIN_JOB.rule(
    "train-job/source-scheme",
    title="The storageUri has no scheme",
    why="The scheme tells the initializer where to load from. The initializer fails without a known scheme.",
    refused_by="the initializer, when it runs",
    source="kubeflow/trainer@8c0f5059bd51 pkg/initializers",
    fails="start",
)
RESERVED_ENV: Final = TRAIN_JOB.rule(
    "train-job/reserved-env",
    title="spec.trainer.env sets a variable that Trainer sets itself",
    why=(
        "The plugin of the runtime sets these variables, such as PET_NNODES for torch. Trainer refuses them in a "
        "TrainJob."
    ),
)
NO_TRAINER: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-trainer",
    title="A TrainJob of several nodes has no spec.trainer",
    why=(
        "Without spec.trainer the plugins torch, jax and xgboost set no variables, so the nodes do not find each other."
    ),
    source="https://github.com/kubeflow/trainer/issues/4076",
    fails="waiting",
    issues=("https://github.com/kubeflow/trainer/pull/4082",),
)
MANAGED_BY: Final = TRAIN_JOB.rule(
    "train-job/managed-by",
    title="managedBy of the TrainJob names an unknown controller",
    why=(
        "The CustomResourceDefinition of Trainer accepts only trainer.kubeflow.org/trainjob-controller and "
        "kueue.x-k8s.io/multikueue."
    ),
    refused_on_updates="",
)
IMAGE_REQUIRED: Final = TRAIN_JOB.rule(
    "train-job/image-required",
    title="Neither the TrainJob nor its runtime sets an image for a container",
    why="The API server accepts the TrainJob, and later refuses its pods.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
RUNTIME_KIND: Final = TRAIN_JOB.rule(
    "train-job/runtime-kind",
    title="runtimeRef names an unknown kind of runtime",
    why="Trainer knows only TrainingRuntime and ClusterTrainingRuntime.",
)
RUNTIME_EXISTS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/runtime-exists",
    title="The runtime does not exist",
    why="Trainer refuses the TrainJob until the runtime exists.",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    fails="create",
)
RUNTIME_RELEASE: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/runtime-release",
    title="The runtime ships with another release of Trainer",
    why="The installed Trainer does not ship this runtime, so the TrainJob is refused unless you created the runtime.",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="kubeflow/trainer@8c0f5059b manifests/base/runtimes",
    level="advice",
    fails="create",
)
RUNTIME_ARGS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/runtime-args",
    title="The command of the TrainJob runs with the args of the runtime",
    why="Trainer replaces command and args separately, so the new command runs with the old args of the runtime.",
)
PATCH_MANAGER: Final = TRAIN_JOB.rule(
    "train-job/patch-manager",
    title="The manager of the runtime patch does not begin with a domain and a slash",
    why="The name of a manager looks like example.com/controller. Trainer refuses other names.",
    source="https://github.com/kubeflow/trainer/issues/2782",
    refused_on_updates="",
)
PATCH_MANAGER_TWICE: Final = TRAIN_JOB.rule(
    "train-job/patch-manager-twice",
    title="The manager has two runtime patches",
    why="Each manager can have only one entry in the list.",
    refused_on_updates="",
)
OVERRIDE_TWICE: Final = TRAIN_JOB.rule(
    "train-job/override-twice",
    title="Two podSpecOverrides target the same replicated job",
    why="Trainer 2.0 accepts only one override for each replicated job.",
    source="kubeflow/trainer release-2.0 pkg/runtime/framework/plugins/jobset/jobset.go",
)
TRAIN_JOB_UNKNOWN_FIELD: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/unknown-field",
    title="The TrainJob has a field that does not exist",
    why="The API server drops a field that it does not know, unless the client asks for strict validation.",
    refused_by="nothing; the field is dropped",
)
TRAIN_JOB_OTHER_RELEASE_FIELD: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/other-release-field",
    title="A field of the TrainJob belongs to another release of Trainer",
    why=(
        "Several releases of Trainer share one API version. The API server drops fields that the installed release "
        "does not have."
    ),
    refused_by="nothing; the field is dropped",
    source="https://github.com/kubeflow/trainer/issues/3492",
    issues=(
        "https://github.com/kubeflow/trainer/pull/3239",
        "https://github.com/kubeflow/trainer/pull/3235",
    ),
)
RESERVED_VARIABLES: Final[Mapping[str, frozenset[str]]] = {
    "torch": frozenset(("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")),
    "mpi": frozenset(
        f"OMPI_MCA_{name}"
        for name in ("orte_default_hostfile", "plm_rsh_args", "orte_keep_fqdn_hostnames", "orte_set_default_slots")
    ),
    "xgboost": frozenset(("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")),
}
NUM_NODES: Final = "spec.trainer.numNodes"
TRAIN_JOB_FIELD_RULES: Final = FieldRules(TRAIN_JOB_UNKNOWN_FIELD, TRAIN_JOB_OTHER_RELEASE_FIELD)
_RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_SOURCE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+")
_PROCESSES: Final = "spec.trainer.numProcPerNode"
_MANAGERS: Final = ("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue")
_SHOWN: Final = 80
_AFTER_DOMAIN: Final = re.compile(r"[-A-Za-z0-9/._~%!$&'()*+,;=:]+")
_PLAIN: Final = re.compile(r"[-A-Za-z0-9._]+")


def validate_name(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a name that is not a DNS-1035 label (trainjob_webhook.go ValidateCreate)."""
    name = job.object.name
    if name and dns1035_label_errors(name) and not is_placeholder(name):
        fault = label_fault(name, begins_with_letter=True)
        message = (
            f"cannot be the name of a TrainJob because {fault}, and the JobSet and its pods are named after the job"
        )
        fix = label_fix(name, begins_with_letter=True)
        yield NAME.problem("metadata.name", message, fix, name)


def validate_source_scheme(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a storageUri without a scheme."""
    initializer = job.spec.initializer
    for source in (initializer.dataset, initializer.model) if job.release >= INITIALIZER_MOUNT else ():
        uri = source.storage_uri
        if uri and not _SOURCE.fullmatch(uri) and not is_placeholder(uri):
            message = "must begin with a scheme because the scheme tells the initializer where to load from"
            fix = "write a URI such as hf://organisation/name or s3://bucket/path"
            yield SOURCE_SCHEME.problem(source.path("storageUri"), message, fix, uri)


def validate_reserved_env(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield variables that the plugin sets itself. Before 2.2 torch refuses them only with numProcPerNode; mpi
    refuses them since 2.3.
    """
    reserved = RESERVED_VARIABLES.get(job.plugin, frozenset())
    is_accepted = (job.plugin == "mpi" and job.release < INJECTION) or (
        job.plugin == "torch" and job.release < NUMBERS_ONLY and not job.trainer.has("numProcPerNode")
    )
    if is_accepted or not job.trainer.env_names.has_any_of(reserved):
        return
    for variable in job.trainer.env:
        if variable.name in reserved:
            message = f"must not be set because the {job.plugin} plugin sets this variable"
            fix = fix_for_variable_of_plugin(variable.name, "the TrainJob")
            yield RESERVED_ENV.problem(variable.path("name"), message, fix, variable.name)


def fix_for_variable_of_plugin(variable: str, owner: str) -> str:
    """Return the fix for a variable that a plugin sets."""
    field = {"PET_NNODES": NUM_NODES, "PET_NPROC_PER_NODE": _PROCESSES}.get(variable, "")
    return f"remove the variable, and set {field} of {owner}" if field else "remove the variable"


def check_trainer_set_for_several_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield a problem for several nodes without spec.trainer, because plugins then set no variables
    (kubeflow/trainer#4076).
    """
    if not job.trainer and job.number_of_nodes > 1 and job.plugin in ("torch", "jax", "xgboost"):
        message = (
            f"is not set, so the {job.plugin} plugin sets no variables, and the {job.number_of_nodes} nodes of "
            f"{job.runtime} train alone or wait for each other"
        )
        yield NO_TRAINER.problem(
            "spec.trainer", message, f"set spec.trainer, for example to numNodes: {job.number_of_nodes}"
        )


def validate_managed_by(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a spec.managedBy that is not a controller of TrainJobs."""
    manager = job.spec.managed_by
    if manager not in _MANAGERS and not is_placeholder(manager):
        fix = f"set {' or '.join(_MANAGERS)}, or remove managedBy, which means {_MANAGERS[0]}"
        yield MANAGED_BY.problem("spec.managedBy", "must be one of the two controllers of TrainJobs", fix, manager)


def check_image_is_set(container: Container, pods: GeneratedPods) -> Iterator[Problem]:
    """Yield containers of the merged pod without an image."""
    if not container.image:
        fix = "set spec.trainer.image" if container.name == "node" else "set the image in the runtime"
        yield IMAGE_REQUIRED.problem("", f"container `{container.name}` of {pods} has no image", fix)


def validate_runtime_kind(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a spec.runtimeRef that does not name a kind of runtime."""
    reference = job.spec.runtime_ref
    kind, group = reference.kind, reference.api_group
    if (kind not in _RUNTIMES or group != TRAINER) and not is_placeholder(kind + group):
        message = f"names kind `{kind}` of API group `{group}`, which is not a runtime of Trainer"
        fixes = [f"set kind to {' or '.join(_RUNTIMES)}"] if kind not in _RUNTIMES else []
        fixes += [f"set apiGroup to {TRAINER}"] if group != TRAINER else []
        yield RUNTIME_KIND.problem(reference.at, message, ", and ".join(fixes))


def validate_runtime_exists(job: MergedTrainJob, subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a runtime that does not exist, or that only other releases of Trainer ship."""
    if job.runtime.is_found or not job.runtime.name:
        return
    view = subject.cluster_view()
    kind = type(job.runtime.object)
    if view.is_whole(kind.gvk):
        near = view.nearest_here(job.runtime.name, kind.gvk)
        message = f"names {job.runtime}, which does not exist, so Trainer refuses the job"
        fix = (
            f"write `{near}`, or create the runtime first" if near else "correct the name, or create the runtime first"
        )
        yield RUNTIME_EXISTS.problem("spec.runtimeRef.name", message, fix)
        return
    yield RUNTIME_EXISTS.problem("spec.runtimeRef.name", missing=job.missing)
    if shipped := _other_releases_with_runtime(job, subject):
        first, last = shipped[0], shipped[-1]
        installed_text = f"but Trainer {release_as_text(job.release)} is installed"
        if first > job.release:
            ships, upgrade = f"ships with Trainer {release_as_text(first)}", "to upgrade Trainer or "
        else:
            ships, upgrade = f"ships last with Trainer {release_as_text(last)}", ""
        fix = f"use a runtime of the installed release, or ask the administrator {upgrade}to create this runtime"
        yield RUNTIME_RELEASE.problem(
            "spec.runtimeRef.name", f"names {job.runtime}, which {ships}, {installed_text}", fix
        )


def _other_releases_with_runtime(job: MergedTrainJob, subject: Subject) -> tuple[Release, ...]:
    """Return the releases that ship the missing runtime; () if the installed release is not known or also ships it."""
    if not isinstance(job.runtime.object, ClusterTrainingRuntime):
        return ()
    shipped = releases_with_runtime(job.runtime.name)
    is_shipped = min(job.release, NEWEST_WITH_RUNTIMES) in shipped
    return () if is_shipped or not subject.once(read_trainer_installation).is_named else shipped


def advise_runtime_args(job: MergedTrainJob, node: Container) -> Iterator[Problem]:
    """Yield the problem of a command without args, which runs with the args of the runtime."""
    if job.trainer.command and not job.trainer.has("args") and node.args:
        args = " ".join(node.args)
        shown = args if len(args) <= _SHOWN else f"{args[:_SHOWN]} …"
        message = f"runs with the args of {job.runtime}, `{shown}`"
        yield RUNTIME_ARGS.problem("spec.trainer.command", message, "set spec.trainer.args too")


def validate_patch_managers(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield runtimePatches with a manager that is invalid or has several patches."""
    patches = job.spec.runtime_patches if job.release >= PATCHES else ()
    managers = Counter(patch.manager for patch in patches)
    for patch in patches:
        manager, path = patch.manager, patch.path("manager")
        if is_placeholder(manager):
            continue
        domain, _, path_of_domain = manager.partition("/")
        if not has_form_of_subdomain(domain) or not _AFTER_DOMAIN.fullmatch(path_of_domain):
            fix = f"write a name such as example.org/{manager if _PLAIN.fullmatch(manager) else 'team'}"
            yield PATCH_MANAGER.problem(path, "must begin with a domain and a slash", fix, manager)
        if manager and managers[manager] > 1:
            message = f"is the manager of {managers[manager]} patches, but a manager can have only one patch"
            yield PATCH_MANAGER_TWICE.problem(path, message, "join these patches into one", manager)


def check_patch_env_and_repeated_jobs(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield patches that set variables of a step's container, and jobs that podSpecOverrides name twice."""
    targets: dict[str, str] = {}
    for layer in job.layers:
        for overlay in layer.overlays:
            name = overlay.name
            if job.release < TEMPLATES and name in targets:
                message = f"is also the target at {targets[name]}, but Trainer accepts only one override for each job"
                yield OVERRIDE_TWICE.problem(overlay.job.path("name"), message, "join these overrides into one", name)
            targets.setdefault(name, path_as_text(overlay.job.at))
            yield from check_patched_env(overlay)
