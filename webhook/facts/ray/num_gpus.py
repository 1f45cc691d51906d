"""What Ray is told of the GPUs of a group of its cluster.

KubeRay passes rayStartParams on to `ray start` and sets num-gpus from the limits of the first container of the group
where it is not there: ray-project/kuberay@feeaf72f ray-operator/controllers/ray/common/pod.go
addWellKnownAcceleratorResources, utils/resources.go IsGPUResourceKey. Fewer than the container has, 0 above all, is how
tasks are kept off a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping
from webhook.paths import FieldPath, get
from webhook.problem import Problem
from webhook.wording import counted

CLUSTERS: Final[Mapping[str, FieldPath]] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}
"""Where each kind holds the spec of a cluster."""
_COUNT: Final = re.compile("[0-9]{1,6}", re.ASCII)
_PARAMETER: Final = ("rayStartParams", "num-gpus")


def validate_num_gpus(subject: Subject) -> Iterator[Problem]:
    """Groups that tell Ray of more GPUs than their container has."""
    at = CLUSTERS[subject.group_kind[1]]
    cluster = get(subject.object, at)
    yield from _group(get(cluster, ("headGroupSpec",)), (*at, "headGroupSpec"), subject)
    for index, group in enumerate(subject.deadline.each(items(get(cluster, ("workerGroupSpecs",))))):
        yield from _group(group, (*at, "workerGroupSpecs", index), subject)


def _group(group: JSON, at: FieldPath, subject: Subject) -> Iterator[Problem]:
    told, gpus = get(group, _PARAMETER), _gpus(group, subject)
    if isinstance(told, str) and _COUNT.fullmatch(told) and 0 < gpus < int(told):
        message = (
            f"must not be more than the {counted(gpus, 'GPU')} of the container because Ray would otherwise start work "
            "for GPUs that are not there"
        )
        fix = "remove num-gpus, and KubeRay sets it from the limits"
        yield Group("ray").problem("num-gpus", (*at, *_PARAMETER), message, fix, told)


def _gpus(group: JSON, subject: Subject) -> int:
    """GPUs of the first container; 0 where a claim may give more."""
    containers = items(get(group, ("template", "spec", "containers")))
    resources = mapping(get(containers[0], ("resources",))) if containers else {}
    if resources.get("claims"):
        return 0
    limits = subject.deadline.each(mapping(resources.get("limits")).items())
    amounts = (str(value) for name, value in limits if name.endswith("gpu") or name.startswith("nvidia.com/mig-"))
    return sum(int(amount) for amount in amounts if _COUNT.fullmatch(amount))
