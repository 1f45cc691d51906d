"""Rules for the name, runPolicy and restart policies of a job, and for fields that are deprecated, ignored or dropped.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/webhooks/*/*_webhook.go, pkg/common/util/webhooks.go,
pkg/controller.v1/common/job.go, pkg/core/job.go; kubeflow/mpi-operator@caa3c47fc42e pkg/apis/kubeflow/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.names import (
    DNS_1035_LABEL,
    label_fault,
    label_fix,
)
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.facts.training_jobs.typed_job import (
    PROCESSES_OF_ELASTIC_POLICY,
    TRAINING_JOB,
    TRAINING_JOB_ADVICE,
    RoleOfJob,
    TrainingJobOfKind,
)
from webhook.rules.problem import Problem
from webhook.text.wording import change, counted, either

NAME_FORMAT: Final = TRAINING_JOB.rule(
    "training-job/name-format",
    title="The name of the job cannot be the name of a Service",
    why="Services and pods get the name of the job, and the name of a Service must begin with a letter.",
    function="ValidateCreate",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1745",
        "https://github.com/kubeflow/trainer/issues/1101",
    ),
)
NAME_LENGTH: Final = TRAINING_JOB.rule(
    "training-job/name-length",
    title="The name of the job is too long",
    why="Names of services, hosts or labels begin with the name of the job and must not exceed 63 characters.",
    source="k8s.io/apimachinery v0.36 pkg/util/validation/validation.go",
    function="IsDNS1035Label",
    fails="controller",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1745",
        "https://github.com/kubeflow/trainer/issues/1101",
        "https://github.com/project-codeflare/mlbatch/issues/38",
    ),
)
MANAGED_BY: Final = TRAINING_JOB.rule(
    "training-job/managed-by",
    title="runPolicy.managedBy names an unknown controller",
    why="The webhook of the operator refuses unknown controllers.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/common/util/webhooks.go",
    function="ValidateManagedBy",
    issues=("https://github.com/kubeflow/trainer/pull/2203",),
)
MANAGED_BY_IMMUTABLE: Final = TRAINING_JOB.rule(
    "training-job/managed-by-immutable",
    title="managedBy was changed, which the operator refuses",
    why="The webhook of the operator refuses the update.",
    function="ValidateUpdate",
)
QUEUE_IMMUTABLE: Final = TRAINING_JOB.rule(
    "training-job/queue-immutable",
    title="The queue of the job was changed",
    why="The CustomResourceDefinition does not allow the change.",
    refused_by="the API server",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) manifests/base/crds",
    refused_on_updates="manifests/base/crds, the rules about oldSelf",
)
NOT_NEGATIVE: Final = TRAINING_JOB.rule(
    "training-job/not-negative",
    title="A deadline, retry count or TTL is negative",
    why=(
        "A negative deadline is over before the job starts. The MPI Operator refuses negative deadlines, retry counts "
        "and TTLs."
    ),
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/core/job.go",
    function="PastActiveDeadline",
    fails="controller",
    refused_on_updates="",
)
MIN_AVAILABLE: Final = TRAINING_JOB.rule(
    "training-job/min-available",
    title="schedulingPolicy.minAvailable is above the number of pods",
    why="The scheduler waits for more pods than there will be, so no pod starts.",
    refused_by="the scheduler, which waits",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/common/job.go",
    function="ReconcileJobs",
    fails="pending",
    issues=("https://github.com/volcano-sh/volcano/issues/2462",),
)
CLEAN_POD_POLICY: Final = TRAINING_JOB.rule(
    "training-job/clean-pod-policy",
    title="The MPI Operator does not know this cleanPodPolicy",
    why="The operator compares names letter by letter, and refuses unknown names.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/apis/kubeflow/validation/validation.go",
    function="validateRunPolicy",
    fails="controller",
    refused_on_updates="",
)
MANAGED_BY_OTHER: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/managed-by-other",
    title="managedBy of the MPIJob names another controller",
    why="The operator ignores the job, so nothing happens unless another controller exists.",
    source="kubeflow/mpi-operator caa3c47fc42e pkg/controller/mpi_job_controller.go",
    function="managedByExternalController",
    fails="pending",
)
MANAGED_BY_IGNORED: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/managed-by-ignored",
    title="The JAXJob controller ignores managedBy",
    why="The controller runs every JAXJob, also a JAXJob that another controller should run.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/jax/jaxjob_controller.go",
    function="Reconcile",
)
MANAGED_BY_CHANGE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/managed-by-change",
    title="managedBy was changed while the job runs, so two controllers may start pods",
    why=(
        "The old controller stops, and the new controller starts its own pods while the old pods still run. The API "
        "server allows the change in PyTorchJobs and MPIJobs."
    ),
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/webhooks/pytorch/pytorchjob_webhook.go",
    function="ValidateUpdate",
)
CLEAN_POD_POLICY_UNKNOWN: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/clean-pod-policy-unknown",
    title="The Training Operator reads an unknown cleanPodPolicy as All",
    why="The operator treats every unknown value as All, and deletes the pods with their logs.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/common/job.go",
    function="DeletePodsAndServices",
)
NO_TIME: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/no-time",
    title="activeDeadlineSeconds is 0",
    why="The operator ends the job as soon as it starts.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/core/job.go",
    function="PastActiveDeadline",
    fails="start",
)

_LONGEST_LABEL: Final = 63
"""The maximum length of a label or a host name (k8s.io/apimachinery v0.36 pkg/util/validation DNS1035LabelMaxLength).
"""
_OPERATOR, _MULTIKUEUE, _MPI_OPERATOR = (
    "kubeflow.org/training-operator",
    "kueue.x-k8s.io/multikueue",
    "kubeflow.org/mpi-operator",
)
_POLICY: Final = ("spec", "runPolicy")
_QUEUE: Final = ("runPolicy", "schedulingPolicy", "queue")
_CLEANING: Final = ("None", "Running", "All")
RESTART_POLICY: Final = TRAINING_JOB.rule(
    "training-job/restart-policy",
    title="Pods cannot have this restartPolicy",
    why=(
        "The Training Operator copies the text into the pods, which the API server then refuses. The MPI Operator "
        "refuses the job."
    ),
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/common/pod.go",
    function="setRestartPolicy",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/issues/2200",),
)
_RESTARTS: Final = ("Always", "OnFailure", "Never", "ExitCode")
_RESTARTS_BETA: Final = ("Never", "OnFailure")

NULL_AMOUNT: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/null-amount",
    title="The amount of a GPU is null",
    why="The API server drops an amount that is null, so the pod starts without a GPU.",
    source=(
        "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting-and-nullable"
    ),
)
POD_RESTART_POLICY: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/pod-restart-policy",
    title="restartPolicy is set in the pod template, where the operator overwrites it",
    why="The operator overwrites restartPolicy of the pod template with its own value.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/common/pod.go",
    function="createNewPod",
    severity="low",
)
DEPRECATED_FIELD: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/deprecated-field",
    title="The number of processes is set in a deprecated field",
    why="The field of elasticPolicy is deprecated, and a later release may remove it.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/webhooks/pytorch/pytorchjob_webhook.go",
    function="ValidateCreate",
    severity="low",
)
OTHER_VERSION: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/other-version",
    title="The field belongs to another version of MPIJob",
    why="The API server drops the field, so it has no effect.",
    source="https://github.com/kubeflow/trainer/issues/1930",
    severity="low",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1777",
        "https://github.com/kubernetes-sigs/kueue/issues/13035",
    ),
)
_BETA_ONLY: Final = ("runLauncherAsWorker", "mpiImplementation", "sshAuthMountPath", "launcherCreationPolicy")
_V1_ONLY: Final = ("mainContainer", "cleanPodPolicy")


def validate_name(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check the name of a job.

    The names of the services of the pods begin with the name of the job. With the MPI Operator, the names of hosts also
    begin with the name of the job. In an MPIJob v1, the name of the job is also the value of a label.
    """
    is_label = job.kind == "MPIJob" and not job.is_beta
    if job.name and not is_label and not DNS_1035_LABEL.fullmatch(job.name):
        fault = label_fault(job.name, begins_with_letter=True)
        message = f"cannot be the name of the job because {fault}, and services and pods are named after the job"
        fix = label_fix(job.name, begins_with_letter=True)
        yield NAME_FORMAT.problem(("metadata", "name"), message, fix, job.name)
    longest = max(_suffixes_of_pod_names(job), key=len, default="")
    if len(job.name) + len(longest) > _LONGEST_LABEL:
        use = "the value of a label" if is_label else "the name of a host" if job.is_beta else "the name of a service"
        message = (
            f"must have at most {_LONGEST_LABEL - len(longest)} characters because `{job.name}{longest}` is {use}, "
            f"which has at most {_LONGEST_LABEL} characters"
        )
        fix = f"remove {counted(len(job.name) + len(longest) - _LONGEST_LABEL, 'character')}"
        yield NAME_LENGTH.problem(("metadata", "name"), message, fix, job.name)


def _suffixes_of_pod_names(job: TrainingJobOfKind) -> Iterator[str]:
    """Yield the suffix that the last pod of each role adds to the name of the job."""
    if job.is_beta:
        worker = job.roles.get("Worker")
        yield from ("-launcher", f"-worker-{max((worker and worker.replicas) or 0, 1) - 1}")
    elif job.kind != "MPIJob":
        for role in job.roles.values():
            yield f"-{role.name.lower()}-{max(role.replicas or 0, 1) - 1}"


def validate_managed_by(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check managedBy as ValidateManagedBy does. The webhook of PyTorchJobs compares the new job with itself, and so
    accepts every change.
    """
    path: FieldPath = (*_POLICY, "managedBy")
    given = job.value_at("runPolicy", "managedBy")
    if job.kind == "JAXJob":
        if given not in (None, _OPERATOR):
            message = "is ignored because the Training Operator runs every JAXJob"
            yield MANAGED_BY_IGNORED.problem(path, message, "remove managedBy", given)
    elif job.kind == "MPIJob":
        if given not in (None, _MULTIKUEUE, _MPI_OPERATOR if job.is_beta else _OPERATOR):
            operator = "MPI Operator" if job.is_beta else "Training Operator"
            message = f"names another controller, so the {operator} does not run the job"
            fix = f"remove managedBy, or set {_MULTIKUEUE} if MultiKueue runs the job"
            yield MANAGED_BY_OTHER.problem(path, message, fix, given)
    elif given not in (None, _OPERATOR, _MULTIKUEUE):
        message = f"must be {_OPERATOR} or {_MULTIKUEUE} because no other controller runs such jobs"
        yield MANAGED_BY.problem(path, message, "set one of them, or remove managedBy", given)
    if job.old_spec is not None and job.kind != "JAXJob" and not job.is_placeholder_at("runPolicy", "managedBy"):
        before = get(job.old_spec, ("runPolicy", "managedBy"))
        if before != given:
            yield _changed_controller_problem(job, path, before, given)


def _changed_controller_problem(job: TrainingJobOfKind, path: FieldPath, before: object, given: object) -> Problem:
    changed = change(before, given)
    fix = (
        "remove managedBy again, or create a new job"
        if before is None
        else f"set `{before}` again, or create a new job"
    )
    if job.kind in ("PyTorchJob", "MPIJob"):
        message = (
            f"{changed} because running pods would stay, and another controller would start more pods next to them"
        )
        return MANAGED_BY_CHANGE.problem(path, message, fix)
    message = f"{changed} because a job keeps its controller"
    return MANAGED_BY_IMMUTABLE.problem(path, message, fix)


def check_queue_unchanged(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Refuse a change of a queue that is set, as the schemas of v1 do. The MPI Operator's schema allows the change."""
    now, before = job.value_at(*_QUEUE), get(job.old_spec, _QUEUE)
    if not job.is_beta and now is not None and before is not None and now != before:
        message = f"{change(before, now)} because a job keeps its queue"
        fix = f"set `{before}` again, or create a new job"
        yield QUEUE_IMMUTABLE.problem(("spec", *_QUEUE), message, fix)


def validate_run_policy(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Yield negative deadlines, retry counts and TTLs, and a deadline of 0.

    validateRunPolicy of the MPI Operator refuses negative numbers. In the Training Operator, PastActiveDeadline and
    PastBackoffLimit of core/job.go end a job with these values at once.
    """
    # a negative TTL is not wrong in v1: the finished job is deleted at once
    names = ("activeDeadlineSeconds", "backoffLimit", *(["ttlSecondsAfterFinished"] if job.is_beta else []))
    for name in names:
        value = job.number_at("runPolicy", name)
        if value is not None and value < 0:
            then = "the MPI Operator then never starts the job" if job.is_beta else "the job then fails at once"
            least = 1 if name == "activeDeadlineSeconds" else 0
            message, fix = f"must not be negative because {then}", f"set {least} or more, or remove {name}"
            yield NOT_NEGATIVE.problem((*_POLICY, name), message, fix, value)
    if job.number_at("runPolicy", "activeDeadlineSeconds") == 0:
        fix = "set the seconds that the job may take, or remove activeDeadlineSeconds"
        yield NO_TIME.problem((*_POLICY, "activeDeadlineSeconds"), "ends the job as soon as it starts", fix, 0)


def validate_min_available(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check minAvailable against the number of pods, except in elastic jobs, which may get more workers."""
    pods, least = job.count_pods(), job.number_at("runPolicy", "schedulingPolicy", "minAvailable")
    if least is not None and pods is not None and least > pods and job.value_at("elasticPolicy") is None:
        message = (
            f"must not be more than the {counted(pods, 'pod')} of the job because no pod starts until that many pods "
            "can start"
        )
        path: FieldPath = (*_POLICY, "schedulingPolicy", "minAvailable")
        fix = "lower minAvailable, or remove the field"
        yield MIN_AVAILABLE.problem(path, message, fix, least, excess=least - pods)


def validate_clean_pod_policy(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check cleanPodPolicy. The MPI Operator refuses unknown values; the Training Operator reads unknown values as All
    (common/job.go DeletePodsAndServices).
    """
    if job.is_beta:
        if (value := job.value_at("runPolicy", "cleanPodPolicy")) not in (None, *_CLEANING):
            message = f"must be {either(_CLEANING)}, in this spelling, because the MPI Operator refuses other values"
            yield CLEAN_POD_POLICY.problem((*_POLICY, "cleanPodPolicy"), message, "set one of them", value)
        return
    for path in (("cleanPodPolicy",), ("runPolicy", "cleanPodPolicy")):
        if (value := job.value_at(*path)) not in (None, *_CLEANING) and (job.kind == "MPIJob" or len(path) > 1):
            message = (
                "is treated as All because the operator does not know this value, so pods are deleted with their logs"
            )
            fix = f"set {either(_CLEANING)}, in this spelling"
            yield CLEAN_POD_POLICY_UNKNOWN.problem(("spec", *path), message, fix, value)


def validate_restart_policy(role: RoleOfJob, job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check restartPolicy. The MPI Operator refuses unknown values; the Training Operator copies any text into the
    pods (common/pod.go).
    """
    choices = _RESTARTS_BETA if job.is_beta else _RESTARTS
    if role.restart_policy and role.restart_policy not in choices:
        reason = (
            "the MPI Operator refuses other values" if job.is_beta else "Kubernetes refuses pods with any other value"
        )
        message = f"must be {either(choices)} because {reason}"
        yield RESTART_POLICY.problem((*role.path, "restartPolicy"), message, "set one of them", role.restart_policy)


def validate_pod_restart_policy(role: RoleOfJob, job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report a restart policy in the pod template, which the operator overwrites with the policy of the role."""
    written = _restart_policy_of_pod(role, job)
    if role.pod_restart_policy not in ("", written):
        path = (*role.template_path, "spec", "restartPolicy")
        fix = f"set {path_as_text((*role.path, 'restartPolicy'))} instead"
        message = f"is ignored because the operator writes `{written}`"
        yield POD_RESTART_POLICY.problem(path, message, fix, role.pod_restart_policy)


def _restart_policy_of_pod(role: RoleOfJob, job: TrainingJobOfKind) -> str:
    """Return the policy that the operator sets in pods. ExitCode becomes Never; the default depends on the kind."""
    if role.restart_policy:
        return "Never" if role.restart_policy == "ExitCode" else role.restart_policy
    is_retried = job.kind in ("PyTorchJob", "PaddleJob") or (job.is_beta and role.name == "Launcher")
    return "OnFailure" if is_retried else "Never"


def check_null_gpu_amounts(role: RoleOfJob) -> Iterator[Problem]:
    """Report GPUs of a role with a null amount, which the API server drops."""
    if role.null_gpus and role.gpus == 0:
        message = "is null, which the API server drops, so the pod requests no GPU"
        processes = role.launch.processes if role.launch.by == "torchrun" else None
        such_as = f", such as {processes} for --nproc_per_node={processes}" if processes else ""
        yield NULL_AMOUNT.problem(role.null_gpus[0], message, f"set a number of GPUs{such_as}")


def advise_deprecated_field(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of the older field for the number of processes, as ValidateCreate of PyTorchJobs does."""
    at = PROCESSES_OF_ELASTIC_POLICY
    value = job.value_at(*at)
    is_reported = job.value_at("nprocPerNode") is not None  # check_nproc_field_set_once reports both fields
    if not is_reported and (value is not None or job.is_placeholder_at(*at)):
        text = f'"{value}"' if isinstance(value, int) else "the number as a string"
        fix = f"remove this field, and set spec.nprocPerNode to {text}"
        yield DEPRECATED_FIELD.problem(("spec", *at), "is deprecated, and a later release may remove the field", fix)


def warn_of_fields_of_other_version(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of fields that exist only in the other version of MPIJob, v1 or v2beta1."""
    version = "v2beta1" if job.is_beta else "v1"
    other = "kubeflow.org/v1 and the Training Operator" if job.is_beta else "kubeflow.org/v2beta1 and the MPI Operator"
    for name in _V1_ONLY if job.is_beta else _BETA_ONLY:
        is_moved = name == "cleanPodPolicy"
        fix = f"{'move the field to spec.runPolicy' if is_moved else 'remove the field'}, or use {other}"
        if job.value_at(name) is not None or job.is_placeholder_at(name):
            since = "by MPI Operator 0.4 and later " if job.is_beta else ""
            message = f"is ignored {since}because an MPIJob of kubeflow.org/{version} does not have this field"
            yield OTHER_VERSION.problem(("spec", name), message, fix)
