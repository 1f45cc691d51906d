"""The checks of jobs of the Training Operator and the MPI Operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.subject import Subject
from webhook.facts.training_jobs import autoscaling, elastic, job_validation, mpi_validation, role_validation
from webhook.facts.training_jobs.job import KINDS, read_job
from webhook.facts.training_jobs.operator_fields import validate_overwritten
from webhook.facts.training_jobs.processes import validate_processes
from webhook.facts.training_jobs.types import GROUP
from webhook.problem import Problem

_VALIDATIONS: Final = (
    role_validation.validate_replica_specs,
    job_validation.validate_name,
    job_validation.validate_managed_by,
    job_validation.validate_queue,
    job_validation.validate_run_policy,
    job_validation.validate_clean_pod_policy,
    job_validation.validate_min_available,
    role_validation.validate_replicas,
    role_validation.validate_tensorflow_roles,
    role_validation.validate_ignored_roles,
    elastic.validate_elastic_policy,
    mpi_validation.validate_mpi_replicas,
    mpi_validation.validate_mpi_settings,
    mpi_validation.validate_slots,
    mpi_validation.advise_mpi,
    validate_processes,
    validate_overwritten,
)


def training_job(subject: Subject) -> Iterator[Problem]:
    """What the operators refuse of a job, and what is probably not meant."""
    job = subject.once(read_job)
    for validate in _VALIDATIONS:
        yield from validate(job)
    yield from autoscaling.validate_autoscaler_requests(job, subject)


CHECKS: Final = (
    Check(
        group="training-job",
        run=training_job,
        kinds=frozenset((GROUP, kind) for kind in KINDS),
        lookups=autoscaling.LOOKUPS,
    ),
)
