"""The group of rules about model servers."""

from __future__ import annotations

from typing import Final

from webhook.rules.rule import RuleGroup

MODEL_SERVER: Final = RuleGroup(
    "model-server",
    source="vllm-project/vllm vllm/config/parallel.py@00193b82",
    level="warn",
    fails="start",
)
"""What the commands of model servers start, and what of it their pods cannot run."""
