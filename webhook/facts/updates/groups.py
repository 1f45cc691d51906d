"""The group of rules of this package."""

from __future__ import annotations

from typing import Final

from webhook.rules.rule import RuleGroup

UPDATE: Final = RuleGroup(
    "update",
    source="k8s.io/kubernetes v1.36 pkg/controller/deployment/util/deployment_util.go",
    level="warn",
    fails="disruption",
)
"""The needs of an update, a drain or an autoscaler in addition to the current pods."""
