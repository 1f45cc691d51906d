"""What Ray is told of the GPUs of a group of its cluster.

KubeRay passes rayStartParams on to `ray start` and sets num-gpus from the limits of the first container of the group
where it is not there: ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go
addWellKnownAcceleratorResources, utils/resources.go IsGPUResourceKey. Fewer than the container has, 0 above all, is how
tasks are kept off a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.ray.cluster import cluster_of
from webhook.facts.ray.groups import RAY
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.pods import PodTemplate
from webhook.wording import counted

NUM_GPUS: Final = RAY.rule(
    "ray/num-gpus",
    title="A group of a Ray cluster tells Ray of no more GPUs than its container has.",
    why="Ray starts as many tasks as it is told of GPUs, and those without a GPU fail.",
    refused_by="",
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go",
    function="addWellKnownAcceleratorResources",
    fails="start",
)

_COUNT: Final = re.compile("[0-9]{1,6}", re.ASCII)
_MIG: Final = "nvidia.com/mig-"


def validate_num_gpus(subject: Subject) -> Iterator[Problem]:
    """Groups that tell Ray of more GPUs than their container has."""
    for group in cluster_of(subject).groups():
        written, gpus = group.ray_start_params.num_gpus, _gpus(group.template)
        if _COUNT.fullmatch(written) and 0 < gpus < int(written):
            message = (
                f"must not be more than the {counted(gpus, 'GPU')} of the container because Ray would otherwise start "
                "work for GPUs that are not there"
            )
            fix = "remove num-gpus, and KubeRay sets it from the limits"
            yield NUM_GPUS.problem(group.ray_start_params.path("num-gpus"), message, fix, written)


def _gpus(template: PodTemplate) -> int:
    """GPUs of the first container; 0 where a claim may give more."""
    for container in template.spec.containers[:1]:
        if not container.resources.claims:
            limits = container.resources.limits.items()
            amounts = (str(value) for name, value in limits if name.endswith("gpu") or name.startswith(_MIG))
            return sum(int(amount) for amount in amounts if _COUNT.fullmatch(amount))
    return 0
