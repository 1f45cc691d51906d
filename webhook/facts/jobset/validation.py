"""What JobSet's webhook refuses of a JobSet spec but for the length of its name.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go ValidateCreate. What a PersistentVolumeClaim that
exists says is not looked up.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.jobset import coordinator, failures, volume_claims
from webhook.facts.jobset.job_set import (
    validate_network_subdomain,
    validate_replicated_jobs,
    validate_startup_policy,
    validate_success_policy,
)
from webhook.problem import Problem
from webhook.typed.job_sets import JobSetSpec


def validate_create(job_set: JobSetSpec, *, is_counted: bool = True) -> Iterator[Problem]:
    """Yield everything that JobSet's webhook refuses of a JobSet spec but for the length of its name.

    Args:
        job_set: the spec, wherever it stands.
        is_counted: whether the pods of the replicated jobs are final; those of a runtime are not.
    """
    yield from validate_network_subdomain(job_set)
    yield from validate_success_policy(job_set)
    yield from failures.validate_failure_policy(job_set)
    yield from validate_startup_policy(job_set)
    yield from coordinator.validate_coordinator(job_set, is_counted=is_counted)
    yield from volume_claims.validate_volume_claim_policies(job_set)
    yield from validate_replicated_jobs(job_set, is_counted=is_counted)
