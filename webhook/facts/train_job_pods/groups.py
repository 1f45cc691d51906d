"""The groups of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

TRAIN_JOB: Final = RuleGroup(
    "train-job",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="kubeflow/trainer@8c0f5059bd51 pkg/webhooks, pkg/runtime/framework/plugins and manifests/base/crds",
    fails="create",
    refused_on_updates="pkg/webhooks/trainjob_webhook.go ValidateUpdate",
    updates_of=("TrainJob",),
)
"""Rules of the API server, Kubeflow Trainer and its plugins for TrainJobs, and settings that do not do what they seem
to.
"""
TRAIN_JOB_ADVICE: Final = RuleGroup(
    "train-job",
    refused_by="nobody",
    source="kubeflow/trainer@8c0f5059bd51 pkg/webhooks, pkg/runtime/framework/plugins and manifests/base/crds",
    level="warn",
    fails="silent",
)
TRAINING_RUNTIME: Final = RuleGroup(
    "training-runtime",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source=(
        "kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, pkg/runtime/framework/plugins and "
        "manifests/base/crds"
    ),
    fails="create",
)
"""Rules for runtimes; some of them are also reported for TrainJobs on the runtime."""
TRAINING_RUNTIME_ADVICE: Final = RuleGroup(
    "training-runtime",
    refused_by="nobody",
    source=(
        "kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, pkg/runtime/framework/plugins and "
        "manifests/base/crds"
    ),
    level="warn",
    fails="silent",
)
