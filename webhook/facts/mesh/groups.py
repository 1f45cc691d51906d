"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

MESH: Final = RuleGroup(
    "mesh",
    source="istio/istio 00af2c5549d5 pkg/kube/inject/inject.go",
    level="warn",
    fails="waiting",
)
"""Sidecars that outlive the containers of a job."""
