"""The groups of rules of this package, and the kinds that checks of devices read, with the fields that they read."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Part, Parts, Raw, Texts, ValueMap
from webhook.typed.objects import Object
from webhook.typed.view import Typed

GPU_REQUESTS: Final = RuleGroup(
    "gpu-requests",
    source="NVIDIA/k8s-device-plugin README.md",
    level="warn",
    fails="pending",
)
"""GPU requests that Kubernetes accepts and that are probably not intended."""
NAMESPACE_QUOTA: Final = RuleGroup(
    "namespace-quota",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go",
    level="warn",
    fails="controller",
)
"""Requests that the ResourceQuotas of a namespace never allow; their free amounts change too often."""
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
