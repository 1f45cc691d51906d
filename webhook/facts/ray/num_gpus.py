"""What Ray is told of the GPUs of a group of its cluster.

KubeRay passes rayStartParams on to `ray start` and sets num-gpus from the limits of the first container of the group
where it is not there: ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go
addWellKnownAcceleratorResources, utils/resources.go IsGPUResourceKey. Fewer than the container has, 0 above all, is how
tasks are kept off a node. What a group's own `resources` say, as of 1.5, takes the place of rayStartParams:
updateRayStartParamsResources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.ray.groups import RAY
from webhook.facts.ray.ray import ray_cluster_spec_of
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.pods import Container
from webhook.typed.ray import Group
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

GPUS_WITHOUT_REQUEST: Final = RAY.rule(
    "ray/gpus-without-request",
    title="A group of a Ray cluster that tells Ray of GPUs has a container that requests them.",
    why=(
        "Ray starts tasks for the GPUs that it is told of, but Kubernetes gives the container none, and may place it "
        "on a node without any."
    ),
    refused_by="",
    source="ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go",
    function="updateRayStartParamsResources",
    fails="start",
)

_COUNT: Final = re.compile("[0-9]{1,6}", re.ASCII)
_MIG: Final = "nvidia.com/mig-"
_VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"


def validate_num_gpus(subject: Subject) -> Iterator[Problem]:
    """Report groups that tell Ray of more GPUs than their container has."""
    for group in ray_cluster_spec_of(subject).groups():
        told = _num_gpus_of_group(group)
        container = next(iter(group.template.spec.containers), None)
        if told is None or container is None or container.resources.claims:
            continue
        at, written = told
        gpus = _gpu_limit_of_container(container)
        if 0 < gpus < int(written):
            message = (
                f"must not be more than the {counted(gpus, 'GPU')} of the container because Ray would otherwise start "
                "work for GPUs that are not there"
            )
            name = at[-1]
            yield NUM_GPUS.problem(at, message, f"remove {name}, and KubeRay sets it from the limits", written)
        elif int(written) and not _may_have_gpus(container, group):
            message = "tells Ray of GPUs, but the container requests none, so tasks that need a GPU start without one"
            fix = "set limits of the container to as many GPUs, or tell Ray of none"
            yield GPUS_WITHOUT_REQUEST.problem(at, message, fix, written)


def _num_gpus_of_group(group: Group) -> tuple[FieldPath, str] | None:
    """Return where a group says how many GPUs Ray has, and how many; None where it does not, or nobody knows."""
    written = {name: str(value) for name, value in group.resources.items() if name.lower().endswith("gpu")}
    params = group.ray_start_params
    named = [(group.path("resources", name), value) for name, value in written.items()]
    told = named or [(params.path("num-gpus"), params.num_gpus)]
    return told[0] if len(told) == 1 and _COUNT.fullmatch(told[0][1]) else None


def _gpu_limit_of_container(container: Container) -> int:
    """Return how many GPUs a container has by its limits."""
    limits = container.resources.limits.items()
    amounts = (str(value) for name, value in limits if name.endswith("gpu") or name.startswith(_MIG))
    return sum(int(amount) for amount in amounts if _COUNT.fullmatch(amount))


def _may_have_gpus(container: Container, group: Group) -> bool:
    """Return whether it may have GPUs by other means: a share of one, a runtime that shows it all, or open fields."""
    resources = container.resources
    sides = (resources.written_limits, resources.written_requests)
    is_open = any(
        each.is_omitted(name) for each in (container, resources) for name in ("resources", "limits", "requests")
    )
    is_named = any("/" in name for side in sides for name in side)
    by_runtime = bool(group.template.spec.runtime_class_name) or _VISIBLE in container.environment.names
    return is_named or is_open or by_runtime or bool(container.env_from)
