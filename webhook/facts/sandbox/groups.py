"""The groups of rules of this package, and what the rules of a group have in common."""

from __future__ import annotations

from typing import Final

from webhook.problems.rule import RuleGroup

SANDBOX: Final = RuleGroup(
    "sandbox",
    refused_by="the controller, when it creates the pods",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go",
    fails="controller",
)
"""What the controllers of OpenSandbox and agent-sandbox fail on, and what they leave out without a word."""
SANDBOX_ADVICE: Final = RuleGroup(
    "sandbox",
    source="opensandbox-group/OpenSandbox 3bb6fad3 kubernetes/internal/controller/batchsandbox_controller.go",
    level="warn",
    fails="silent",
)
"""What is accepted and does not what it says."""
