"""The groups of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.rules.rule import RuleGroup

KUEUE_JOB: Final = RuleGroup(
    "kueue-job",
    refused_by="Kueue's webhook",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/validation.go",
    fails="create",
    refused_on_updates="pkg/controller/jobs, ValidateUpdate of the webhook of each kind",
)
"""Rules of Kueue's webhooks about labels, annotations and kinds of jobs."""
KUEUE_NEVER: Final = RuleGroup(
    "kueue-never",
    refused_by="nothing; the job waits for ever",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/flavorassigner.go",
    level="warn",
    fails="pending",
)
"""Jobs that Kueue can never admit while the job and the queues stay as they are. Kueue may write the reason into the
Workload.
"""
KUEUE_NOT_NOW: Final = RuleGroup(
    "kueue-not-now",
    refused_by="nothing; the job waits",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go",
    level="warn",
    fails="pending",
)
"""Jobs that wait until another object is created, resumed or deleted."""
KUEUE_UNMANAGED: Final = RuleGroup(
    "kueue-unmanaged",
    refused_by="nothing; the job starts without quota",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework",
    level="warn",
    fails="silent",
)
"""Jobs that seem meant for a queue, but start at once without quota."""
KUEUE_ADVICE: Final = RuleGroup(
    "kueue-advice",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/utils.go",
    level="warn",
    fails="silent",
)
"""Jobs that Kueue admits, but probably not as intended."""
KUEUE_QUEUE: Final = RuleGroup(
    "kueue-queue",
    refused_by="Kueue's webhook, or the API server by the CustomResourceDefinition",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go",
    fails="create",
    refused_on_updates="pkg/webhooks, ValidateUpdate of the webhook of each kind",
)
"""Rules of Kueue's webhooks and the API server about queues and related objects."""
KUEUE_QUEUE_ADVICE: Final = RuleGroup(
    "kueue-queue",
    refused_by="nothing; jobs wait for ever",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go",
    level="warn",
    fails="pending",
)
"""Queues and related objects that are accepted, but probably not as intended."""
