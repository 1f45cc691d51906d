"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

SERVED_VERSION: Final = RuleGroup(
    "served-version",
    refused_by="the API server, which knows no such kind",
    source="https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
    level="warn",
    fails="create",
)
"""Objects in a version of their API that no present release serves."""
