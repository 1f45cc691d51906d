"""The groups of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

TRAIN_JOB_CHANGES: Final = RuleGroup(
    "train-job-changes",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="kubeflow/trainer@8c0f5059bd51 manifests/base/crds and pkg/runtime/framework/plugins/jobset/jobset.go",
    fails="create",
    refused_on_updates="pkg/webhooks/trainjob_webhook.go ValidateUpdate, manifests/base/crds, the rules about oldSelf",
)
