"""The fact `training`: what a training object says by itself, before any runtime or controller is asked."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import DYN, INT, STRING, list_of
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
    odd=(list_of(ODD.type), "values of another type than their field"),
)


def _compute(subject: Subject) -> Result:
    old = subject.attributes.old_object
    return Result(training(subject.object, subject.assumptions.trainer, old, subject.deadline))


FACTS: Final = (
    Fact(
        name="training",
        about=(
            "What a training object says by itself: a TrainJob, a runtime, an OptimizationJob or a JobSet. It never "
            "lacks anything."
        ),
        examples=("training.fields.size() == 0",),
        type=TRAINING.type,
        structures=(TRAINING, FIELD, ODD, NOTE),
        compute=_compute,
    ),
)
