"""The group of rules about Ray's kinds."""

from __future__ import annotations

from typing import Final

from webhook.rules.rule import RuleGroup

RAY: Final = RuleGroup(
    "ray",
    refused_by="KubeRay's operator, in an event",
    source="ray-project/kuberay v1.4.2 ray-operator/controllers/ray/utils/validation.go",
    level="warn",
    fails="controller",
)
"""Objects of Ray that KubeRay's operator refuses or that cannot work."""
