"""The checks of jobs of the Training Operator and the MPI Operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.pods.pod_requests import LIMIT_RANGE_LOOKUPS
from webhook.facts.subject import Check, Subject
from webhook.facts.training_jobs import (
    autoscaler,
    elastic_and_rendezvous,
    mpi_launcher_slots_and_nodes,
    roles,
    training_job,
)
from webhook.facts.training_jobs.processes import validate_processes
from webhook.facts.training_jobs.roles import check_settings_that_operator_overwrites
from webhook.facts.training_jobs.typed_job import GROUP, KINDS, read_job
from webhook.rules.problem import Problem

_VALIDATIONS: Final = (
    roles.validate_replica_specs,
    training_job.validate_name,
    training_job.validate_managed_by,
    training_job.check_queue_unchanged,
    training_job.validate_run_policy,
    training_job.validate_clean_pod_policy,
    training_job.validate_min_available,
    roles.validate_replicas,
    roles.validate_chief,
    roles.advise_parameter_servers,
    roles.validate_ignored_roles,
    elastic_and_rendezvous.validate_elastic_policy,
    mpi_launcher_slots_and_nodes.validate_mpi_replicas,
    mpi_launcher_slots_and_nodes.validate_mpi_settings,
    mpi_launcher_slots_and_nodes.check_sshd_of_workers,
    mpi_launcher_slots_and_nodes.validate_slots,
    mpi_launcher_slots_and_nodes.warn_of_gpus_without_mpi_rank,
    validate_processes,
    check_settings_that_operator_overwrites,
)


def validate_training_job(subject: Subject) -> Iterator[Problem]:
    """Yield what the operators would refuse in a job, and settings that are probably not intended."""
    job = subject.once(read_job)
    for validate in _VALIDATIONS:
        yield from validate(job)
    yield from autoscaler.validate_autoscaler_requests(job, subject)


CHECKS: Final = (
    Check(
        group="training-job",
        run=validate_training_job,
        kinds=frozenset((GROUP, kind) for kind in KINDS),
        lookups=LIMIT_RANGE_LOOKUPS,
    ),
)
