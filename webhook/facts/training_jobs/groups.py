"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

TRAINING_JOB: Final = RuleGroup(
    "training-job",
    refused_by="the Training Operator or the MPI Operator",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/webhooks",
    fails="create",
    refused_on_updates="pkg/webhooks, ValidateUpdate of the webhook of each kind",
    updates_of=("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"),
)
"""What the Training Operator and the MPI Operator refuse of a job, partly in an event after it was stored, and what is
probably not meant."""
TRAINING_JOB_ADVICE: Final = RuleGroup(
    "training-job",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/envvar.go",
    level="warn",
    fails="silent",
)
"""What the operators take, and what is probably not meant."""
