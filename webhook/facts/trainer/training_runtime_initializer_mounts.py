"""The volume that the container of an initializer mounts.

Source: https://github.com/kubeflow/trainer/pull/3714.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.nodes import step_of_job
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.facts.trainer.training_runtime_job_names import replicated_jobs_of
from webhook.problem import Problem
from webhook.releases import Release, release_as_text

TRAINING_RUNTIME_INITIALIZER_MOUNT: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/initializer-mount",
    title="The container of an initializer mounts the volume `initializer`.",
    why="Since 2.3 Trainer refuses TrainJobs that use the step without it.",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="https://github.com/kubeflow/trainer/pull/3714",
    fails="create",
)


def advise_initializer_mounts(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Yield containers of initializers without the mount that TrainJobs need."""
    jobs = [job for job in replicated_jobs_of(runtime) if step_of_job(job).endswith("-initializer")]
    for job in jobs if release >= INITIALIZER_MOUNT else ():
        for container in job.pod.containers:
            is_mounted = any(mount.name == "initializer" for mount in container.volume_mounts)
            if container.name == step_of_job(job) and not is_mounted:
                message = (
                    f"has no mount `initializer`, so Trainer {release_as_text(release)} refuses TrainJobs "
                    "that use this step"
                )
                yield TRAINING_RUNTIME_INITIALIZER_MOUNT.problem(
                    container.path("volumeMounts"), message, "add the mount"
                )
