"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

POD_TEMPLATE_SHAPE: Final = RuleGroup(
    "pod-template-shape",
    refused_by="the API server, when the pod is created",
    source="k8s.io/apimachinery v0.36 pkg/runtime/serializer/json/json.go",
    fails="controller",
)
"""Values of another type than their field has. The types are those of Kubernetes and of the published
CustomResourceDefinitions (webhook/schema)."""
OBJECT_SHAPE: Final = RuleGroup(
    "object-shape",
    refused_by="the API server, when the object is created",
    source="k8s.io/apiextensions-apiserver v0.36 pkg/apiserver/validation/validation.go",
    fails="create",
)
