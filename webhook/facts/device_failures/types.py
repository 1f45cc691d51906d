"""The group of rules of this package, and the kinds that its advice reads, with the fields that it reads."""

from __future__ import annotations

from typing import Final

from webhook.facts.volcano_objects.types import LifecyclePolicy
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Parts
from webhook.typed.view import Typed

DEVICE_FAILURES: Final = RuleGroup(
    "device-failures",
    source="https://kubernetes.io/blog/2025/07/03/navigating-failures-in-pods-with-devices/",
    level="warn",
    fails="disruption",
)
"""What a workload with devices does when a node, a device or a container of it fails."""


class VolcanoJobOrTask(Typed):
    """A Job of Volcano, or a task of it."""

    policies = Parts(LifecyclePolicy)
