"""The replicated jobs of a JobSet by their names, and what is said of a name that none of them has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.typed.job_sets import JobSetSpec, ReplicatedJob
from webhook.wording import either

_MOST_NAMED: Final = 3


def jobs_by_name(job_set: JobSetSpec) -> Mapping[str, ReplicatedJob]:
    """Return the first replicated job of every name."""
    jobs: dict[str, ReplicatedJob] = {}
    for job in job_set.replicated_jobs:
        jobs.setdefault(job.name, job)
    return jobs


def fix_for_unknown_job(job_set: JobSetSpec) -> str:
    """Say what to do about a name that no replicated job has."""
    names = [f"`{job.name}`" for job in job_set.replicated_jobs[:_MOST_NAMED] if job.name]
    return f"name a replicated job, such as {either(names)}" if names else "add a replicated job of this name"
