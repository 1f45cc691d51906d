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
"""The commands of model servers that their pods cannot run."""
