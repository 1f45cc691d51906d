"""The fact `training`: what a training object says by itself, before any runtime or controller is asked."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, DYN, INT, STRING, list_of, map_of
from webhook.facts.fact import Fact, Result, structure
from webhook.facts.finding import NOTE
from webhook.facts.subject import Subject
from webhook.facts.training_jobs.training import training

FIELD: Final = structure(
    "UnknownField",
    path=(STRING, "where it stands"),
    releases=(STRING, 'releases of Trainer that have it; `""` where none has'),
    instead=(STRING, "the field that was probably meant"),
)
ODD: Final = structure(
    "OddValue",
    path=(STRING, "where it stands"),
    found=(STRING, "what stands there"),
    expected=(STRING, "the type that it must have"),
)
LAUNCH: Final = structure(
    "Launch",
    by=(STRING, 'the launcher, `python` for one program without any, `several` or `""`'),
    processes=(DYN, "processes on each node; null where only a running script could tell"),
    perNode=(STRING, "number as written, `?` for what the script works out"),
    nodes=(STRING, "number of nodes as written, `?` for what the script works out"),
    ranks=(DYN, "processes in all; null where only a running script could tell"),
    hosts=(BOOL, "whether it names hosts of its own"),
    oversubscribed=(BOOL, "whether it may start more processes than slots"),
    whole=(BOOL, "whether every option is understood, so that what is not there was not given"),
)
CONTAINER: Final = structure(
    "TrainingContainer",
    name=(STRING, "name of the container"),
    path=(STRING, "where it stands"),
    image=(STRING, "image of the container"),
)
ROLE: Final = structure(
    "TrainingRole",
    name=(STRING, "Master, Worker, Launcher …"),
    path=(STRING, "where it stands"),
    given=(BOOL, "whether it says replicas"),
    replicas=(DYN, "number as the operator fills them in; null where that cannot be told"),
    restartPolicy=(STRING, "restartPolicy of the role"),
    podRestartPolicy=(STRING, "restartPolicy of its template"),
    containers=(list_of(CONTAINER.type), "containers of its template"),
    open=(BOOL, "whether there may be other containers, or they may say something else"),
    found=(BOOL, "whether the container that trains is there"),
    shm=(BOOL, "whether that has more shared memory than 64 MiB"),
    gpuNamed=(BOOL, "whether a container limits a resource with `gpu` in its name"),
    gpus=(INT, "GPUs of the container that trains"),
    gpusOpen=(BOOL, "whether their number is still to be filled in"),
    nullGpus=(list_of(STRING), "resources of GPUs whose amount is null"),
    claims=(INT, "device claims of that container"),
    env=(list_of(STRING), "names of its variables; `*` for others from elsewhere"),
    cpus=(INT, "its CPUs, rounded up"),
    launch=(LAUNCH.type, "what its command starts, read as a shell would"),
)
TRAINING: Final = structure(
    "Training",
    release=(STRING, 'the assumed release of Trainer, from `trainer: "2.2"` of the params'),
    minor=(INT, "its minor release"),
    object=(DYN, "the object without nulls and without values of another type"),
    old=(DYN, "what it was before the update, likewise"),
    changes=(list_of(STRING), "fields of the spec that the update changes"),
    plugin=(
        STRING,
        "plugin of a runtime: `torch`, `mpi`, `flux`, `jax`, `xgboost`, `plain`, or `none` without a policy",
    ),
    fields=(list_of(FIELD.type), "fields of a TrainJob or a runtime that the assumed release of Trainer does not have"),
    notes=(
        list_of(NOTE.type),
        "what JobSet, the API server and Trainer will refuse or overlook of a runtime, JobSet or TrainJob",
    ),
    roles=(list_of(ROLE.type), "roles of a job of the Training Operator or the MPI Operator"),
    name=(STRING, "name of such a job"),
    settings=(
        map_of(STRING, DYN),
        "what such a job says outside its pods, by path below `spec`, where it is of the CRD's type",
    ),
    unfilled=(list_of(STRING), "paths of settings that are still to be filled in (`$`, `{{`) or of another type"),
    odd=(list_of(ODD.type), "values of another type than their field"),
    open=(BOOL, "whether the roles cannot be told"),
)


def _compute(subject: Subject) -> Result:
    old = subject.attributes.old_object
    return Result(training(subject.object, subject.assumptions.trainer, old, subject.deadline))


FACTS: Final = (
    Fact(
        name="training",
        about=(
            "What a training object says by itself: a TrainJob, a runtime, an OptimizationJob, a JobSet, or a job of "
            "the Training Operator or the MPI Operator. It never lacks anything."
        ),
        examples=(
            "training.fields.size() == 0",
            'training.settings[?"runPolicy.backoffLimit"].orValue(0) >= 0',
            "training.roles.all(r, r.launch.processes == null || r.launch.processes == r.gpus)",
        ),
        type=TRAINING.type,
        structures=(TRAINING, ROLE, CONTAINER, LAUNCH, FIELD, ODD, NOTE),
        compute=_compute,
    ),
)
