"""The facts `trainer` and `running`: a TrainJob merged with its runtime, and the JobSet that it already has."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, DYN, INT, STRING, list_of
from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.fact import Fact, Result, structure
from webhook.facts.finding import NOTE
from webhook.facts.subject import Subject
from webhook.facts.trainer import running_jobset
from webhook.facts.trainer.lookups import RUNTIMES
from webhook.facts.trainer.train_job import trainer

RUNTIME: Final = structure(
    "TrainerRuntime",
    kind=(STRING, "TrainingRuntime or ClusterTrainingRuntime"),
    name=(STRING, 'name that the TrainJob gives; `""` for anything but a TrainJob'),
    found=(BOOL, "whether it is there"),
    absent=(BOOL, "whether it is known not to be there"),
    nearest=(STRING, "the runtime that was probably meant"),
    deprecated=(BOOL, "whether its label says so"),
    plugin=(STRING, "`torch`, `mpi`, `flux`, `jax`, `xgboost`, `plain`, or `none` without a policy"),
    spec=(DYN, "spec of the runtime"),
)
NODE_CLAIM: Final = structure(
    "NodeClaim",
    name=(STRING, "name by which containers refer to it"),
    kind=(STRING, "ResourceClaim or ResourceClaimTemplate"),
    reference=(STRING, "the claim or template that it names"),
    found=(BOOL, "whether that is there"),
    devices=(DYN, "how many it gets; null where that is open"),
    atLeast=(INT, "how many it gets at least"),
    gpu=(BOOL, "whether GPUs are among them"),
    lost=(BOOL, "whether resourcesPerNode takes it away from the container"),
    otherDevice=(BOOL, "whether all its devices are known to be no GPUs"),
)
NODE: Final = structure(
    "TrainerNode",
    found=(BOOL, "whether there is a container `node`"),
    job=(STRING, "the replicated job that has it"),
    container=(DYN, "the container, merged"),
    resources=(DYN, "those by which Trainer counts: resourcesPerNode, else those of the container"),
    claims=(list_of(NODE_CLAIM.type), "device claims that it has, or is meant to have"),
)
PROCESSES: Final = structure(
    "TrainerProcesses",
    perNode=(STRING, "number as Trainer passes it on: a number, `auto` or `gpu`"),
    count=(DYN, "what that comes to; null where nobody can know"),
    reason=(STRING, "why"),
    explicit=(BOOL, "whether the TrainJob says numProcPerNode"),
    gpus=(INT, "GPUs that Trainer counts"),
    ambiguous=(BOOL, "whether several resources contain `gpu`, of which Trainer takes any one"),
    podGpus=(INT, "GPUs that the merged container has"),
    runtimeGpus=(INT, "GPUs that the container of the runtime has"),
)
NAMES: Final = structure(
    "TrainerNames",
    limit=(INT, "characters that the name of the TrainJob may have"),
    of=(STRING, "what is named after it and makes it so: `pod`, `job`, `claim` or `coordinator`"),
    job=(STRING, "the replicated job of that"),
    length=(INT, "characters that it has"),
)
SCHEDULING: Final = structure(
    "TrainerScheduling",
    by=(STRING, "who schedules the pods together: `volcano`, `coscheduling` or nobody"),
    queue=(DYN, "queue of Volcano; null where there is none"),
    queueAt=(STRING, "where that stands"),
    priorityClasses=(list_of(STRING), "PriorityClasses of the pods"),
    members=(INT, "pods that the scheduler waits for"),
    first=(INT, "pods of jobs that depend on no other"),
)
TRAINER: Final = structure(
    "Trainer",
    version=(STRING, 'the assumed release of Trainer, from `trainer: "2.2"` of the params'),
    minor=(INT, "its minor release"),
    object=(DYN, "the TrainJob without nulls and without values of another type"),
    runtime=(RUNTIME.type, "runtime that the TrainJob names"),
    nodes=(INT, "numNodes, as the TrainJob or the runtime says"),
    jobSet=(DYN, "spec of the JobSet, without the variables, volumes and mounts that plugins add"),
    node=(NODE.type, "the container that trains"),
    processes=(PROCESSES.type, "how many processes start on each node"),
    names=(NAMES.type, "how long the name of the TrainJob may be"),
    scheduling=(SCHEDULING.type, "who schedules the pods, and how"),
    notes=(list_of(NOTE.type), "what becomes of the TrainJob's settings, and what will be refused"),
)
RUNNING: Final = structure(
    "Running",
    found=(BOOL, "whether the TrainJob has a JobSet"),
    active=(list_of(STRING), "its replicated jobs that have active pods"),
)


def _trainer(subject: Subject) -> Result:
    view = subject.view()
    needs = ("runtime", "nodes", "jobSet", "node", "processes", "names", "scheduling", "notes")
    return Result(trainer(subject.object, view.of(*needs), subject.assumptions.trainer), view.missing())


def _running(subject: Subject) -> Result:
    view = subject.view()
    return Result(running_jobset.running(subject.object, view.of("found", "active")), view.missing())


FACTS: Final = (
    Fact(
        name="trainer",
        about=(
            "A TrainJob merged with its runtime as the assumed release of Kubeflow Trainer does it; 2.0 to 2.4 differ."
        ),
        examples=(
            "trainer.processes.gpus > 0 || trainer.node.claims.size() == 0",
            "trainer.names.length <= trainer.names.limit",
            'trainer.notes.all(n, n.what != "unknownContainer")',
            'trainer.notes.all(n, n.by != "jobset")',
        ),
        type=TRAINER.type,
        structures=(TRAINER, RUNTIME, NODE, NODE_CLAIM, PROCESSES, NAMES, SCHEDULING, NOTE),
        compute=_trainer,
        lookups=(*RUNTIMES, *LOOKUPS),
    ),
    Fact(
        name="running",
        about="The JobSet of the same name that a TrainJob already has.",
        examples=("running.active.size() == 0",),
        type=RUNNING.type,
        structures=(RUNNING,),
        compute=_running,
        lookups=running_jobset.LOOKUPS,
    ),
)
