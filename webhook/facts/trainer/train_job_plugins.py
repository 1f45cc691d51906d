"""What the plugin of its runtime refuses of a TrainJob, or does otherwise than the TrainJob reads.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{torch/torch,mpi/mpi,xgboost/xgboost,flux/flux}.go
Validate, and branches release-2.0 to release-2.3. torchtune is torchtune.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.releases import FLUX_NODES, INJECTION, NUMBERS_ONLY, REFUSES_ZERO
from webhook.facts.trainer.train_job import wrong_processes
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import shown
from webhook.typed.fields import whole

RESERVED_ENV: Final = TRAIN_JOB.rule(
    "train-job/reserved-env",
    title="spec.trainer.env has no variables that the plugin sets.",
    why="The plugin refuses variables of its own, such as PET_NNODES of torch.",
)
TRAIN_JOB_FLUX_NODES: Final = TRAIN_JOB.rule(
    "train-job/flux-nodes",
    title="A TrainJob of flux says numNodes before 2.4.",
    why="The flux plugin crashes without it and is started again and again.",
    refused_by="Trainer's controller, which crashes",
    source="https://github.com/kubeflow/trainer/issues/3667",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/3904",),
)
NO_PROCESSES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-processes",
    title="numProcPerNode is at least 1.",
    why="Releases before 2.4 take 0 and start no process.",
    source="https://github.com/kubeflow/trainer/pull/3809",
    fails="start",
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
_NODES: Final = "spec.trainer.numNodes"


def validate_reserved_env(job: MergedTrainJob) -> Iterator[Problem]:
    """Variables that the plugin sets itself; torch looks at them since 2.2 always, mpi since 2.3."""
    reserved = RESERVED.get(job.plugin, frozenset())
    is_late = (job.plugin == "mpi" and job.release < INJECTION) or (
        job.plugin == "torch" and job.release < NUMBERS_ONLY and not job.trainer.has("numProcPerNode")
    )
    if is_late or not job.trainer.env_names.shares(reserved):
        return
    for variable in job.trainer.env:
        if variable.name in reserved:
            message = f"must not be set because the {job.plugin} plugin sets this variable"
            fix = instead_of(variable.name, "the TrainJob")
            yield RESERVED_ENV.problem(variable.path("name"), message, fix, variable.name)


def instead_of(variable: str, whose: str) -> str:
    """What to do about a variable that a plugin sets."""
    field = {"PET_NNODES": _NODES, "PET_NPROC_PER_NODE": _PROCESSES}.get(variable, "")
    return f"remove the variable, and set {field} of {whose}" if field else "remove the variable"


def validate_processes(job: MergedTrainJob) -> Iterator[Problem]:
    """What a plugin does not take for numProcPerNode; what the API server refuses is job_validation.py's."""
    per_node = job.trainer.num_proc_per_node
    if per_node is None or is_placeholder(str(per_node)):
        return
    number = whole(per_node)
    if job.release < NUMBERS_ONLY and number is None:
        yield from _validate_word(job, per_node)
    elif number is not None and number < 1 and job.release < REFUSES_ZERO:
        fix = "set a whole number of at least 1, or remove numProcPerNode"
        if job.plugin == "flux" and job.release >= INJECTION:
            message = f"must be at least 1 because the flux plugin of Trainer {shown(job.release)} refuses less"
            yield wrong_processes(message, fix, f"`{number}`")
        else:
            yield NO_PROCESSES.problem(_PROCESSES, "does not start a process on any node", fix, number)


def _validate_word(job: MergedTrainJob, per_node: str) -> Iterator[Problem]:
    """Words that 2.0 and 2.1 take: torch three, mpi none; other plugins do not read it."""
    words = {"torch": ("auto", "cpu", "gpu"), "mpi": ()}.get(job.plugin, (per_node,))
    if per_node not in words:
        allowed = "a whole number, auto, cpu or gpu" if words else "a whole number"
        message = f"must be {allowed} for the {job.plugin} plugin of Trainer {shown(job.release)}"
        yield wrong_processes(message, "set such a value, or remove numProcPerNode", f"the text `{per_node}`")


def validate_flux_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """kubeflow/trainer#3667."""
    if job.plugin == "flux" and job.release < FLUX_NODES and job.trainer.num_nodes is None:
        message = f"must be set because the flux plugin of Trainer {shown(job.release)} crashes without numNodes"
        yield TRAIN_JOB_FLUX_NODES.problem(_NODES, message, f"set numNodes, such as to {job.nodes}")


def validate_no_trainer(job: MergedTrainJob) -> Iterator[Problem]:
    """kubeflow/trainer#4076: without spec.trainer the plugins set no variables."""
    if not job.trainer and job.nodes > 1 and job.plugin in ("torch", "jax", "xgboost"):
        message = (
            f"must be set because otherwise the {job.plugin} plugin sets no variables, so the {job.nodes} nodes of "
            f"{job.runtime} train alone or wait for each other"
        )
        yield NO_TRAINER.problem("spec.trainer", message, f"set spec.trainer, such as to numNodes: {job.nodes}")
