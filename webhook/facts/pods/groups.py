"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import Group

POD_RESOURCES: Final = Group(
    "pod-resources",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""What Kubernetes refuses of the resources of a pod, for the kinds whose templates it does not look at before it makes
pods."""
WORKLOAD_UPDATE: Final = Group(
    "workload-update",
    refused_by="nobody; the controller ignores the change",
    source="rows of webhook/workloads/kinds.yaml whose templates change later",
    level="warn",
    fails="silent",
)
POD_TEMPLATE: Final = Group(
    "pod-template",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""What Kubernetes refuses of a pod besides its resources and claims, for the kinds whose templates it does not look at
before it makes pods."""
