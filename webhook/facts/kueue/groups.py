"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import Group

KUEUE_JOB: Final = Group(
    "kueue-job",
    refused_by="Kueue's webhook",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/validation.go",
    fails="create",
)
"""What Kueue's webhooks refuse of the labels, annotations and kinds of jobs."""
KUEUE_NEVER: Final = Group(
    "kueue-never",
    refused_by="nobody; the job waits for ever",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner/flavorassigner.go",
    level="warn",
    fails="pending",
)
"""Jobs that Kueue can never admit as the job and the queues are now. Kueue writes the reason, if it writes one, into
the Workload."""
KUEUE_NOT_NOW: Final = Group(
    "kueue-not-now",
    refused_by="nobody; the job waits",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go",
    level="warn",
    fails="pending",
)
"""Jobs that wait until somebody else does something: creates, resumes, or ends something."""
KUEUE_UNMANAGED: Final = Group(
    "kueue-unmanaged",
    refused_by="nobody; the job starts without quota",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework",
    level="warn",
    fails="silent",
)
"""Jobs that look as if they queued, and start at once without quota."""
KUEUE_ADVICE: Final = Group(
    "kueue-advice",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/utils.go",
    level="warn",
    fails="silent",
)
"""What Kueue admits and what is probably not meant."""
KUEUE_QUEUE: Final = Group(
    "kueue-queue",
    refused_by="Kueue's webhook, or the API server by the CustomResourceDefinition",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go",
    fails="create",
)
"""What Kueue's webhooks and the API server refuse of the objects of queues."""
KUEUE_QUEUE_ADVICE: Final = Group(
    "kueue-queue",
    refused_by="nobody; jobs wait for ever",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go",
    level="warn",
    fails="pending",
)
"""What is taken of the objects of queues, and is probably not meant."""
