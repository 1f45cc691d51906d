"""Rules about fields of a TrainJob that the installed Kubeflow Trainer does not have."""

from __future__ import annotations

from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.train_job_and_runtime_fields import FieldRules

TRAIN_JOB_UNKNOWN_FIELD: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/unknown-field",
    title="A TrainJob has no unknown fields.",
    why="The API server drops a field that it does not know, unless the client asks for strict validation.",
    refused_by="nobody; the field is dropped",
)
TRAIN_JOB_OTHER_RELEASE_FIELD: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/other-release-field",
    title="A TrainJob has no fields of other releases of Trainer.",
    why="Four shapes of TrainJob share one API version. The API server drops a field that its release does not have.",
    refused_by="nobody; the field is dropped",
    source="https://github.com/kubeflow/trainer/issues/3492",
    issues=(
        "https://github.com/kubeflow/trainer/pull/3239",
        "https://github.com/kubeflow/trainer/pull/3235",
    ),
)
OF_TRAIN_JOBS: Final = FieldRules(TRAIN_JOB_UNKNOWN_FIELD, TRAIN_JOB_OTHER_RELEASE_FIELD)
