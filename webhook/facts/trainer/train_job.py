"""Rules of the API server and Trainer's webhook for a TrainJob that do not depend on its runtime.

Sources: kubeflow/trainer@8c0f5059bd51 manifests/base/crds, pkg/webhooks/trainjob_webhook.go and
pkg/runtime/framework/plugins/jobset/jobset.go, and branches release-2.0 to release-2.3. Fields of device claims are
claims_validation.py's, patches patch_validation.py's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT, INJECTION, NUMBERS_ONLY
from webhook.name_faults import label_fault
from webhook.names import dns1035_label_errors
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

NAME: Final = TRAIN_JOB.rule(
    "train-job/name",
    title="The name of a TrainJob is a DNS label of RFC 1035.",
    why="The JobSet, its jobs and pods are named after the TrainJob.",
    function="ValidateCreate of trainjob_webhook.go",
    refused_on_updates="",
)
SOURCE_SCHEME: Final = TRAIN_JOB.rule(
    "train-job/source-scheme",
    title="The storageUri of an initializer begins with a scheme.",
    why="The initializer chooses by the scheme where to load from, and fails without one.",
    refused_by="the initializer, when it runs",
    source="kubeflow/trainer@8c0f5059bd51 pkg/initializers",
    fails="start",
)

_RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_SOURCE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+")
RESERVED_ENV: Final = TRAIN_JOB.rule(
    "train-job/reserved-env",
    title="spec.trainer.env has no variables that the plugin sets.",
    why="The plugin refuses variables of its own, such as PET_NNODES of torch.",
)
NO_TRAINER: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-trainer",
    title="A TrainJob of several nodes sets spec.trainer.",
    why="Without it the plugins torch, jax and xgboost set no variables, and the nodes do not find each other.",
    source="https://github.com/kubeflow/trainer/issues/4076",
    fails="waiting",
    issues=("https://github.com/kubeflow/trainer/pull/4082",),
)
RESERVED: Final[Mapping[str, frozenset[str]]] = {
    "torch": frozenset(("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")),
    "mpi": frozenset(
        f"OMPI_MCA_{name}"
        for name in ("orte_default_hostfile", "plm_rsh_args", "orte_keep_fqdn_hostnames", "orte_set_default_slots")
    ),
    "xgboost": frozenset(("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")),
}
_PROCESSES: Final = "spec.trainer.numProcPerNode"
NODES: Final = "spec.trainer.numNodes"


def validate_name(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a name that is not a DNS-1035 label (trainjob_webhook.go ValidateCreate)."""
    name = job.object.name
    if name and dns1035_label_errors(name) and not is_placeholder(name):
        fault = label_fault(name, begins_with_letter=True)
        message = (
            f"cannot be the name of a TrainJob because {fault}, and the JobSet and its pods are named after the job"
        )
        fix = "use at most 63 lower-case letters, digits and dashes, and begin with a letter"
        yield NAME.problem("metadata.name", message, fix, name)


def validate_source_scheme(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a storageUri whose scheme the initializer cannot load from."""
    initializer = job.spec.initializer
    for source in (initializer.dataset, initializer.model) if job.release >= INITIALIZER_MOUNT else ():
        uri = source.storage_uri
        if uri and not _SOURCE.fullmatch(uri) and not is_placeholder(uri):
            message = "must begin with a scheme because the scheme tells the initializer where to load from"
            fix = "write a URI such as hf://organisation/name or s3://bucket/path"
            yield SOURCE_SCHEME.problem(source.path("storageUri"), message, fix, uri)


def validate_reserved_env(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield variables that the plugin sets itself; torch checks them since 2.2 always, mpi since 2.3."""
    reserved = RESERVED.get(job.plugin, frozenset())
    is_late = (job.plugin == "mpi" and job.release < INJECTION) or (
        job.plugin == "torch" and job.release < NUMBERS_ONLY and not job.trainer.has("numProcPerNode")
    )
    if is_late or not job.trainer.env_names.has_any_of(reserved):
        return
    for variable in job.trainer.env:
        if variable.name in reserved:
            message = f"must not be set because the {job.plugin} plugin sets this variable"
            fix = fix_for_variable_of_plugin(variable.name, "the TrainJob")
            yield RESERVED_ENV.problem(variable.path("name"), message, fix, variable.name)


def fix_for_variable_of_plugin(variable: str, whose: str) -> str:
    """Return the fix for a variable that a plugin sets."""
    field = {"PET_NNODES": NODES, "PET_NPROC_PER_NODE": _PROCESSES}.get(variable, "")
    return f"remove the variable, and set {field} of {whose}" if field else "remove the variable"


def check_trainer_set_for_several_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of several nodes without spec.trainer, for which plugins set no variables
    (kubeflow/trainer#4076).
    """
    if not job.trainer and job.number_of_nodes > 1 and job.plugin in ("torch", "jax", "xgboost"):
        message = (
            f"must be set because otherwise the {job.plugin} plugin sets no variables, so the {job.number_of_nodes} "
            "nodes of "
            f"{job.runtime} train alone or wait for each other"
        )
        yield NO_TRAINER.problem(
            "spec.trainer", message, f"set spec.trainer, such as to numNodes: {job.number_of_nodes}"
        )
