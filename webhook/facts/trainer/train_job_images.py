"""The images of the containers of a TrainJob with its runtime.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB
from webhook.facts.trainer.generated_pods import GeneratedPods
from webhook.problem import Problem
from webhook.typed.pods import Container

IMAGE_REQUIRED: Final = TRAIN_JOB.rule(
    "train-job/image-required",
    title="Containers of the merged pod have an image.",
    why="The API server refuses the pods otherwise.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)


def check_image_is_set(container: Container, pods: GeneratedPods) -> Iterator[Problem]:
    """Yield containers of the merged pod without an image."""
    if not container.image:
        fix = "set spec.trainer.image" if container.name == "node" else "set the image in the runtime"
        yield IMAGE_REQUIRED.problem("", f"container `{container.name}` of {pods} has no image", fix)
