"""The groups of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

DEVICE_CLAIMS: Final = RuleGroup(
    "device-claims",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""Rules of Kubernetes about the device claims of pods."""
DEVICE_CLAIMS_ADVICE: Final = RuleGroup(
    "device-claims",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/",
    level="warn",
    fails="silent",
)
"""Claims that Kubernetes accepts, but that give a container no device, or one that stays idle."""
RESOURCE_CLAIMS: Final = RuleGroup(
    "resource-claims",
    refused_by="the API server, where it serves the version",
    source="k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go",
    fails="create",
)
"""ResourceClaims, ResourceClaimTemplates, and the claims of PodGroups and Workloads."""
DEVICE_CLASSES: Final = RuleGroup(
    "device-classes",
    refused_by="the API server, where it serves the version",
    source="k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go",
    fails="create",
    refused_on_updates="pkg/apis/resource/validation/validation.go ValidateDeviceClassUpdate",
)
"""DeviceClasses and DeviceTaintRules."""
RESOURCE_SLICES: Final = RuleGroup(
    "resource-slices",
    source="k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/allocator_experimental.go",
    level="warn",
    fails="pending",
)
"""What the selectors of claims and classes select from the devices that the cluster has now."""
NVIDIA_DEVICE_CONFIG: Final = RuleGroup(
    "nvidia-device-config",
    refused_by="NVIDIA's DRA driver, when it prepares the claim on the node",
    source="kubernetes-sigs/dra-driver-nvidia-gpu@95932046 (0.5) api/nvidia.com/resource/v1beta1",
    fails="start",
)
"""Parameters that claims and classes hand to NVIDIA's DRA driver. Kubernetes passes them on unread."""
