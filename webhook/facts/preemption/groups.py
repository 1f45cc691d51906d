"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

PREEMPTION: Final = RuleGroup(
    "preemption",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    level="warn",
    fails="disruption",
)
"""Workloads with devices whose pods are preempted, by a cloud or by other pods."""
