"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

LAUNCH: Final = RuleGroup(
    "launch",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    level="warn",
    fails="waiting",
)
"""What launchers start in the pods of any kind, and what is probably not meant."""
