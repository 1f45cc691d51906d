"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

JOB_SET: Final = RuleGroup(
    "job-set",
    refused_by="JobSet's webhook; Trainer shows it as the event TrainJobResourcesCreationFailed",
    source="kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go",
    fails="controller",
)
"""What JobSet's webhook refuses: of JobSets, of the JobSet that a runtime of Kubeflow Trainer holds, and of the one
that Trainer makes of a TrainJob."""
