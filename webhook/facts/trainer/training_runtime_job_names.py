"""The names of the replicated jobs of a runtime.

Source: https://github.com/kubeflow/trainer/pull/4394.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
from webhook.facts.train_job_pods.releases import SHORT_NAMES
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.problem import Problem
from webhook.releases import Release, release_as_text
from webhook.typed.collections import Items
from webhook.typed.job_sets import ReplicatedJob

JOB_NAME_LENGTH: Final = TRAINING_RUNTIME.rule(
    "training-runtime/job-name-length",
    title="Names of replicated jobs have at most 20 characters since 2.4.",
    why="Longer names leave too little for the names of TrainJobs.",
    source="https://github.com/kubeflow/trainer/pull/4394",
)
_LONGEST_NAME: Final = 20


def validate_job_name_length(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield names of replicated jobs that are too long for the names of pods (kubeflow/trainer#4394)."""
    for job in replicated_jobs_of(runtime) if release >= SHORT_NAMES else ():
        if len(job.name) > _LONGEST_NAME:
            message = (
                f"has {len(job.name)} characters, but Trainer {release_as_text(release)} takes at most {_LONGEST_NAME}"
            )
            yield JOB_NAME_LENGTH.problem(job.path("name"), message, "use a shorter name", job.name)


def replicated_jobs_of(runtime: RuntimeSpec) -> Items[ReplicatedJob]:
    """Return the replicated jobs of a runtime."""
    return runtime.template.spec.replicated_jobs
