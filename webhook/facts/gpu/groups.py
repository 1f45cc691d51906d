"""The groups of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

GPU_REQUESTS: Final = RuleGroup(
    "gpu-requests",
    source="NVIDIA/k8s-device-plugin README.md",
    level="warn",
    fails="pending",
)
"""GPU requests that Kubernetes accepts and that are probably not intended."""
NODE_DEVICES: Final = RuleGroup(
    "node-devices",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/fit.go",
    level="warn",
    fails="pending",
)
"""What the nodes of a whole cluster have; an autoscaler may add others."""
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
