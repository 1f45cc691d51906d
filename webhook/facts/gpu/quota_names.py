"""`gpu` as a resource of a ResourceQuota or a LimitRange, which counts nothing: pods have the vendor's resource.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateResourceQuotaResourceName and
validateLimitRangeResourceName: a name without a domain must be one of Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping
from webhook.paths import get
from webhook.problem import Problem

problem: Final = Group("gpu-quota").problem
_NAME: Final = "gpu"
_OF_QUOTAS: Final = (_NAME, f"requests.{_NAME}", f"limits.{_NAME}")
_OF_LIMITS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_MESSAGE: Final = "is not a resource of Kubernetes, so the API server refuses the object and no GPU is counted"


def validate_quota(subject: Subject) -> Iterator[Problem]:
    """What a ResourceQuota says of `gpu`."""
    hard = mapping(get(subject.object, ("spec", "hard")))
    for name in _OF_QUOTAS:
        if name in hard:
            fix = "name the resource of a vendor, such as requests.nvidia.com/gpu"
            yield problem("resource-name", ("spec", "hard", name), _MESSAGE, fix, shown=f"`{name}`")


def validate_limit_range(subject: Subject) -> Iterator[Problem]:
    """What a LimitRange says of it."""
    limits = items(get(subject.object, ("spec", "limits")))
    for index, each in enumerate(subject.deadline.paced(limits)):
        for field in _OF_LIMITS:
            if _NAME in mapping(mapping(each).get(field)):
                path = ("spec", "limits", index, field, _NAME)
                fix = "name the resource of a vendor, such as nvidia.com/gpu"
                yield problem("resource-name", path, _MESSAGE, fix, shown=f"`{_NAME}`")
