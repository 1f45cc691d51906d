"""Rules about fields of a runtime that the installed Kubeflow Trainer does not have."""

from __future__ import annotations

from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.train_job_and_runtime_fields import FieldRules

TRAINING_RUNTIME_UNKNOWN_FIELD: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/unknown-field",
    title="A runtime has no unknown fields.",
    why="The API server drops a field that it does not know, unless the client asks for strict validation.",
    refused_by="nobody; the field is dropped",
)
TRAINING_RUNTIME_OTHER_RELEASE_FIELD: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/other-release-field",
    title="A runtime has no fields of other releases of Trainer.",
    why="The API server drops a field that its release does not have.",
    refused_by="nobody; the field is dropped",
    source="https://github.com/kubeflow/trainer/issues/3492",
    issues=(
        "https://github.com/kubeflow/trainer/pull/3239",
        "https://github.com/kubeflow/trainer/pull/3235",
    ),
)
OF_RUNTIMES: Final = FieldRules(TRAINING_RUNTIME_UNKNOWN_FIELD, TRAINING_RUNTIME_OTHER_RELEASE_FIELD)
