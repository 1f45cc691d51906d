"""The groups of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.rules.rule import RuleGroup

VOLCANO_JOB: Final = RuleGroup(
    "volcano-job",
    refused_by="Volcano's webhook",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go",
    fails="create",
)
"""Rules of Volcano's webhook for Jobs, including the Jobs of CronJobs and JobTemplates."""
VOLCANO_JOB_ADVICE: Final = RuleGroup(
    "volcano-job",
    refused_by="the API server, when the pod is created",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go",
    level="warn",
    fails="silent",
)
"""Jobs that Volcano accepts, but that never run, or do not run as intended."""
VOLCANO_CRON_JOB: Final = RuleGroup(
    "volcano-cron-job",
    refused_by="Volcano's webhook",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/cronjobs/validate/admit_cronjob.go",
    fails="create",
    refused_on_updates="pkg/webhooks/admission/cronjobs/validate/admit_cronjob.go validateCronJobUpdate",
)
"""Rules of Volcano's webhook for CronJobs. Their Jobs belong to the group volcano-job."""
VOLCANO_JOB_FLOW: Final = RuleGroup(
    "volcano-job-flow",
    refused_by="Volcano's webhook",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobflows/validate/validate_jobflow.go",
    fails="create",
    refused_on_updates="pkg/webhooks/admission/jobflows/validate/validate_jobflow.go AdmitJobFlows",
)
"""Rules of Volcano's webhook for JobFlows, and rules about Jobs that a JobFlow never creates."""
VOLCANO_QUEUE: Final = RuleGroup(
    "volcano-queue",
    refused_by="Volcano's webhook",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/queues/validate/validate_queue.go",
    fails="create",
    refused_on_updates="pkg/webhooks/admission/queues/validate/validate_queue.go validateQueue",
)
"""Rules of Volcano's webhook for Queues."""
VOLCANO_POD_GROUP: Final = RuleGroup(
    "volcano-pod-group",
    refused_by="Volcano's webhook",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go",
    fails="create",
)
"""Rules of Volcano's webhook for PodGroups."""
VOLCANO_POD_GROUP_ADVICE: Final = RuleGroup(
    "volcano-pod-group",
    refused_by="nothing; the gang stays pending",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/job_info.go",
    level="warn",
    fails="pending",
)
"""PodGroups that Volcano accepts, but that are never placed or probably not intended."""
VOLCANO_HYPER_NODE: Final = RuleGroup(
    "volcano-hyper-node",
    refused_by="Volcano's webhook",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/hypernodes/validate/admit_hypernode.go",
    fails="create",
    refused_on_updates="pkg/webhooks/admission/hypernodes/validate/admit_hypernode.go validateHyperNode",
)
"""Rules of Volcano's webhook and schema for HyperNodes."""
VOLCANO_POD: Final = RuleGroup(
    "volcano-pod",
    refused_by="Volcano's webhook, when the PodGroup is made",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/pods/validate/admit_pod.go",
    level="warn",
    fails="pending",
)
"""Rules of Volcano's webhook for Pods, and rules about Pods that are placed without their gang."""
VOLCANO_SCHEDULER: Final = RuleGroup(
    "volcano-scheduler",
    refused_by="Volcano's scheduler, which logs an error and keeps the previous configuration",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/util.go",
    level="warn",
    fails="silent",
)
"""Rules for the configuration of Volcano's scheduler, the ConfigMap with a key such as volcano-scheduler.conf."""
