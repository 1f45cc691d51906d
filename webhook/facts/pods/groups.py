"""The groups of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.rules.rule import RuleGroup

POD_RESOURCES: Final = RuleGroup(
    "pod-resources",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""Rules of Kubernetes for the resources of pods, for kinds with templates that it does not check before it creates
pods."""
WORKLOAD_UPDATE: Final = RuleGroup(
    "workload-update",
    refused_by="nothing; the controller ignores the change",
    source="rows of webhook/workloads/kinds.yaml whose templates change later",
    level="warn",
    fails="silent",
)
POD_TEMPLATE: Final = RuleGroup(
    "pod-template",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""Rules of Kubernetes for other fields of pods, for kinds with templates that it does not check before it creates pods.
"""
