"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

DEVICE_FAILURES: Final = RuleGroup(
    "device-failures",
    source="https://kubernetes.io/blog/2025/07/03/navigating-failures-in-pods-with-devices/",
    level="warn",
    fails="disruption",
)
"""What a workload with devices does when a node, a device or a container of it fails."""
