"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

STORAGE: Final = RuleGroup(
    "storage",
    source="https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
    level="warn",
    fails="pending",
)
"""Volumes of workloads with devices, as their pods can mount them and as their authors count on them."""
