"""The facts `trainer`, about a TrainJob merged with its runtime, and `training`, about changes of Trainer's objects."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.cel.types import BOOL, DYN, INT, STRING, list_of
from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.subject import Fact, Subject
from webhook.facts.train_job_pods.merged_train_job import merge_train_job
from webhook.facts.train_job_pods.releases import read_trainer_installation
from webhook.facts.train_job_pods.train_job_and_runtime_fields import comparable_specs
from webhook.facts.train_job_pods.types import RUNTIMES
from webhook.facts.trainer.train_job_claims import NodeDeviceClaim, device_claims_of_training_node
from webhook.facts.trainer.train_job_launcher import launcher_of_job
from webhook.facts.trainer.train_job_processes_and_gpus import gpus_of_node, sentence_about_unset_processes

RUNTIME: Final = declare_structure(
    "TrainerRuntime",
    found=(BOOL, "whether the runtime exists"),
    plugin=(
        STRING,
        (
            "plugin of the runtime: `torch`, `mpi`, `flux`, `jax`, `xgboost` or `plain`; `none` without mlPolicy; "
            "empty if the runtime is not known"
        ),
    ),
)
NODE_CLAIM: Final = declare_structure(
    "NodeClaim",
    name=(STRING, "name by which containers refer to the claim"),
    kind=(STRING, "ResourceClaim or ResourceClaimTemplate"),
    reference=(STRING, "name of the ResourceClaim or ResourceClaimTemplate"),
    found=(BOOL, "whether the ResourceClaim or ResourceClaimTemplate exists"),
    devices=(DYN, "number of devices in the requests that the container uses; null if not known"),
    atLeast=(INT, "the fewest devices that the requests used by the container get"),
    otherDevice=(BOOL, "whether it is known that no device of the claim is a GPU"),
)
NODE: Final = declare_structure(
    "TrainerNode",
    claims=(
        list_of(NODE_CLAIM.type),
        "device claims that the container `node` uses; if `node` uses no claim, the claims that no container uses",
    ),
)
PROCESSES: Final = declare_structure(
    "TrainerProcesses",
    perNode=(STRING, "the value that Trainer passes to the launcher: a number, `auto` or `gpu`"),
    reason=(STRING, "why Trainer passes this value"),
    gpus=(INT, "GPUs that Trainer counts"),
    launcher=(STRING, "torchrun, accelerate or deepspeed if the command sets the number of processes, otherwise empty"),
    started=(DYN, "number of processes that the launcher starts on each node; null if not known"),
    unset=(
        STRING,
        "what happens to device claims if numProcPerNode is not set, and the fix; empty if no claim may be for GPUs",
    ),
)
TRAINER: Final = declare_structure(
    "Trainer",
    runtime=(RUNTIME.type, "runtime that the TrainJob names"),
    node=(NODE.type, "the container `node`, which trains"),
    processes=(PROCESSES.type, "how many processes start on each node"),
)
TRAINING: Final = declare_structure("Training", changes=(list_of(STRING), "fields of the spec that the update changes"))


def _compute_training_fact(subject: Subject) -> FactResult:
    now, before = comparable_specs(subject)
    changed = [name for name in {**now, **before} if now.get(name) != before.get(name)]
    return FactResult({"changes": changed if subject.old_object is not None else []})


def _compute_trainer_fact(subject: Subject) -> FactResult:
    job, claims = subject.once(merge_train_job), subject.once(device_claims_of_training_node)
    launcher = launcher_of_job(subject, gpus_of_node(job, claims))
    is_named = subject.once(read_trainer_installation).is_named
    value = {
        "runtime": {"found": job.runtime.is_found, "plugin": job.plugin},
        "node": {"claims": [_claim_as_json(claim) for claim in claims]},
        "processes": {
            "perNode": job.processes.per_node,
            "reason": job.processes.reason,
            "gpus": job.counted_gpus[0],
            "launcher": launcher.by,
            "started": launcher.processes,
            "unset": sentence_about_unset_processes(job, claims, launcher, is_named=is_named),
        },
    }
    return FactResult(value, dict.fromkeys(value, job.missing) if job.missing else {})


def _claim_as_json(claim: NodeDeviceClaim) -> JSON:
    return {
        "name": claim.name,
        "kind": claim.kind,
        "reference": claim.reference,
        "found": claim.found,
        "devices": claim.devices,
        "atLeast": claim.at_least,
        "otherDevice": claim.is_other,
    }


FACTS: Final = (
    Fact(
        name="trainer",
        about=(
            "A TrainJob merged with its runtime, as the assumed release of Kubeflow Trainer merges them. Releases "
            "2.0 to 2.4 merge them differently."
        ),
        examples=("trainer.processes.gpus > 0 || trainer.node.claims.size() == 0",),
        type=TRAINER.type,
        structures=(TRAINER, RUNTIME, NODE, NODE_CLAIM, PROCESSES),
        compute=_compute_trainer_fact,
        lookups=(*RUNTIMES, *LOOKUPS),
        expanded={"": "empty, because a pod template is not a TrainJob"},
    ),
    Fact(
        name="training",
        about=(
            "What an update changes in an object of Kubeflow Trainer: a TrainJob, a runtime or an OptimizationJob. The "
            "fact reads no other objects."
        ),
        examples=('training.changes.all(c, c == "suspend")',),
        type=TRAINING.type,
        structures=(TRAINING,),
        compute=_compute_training_fact,
        expanded={"": "empty, because a pod template is not an object of Kubeflow Trainer"},
    ),
)
