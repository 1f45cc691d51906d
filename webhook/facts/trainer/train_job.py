"""What the API server and Trainer's webhook refuse of a TrainJob whatever its runtime is.

Sources: kubeflow/trainer@8c0f5059bd51 manifests/base/crds, pkg/webhooks/trainjob_webhook.go and
pkg/runtime/framework/plugins/jobset/jobset.go, and branches release-2.0 to release-2.3. Fields of device claims are
claims_validation.py's, patches patch_validation.py's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.kinds import TRAINER
from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.releases import CLAIMS, INITIALIZER_MOUNT, NUMBERS_ONLY, REFUSES_ZERO
from webhook.name_faults import label_fault
from webhook.names import dns1035_label
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import shown
from webhook.typed.fields import whole

NAME: Final = TRAIN_JOB.rule(
    "train-job/name",
    title="The name of a TrainJob is a DNS label of RFC 1035.",
    why="The JobSet, its jobs and pods are named after the TrainJob.",
    function="ValidateCreate of trainjob_webhook.go",
)
RUNTIME_KIND: Final = TRAIN_JOB.rule(
    "train-job/runtime-kind",
    title="runtimeRef names a TrainingRuntime or a ClusterTrainingRuntime.",
    why="Trainer knows no other runtimes.",
)
MANAGED_BY: Final = TRAIN_JOB.rule(
    "train-job/managed-by",
    title="managedBy names Trainer's controller or MultiKueue.",
    why="The rules of the CustomResourceDefinition take no other controller.",
)
RESOURCES_CLAIMS: Final = TRAIN_JOB.rule(
    "train-job/resources-claims",
    title="resourcesPerNode has no claims since 2.4.",
    why="Trainer refuses them, for resourceClaimsPerNode names the claims of a node.",
    source="https://github.com/kubeflow/trainer/pull/4027",
)
PROCESSES: Final = TRAIN_JOB.rule(
    "train-job/processes",
    title="numProcPerNode is a number, or a word, that the release of Trainer and the plugin take.",
    why=(
        "Since 2.2 it is a whole number, since 2.4 at least 1. Before, torch takes auto, cpu and gpu, and mpi takes "
        "only numbers."
    ),
    source="https://github.com/kubeflow/trainer/pull/3239",
)
SOURCE_SCHEME: Final = TRAIN_JOB.rule(
    "train-job/source-scheme",
    title="The storageUri of an initializer begins with a scheme.",
    why="The initializer chooses by the scheme where to load from, and fails without one.",
    refused_by="the initializer, when it runs",
    source="kubeflow/trainer@8c0f5059bd51 pkg/initializers",
    fails="start",
)
IGNORED_CLAIMS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ignored-claims",
    title="resourcesPerNode has no claims before 2.4.",
    why="Trainer copies only limits and requests, so the claims never reach a pod.",
    refused_by="nobody; the claims are ignored",
    source="https://github.com/kubeflow/trainer/pull/4027",
)
NO_NODES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-nodes",
    title="A TrainJob that is not suspended has at least one node.",
    why="With numNodes 0 no training pod is made.",
    source="https://github.com/kubeflow/trainer/issues/2170",
    severity="low",
)

_RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_MANAGERS: Final = ("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue")
_SOURCE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+")


def validate_name(job: MergedTrainJob) -> Iterator[Problem]:
    """trainjob_webhook.go ValidateCreate."""
    name = job.object.name
    if name and dns1035_label(name) and not is_placeholder(name):
        fault = label_fault(name, begins_with_letter=True)
        message = (
            f"cannot be the name of a TrainJob because {fault}, and the JobSet and its pods are named after the job"
        )
        fix = "use at most 63 lower-case letters, digits and dashes, and begin with a letter"
        yield NAME.problem("metadata.name", message, fix, name)


def validate_runtime_kind(job: MergedTrainJob) -> Iterator[Problem]:
    """Only two kinds are runtimes."""
    reference = job.spec.runtime_ref
    kind, group = reference.kind, reference.api_group
    if (kind not in _RUNTIMES or group != TRAINER) and not is_placeholder(kind + group):
        message = f"names kind `{kind}` of API group `{group}`, which is not a runtime of Trainer"
        fixes = [f"set kind to {' or '.join(_RUNTIMES)}"] if kind not in _RUNTIMES else []
        fixes += [f"set apiGroup to {TRAINER}"] if group != TRAINER else []
        yield RUNTIME_KIND.problem(reference.at, message, ", and ".join(fixes))


def validate_managed_by(job: MergedTrainJob) -> Iterator[Problem]:
    """Only two controllers are known."""
    manager = job.spec.managed_by
    if manager not in _MANAGERS and not is_placeholder(manager):
        fix = f"set {' or '.join(_MANAGERS)}, or remove managedBy, which means {_MANAGERS[0]}"
        yield MANAGED_BY.problem("spec.managedBy", "must be one of the two controllers of TrainJobs", fix, manager)


def validate_resource_claims(job: MergedTrainJob) -> Iterator[Problem]:
    """kubeflow/trainer#4027: builder.go copies limits and requests alone."""
    resources = job.trainer.resources_per_node
    if not resources.claims:
        return
    names = ", ".join(f"`{claim.name}`" for claim in resources.claims)
    if job.release >= CLAIMS:
        message = f"must not be set because Trainer {shown(job.release)} refuses claims here"
        fix = "name the claim's template in spec.trainer.resourceClaimsPerNode"
        yield RESOURCES_CLAIMS.problem(resources.path("claims"), message, fix, shown=names)
    else:
        fix = "declare the claim in the pod template of the runtime"
        message = f"is ignored because Trainer {shown(job.release)} copies only limits and requests"
        yield IGNORED_CLAIMS.problem(resources.path("claims"), message, fix, shown=names)


def validate_num_proc_per_node(job: MergedTrainJob) -> Iterator[Problem]:
    """kubeflow/trainer#3239 since 2.2, #3809 since 2.4; before, a plugin says what it takes."""
    per_node = job.trainer.num_proc_per_node
    if job.release < NUMBERS_ONLY:
        return
    if isinstance(per_node, str) and not is_placeholder(per_node):
        message = f"must be a whole number because Trainer {shown(job.release)} does not take a string"
        otherwise = "set a number, or remove numProcPerNode for one process per GPU"
        fix = f"write the number {per_node}" if per_node.isdecimal() else otherwise
        yield wrong_processes(message, fix, f"the text `{per_node}`")
    elif (number := whole(per_node)) is not None and number < 1 and job.release >= REFUSES_ZERO:
        message = f"must be at least 1 because Trainer {shown(job.release)} refuses less"
        fix = "set a number of at least 1, or remove numProcPerNode for one process per GPU"
        yield wrong_processes(message, fix, f"`{number}`")


def wrong_processes(message: str, fix: str, shown: str) -> Problem:
    """A number of processes that the API server or a plugin refuses."""
    return PROCESSES.problem("spec.trainer.numProcPerNode", message, fix, shown=shown)


def validate_source_scheme(job: MergedTrainJob) -> Iterator[Problem]:
    """The initializer chooses by the scheme where to load from."""
    initializer = job.spec.initializer
    for source in (initializer.dataset, initializer.model) if job.release >= INITIALIZER_MOUNT else ():
        uri = source.storage_uri
        if uri and not _SOURCE.fullmatch(uri) and not is_placeholder(uri):
            message = "must begin with a scheme because the scheme tells the initializer where to load from"
            fix = "write a URI such as hf://organisation/name or s3://bucket/path"
            yield SOURCE_SCHEME.problem(source.path("storageUri"), message, fix, uri)


def validate_no_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """kubeflow/trainer#2170: 0 is accepted."""
    if job.trainer.num_nodes == 0 and not job.spec.suspend:
        message = "makes a job without a training pod"
        fix = "set at least 1, or suspend the job with spec.suspend"
        yield NO_NODES.problem("spec.trainer.numNodes", message, fix, 0)
