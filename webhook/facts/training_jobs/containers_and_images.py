"""What the Training Operator and the MPI Operator refuse of the containers of a role.

Source: kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/webhooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.groups import TRAINING_JOB
from webhook.facts.training_jobs.typed_job import KINDS, RoleOfJob, TrainingJobOfKind
from webhook.problem import Problem

CONTAINERS_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/containers-required",
    title="A role has containers.",
    why="The operator refuses a role without containers.",
    function="validateReplicaSpecs",
)
IMAGE_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/image-required",
    title="Every container has an image.",
    why="The operator or the API server refuses the pods, after the job was stored.",
    function="validateReplicaSpecs",
    fails="controller",
)
CONTAINER_NAME_REQUIRED: Final = TRAINING_JOB.rule(
    "training-job/container-name-required",
    title="Every container has a name.",
    why="The API server refuses the pods, after the job was stored.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateContainerCommon",
    fails="controller",
)
MAIN_CONTAINER: Final = TRAINING_JOB.rule(
    "training-job/main-container",
    title="The container that trains has the name that the operator looks for.",
    why="The operator sets the variables of distributed training only in the container of this name.",
    function="validateReplicaSpecs",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1563",
        "https://github.com/kubeflow/trainer/issues/813",
        "https://github.com/NascentCore/3k/issues/401",
    ),
)
_MOST_NAMES: Final = 3
"""Containers that a message names."""


def validate_containers(role: RoleOfJob, job: TrainingJobOfKind) -> Iterator[Problem]:
    """Require containers in the pods of a role, one of them with the name that the operator prepares."""
    main = KINDS[job.kind].container
    if role.is_open:
        return
    if not role.containers:
        wanted = f"a container named `{main}`, which the operator prepares" if main else "a container"
        yield CONTAINERS_REQUIRED.problem(role.containers_path, f"must have {wanted}", "add such a container")
    elif not role.has_main:
        shown = [f"`{container.name}`" for container in role.containers[:_MOST_NAMES]]
        there = " or ".join((*shown, *(["another"] if len(role.containers) > _MOST_NAMES else [])))
        message = f"must have a container named `{main}` because the operator sets up only that container for training"
        yield MAIN_CONTAINER.problem(role.containers_path, message, f"rename {there}, whichever trains, to {main}")


def validate_names_and_images(role: RoleOfJob) -> Iterator[Problem]:
    """Require a name and an image of every container of a role."""
    for container in () if role.is_open else role.containers:
        name = container.name
        if not container.image:
            message = "must be set because a container cannot start without an image"
            fix = f"set the image of `{name}`" if name else "set an image"
            yield IMAGE_REQUIRED.problem(container.path("image"), message, fix)
        if not name:
            message = "must be set because Kubernetes refuses a container without a name"
            yield CONTAINER_NAME_REQUIRED.problem(container.path("name"), message, "set a name")
