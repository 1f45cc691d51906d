"""ResourceQuotas that the devices of a workload exceed, and ResourceQuotas and LimitRanges that name the resource
`gpu`.

The API server refuses `gpu`, because a name without a domain must be a resource of Kubernetes. A pod that exceeds a
quota is refused when its controller creates the pod. By then the workload is accepted, and a queue may have admitted
it. The check compares with the whole quota, not with the free part. A quota with scopes may be about other pods, so
it is not compared.

Source: k8s.io/kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go, and pkg/apis/core/validation/validation.go
ValidateResourceQuotaResourceName and validateLimitRangeResourceName.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import PLACED, DevicePods, read_device_workload, without_repeated_problems
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.subject import Check, Subject
from webhook.facts.volcano_objects.types import CronJob, Job
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Part, Parts, Raw, Texts, ValueMap
from webhook.typed.job_sets import JobSet
from webhook.typed.objects import Object
from webhook.typed.view import Typed

NAMESPACE_QUOTA: Final = RuleGroup(
    "namespace-quota",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go",
    level="warn",
    fails="controller",
)
"""Requests that the ResourceQuotas of a namespace never allow. The free amounts of quotas change too often to be
checked.
"""
GPU_QUOTA: Final = RuleGroup(
    "gpu-quota",
    refused_by="the API server",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    level="warn",
    fails="create",
)


class ResourceQuotaSpec(Typed):
    """core/v1 ResourceQuotaSpec."""

    hard = ValueMap()
    scopes = Texts()
    scope_selector = Raw()


class ResourceQuota(Object):
    """core/v1 ResourceQuota."""

    gvk = GroupVersionKind("", "v1", "ResourceQuota")
    spec = Part(ResourceQuotaSpec)


class LimitRangeItem(Typed):
    """core/v1 LimitRangeItem; null amounts are kept."""

    max = ValueMap()
    min = ValueMap()
    default = ValueMap()
    default_request = ValueMap()
    max_limit_request_ratio = ValueMap()


class LimitRangeSpec(Typed):
    """core/v1 LimitRangeSpec."""

    limits = Parts(LimitRangeItem)


class LimitRange(Object):
    """core/v1 LimitRange."""

    gvk = GroupVersionKind("", "v1", "LimitRange")
    spec = Part(LimitRangeSpec)


RESOURCE_NAME: Final = GPU_QUOTA.rule(
    "gpu-quota/resource-name",
    title="A ResourceQuota or LimitRange names `gpu`, which no pod can request",
    why=(
        "The API server refuses the name `gpu`. Pods request `nvidia.com/gpu` or another vendor's resource, and the "
        "ResourceQuota or LimitRange must name the same resource."
    ),
    function="ValidateResourceQuotaResourceName",
)
DEVICES: Final = NAMESPACE_QUOTA.rule(
    "namespace-quota/devices",
    title="The workload requests more devices than the ResourceQuota allows",
    why=(
        "The workload is accepted, but its pods above the quota are refused. Pods that train together then wait for "
        "the missing pods."
    ),
    function="PodUsageFunc",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/1403",),
)
QUOTA_LOOKUPS: Final = (interest_in_fields(ResourceQuota.gvk, "spec.hard", "spec.scopes", "spec.scopeSelector"),)
_NAME: Final = "gpu"
_OF_QUOTAS: Final = (_NAME, f"requests.{_NAME}", f"limits.{_NAME}")


def check_portable_gpu_in_quota(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of the portable name `gpu` in a ResourceQuota, which counts no device."""
    spec = subject.typed(ResourceQuota).spec
    for name in _OF_QUOTAS:
        if name in spec.hard:
            yield _resource_name_problem(spec.path("hard", name), name, "requests.nvidia.com/gpu")


def check_portable_gpu_in_limit_range(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of the portable name `gpu` in a LimitRange, which limits no device."""
    for item in subject.typed(LimitRange).spec.limits:
        for field, amounts in (
            ("max", item.max),
            ("min", item.min),
            ("default", item.default),
            ("defaultRequest", item.default_request),
            ("maxLimitRequestRatio", item.max_limit_request_ratio),
        ):
            if _NAME in amounts:
                yield _resource_name_problem(item.path(field, _NAME), _NAME, "nvidia.com/gpu")


def _resource_name_problem(path: FieldPath, name: str, example: str) -> Problem:
    message = "is not a resource of Kubernetes, so the API server refuses the object and no GPU is counted"
    return RESOURCE_NAME.problem(path, message, f"name the resource of a vendor, such as {example}", shown=f"`{name}`")


def validate_namespace_quota(subject: Subject) -> Iterator[Problem]:
    """Yield devices that a workload's pods request together and that a quota of the namespace never allows."""
    using = [pods for pods in subject.once(read_device_workload).device_pods if pods.devices and pods.podset.pods]
    view = subject.cluster_view()
    quotas = view.list_typed(ResourceQuota, view.namespace) if using else ()
    if not quotas:
        return
    requests = _simultaneous_requests(using, subject)
    for quota in quotas:
        if quota.spec.scopes or quota.spec.scope_selector:
            continue
        told = f"`{quota.name}`{view.file_of_object_as_text(quota.json)}"
        for name, request in requests.items():
            allowed = quantity.read_quantity_or_none(quota.spec.hard.get(f"requests.{name}"))
            if allowed is not None and allowed.value() < request.devices:
                yield from without_repeated_problems(
                    (_quota_exceeded_problem(name, request, allowed.value(), told),), subject
                )


class _SimultaneousRequest(Struct, frozen=True):
    """The number of devices that pods request at the same time, and the path of the template that requests most."""

    devices: int
    pods: int
    path: FieldPath


def _simultaneous_requests(using: list[DevicePods], subject: Subject) -> Mapping[str, _SimultaneousRequest]:
    """Return simultaneous requests by resource: of all pod sets, or of the largest pod set if some pods wait for
    others.
    """
    parts: dict[str, list[_SimultaneousRequest]] = {}
    for pods in using:
        for name, devices in pods.devices.items():
            parts.setdefault(name, []).append(
                _SimultaneousRequest(devices * pods.pod_count, pods.pod_count, pods.podset.path)
            )
    largest = {name: max(listed, key=lambda part: part.devices) for name, listed in parts.items()}
    if _may_pods_be_created_later(subject):
        return largest
    return {
        name: _SimultaneousRequest(
            sum(part.devices for part in listed), sum(part.pods for part in listed), largest[name].path
        )
        for name, listed in parts.items()
    }


def _may_pods_be_created_later(subject: Subject) -> bool:
    """Return whether some pods may be created only after others end; a runtime may decide this for a TrainJob."""
    match subject.group_kind:
        case ("jobset.x-k8s.io", "JobSet"):
            return any(job.depends_on for job in subject.typed(JobSet).spec.replicated_jobs)
        case ("batch.volcano.sh", "Job"):
            return any(task.depends_on.json for task in subject.typed(Job).spec.tasks)
        case ("batch.volcano.sh", "CronJob"):
            return any(task.depends_on.json for task in subject.typed(CronJob).spec.job_template.spec.tasks)
    return subject.group_kind == TRAIN_JOB


def _subject_of_sentence(pods: int) -> str:
    return "the pod requests" if pods == 1 else f"the {pods} pods together request"


def _quota_exceeded_problem(name: str, request: _SimultaneousRequest, allowed: int, quota: str) -> Problem:
    refused = "the pod" if request.pods == 1 else "some of the pods"
    message = (
        f"{_subject_of_sentence(request.pods)} {request.devices} `{name}`, but ResourceQuota {quota} of the "
        f"namespace allows {allowed}, so the API server refuses {refused}"
    )
    return DEVICES.problem(
        path_as_text(request.path),
        message,
        f"request at most {allowed} in all, or ask the administrator to raise the quota",
    )


_QUOTAS: Final = frozenset((("", "ResourceQuota"),))
_LIMIT_RANGES: Final = frozenset((("", "LimitRange"),))
CHECKS: Final = (
    Check(
        group="namespace-quota",
        run=validate_namespace_quota,
        kinds=PLACED,
        lookups=QUOTA_LOOKUPS,
        of_made_objects=False,
    ),
    Check(group="gpu-quota", run=check_portable_gpu_in_quota, kinds=_QUOTAS),
    Check(group="gpu-quota", run=check_portable_gpu_in_limit_range, kinds=_LIMIT_RANGES),
)
