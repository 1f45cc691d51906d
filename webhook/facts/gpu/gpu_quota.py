"""`gpu` as a resource of a ResourceQuota or a LimitRange, which counts nothing: pods have the vendor's resource.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateResourceQuotaResourceName and
validateLimitRangeResourceName: a name without a domain must be one of Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.gpu.groups import GPU_QUOTA
from webhook.facts.gpu.types import LimitRange, ResourceQuota
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.problem import Problem

RESOURCE_NAME: Final = GPU_QUOTA.rule(
    "gpu-quota/resource-name",
    title="A ResourceQuota or LimitRange names the resource of a vendor, not `gpu`.",
    why=(
        "The API server refuses the name, and pods have `nvidia.com/gpu` or another vendor's resource by the time "
        "they are counted."
    ),
    function="ValidateResourceQuotaResourceName",
)

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
