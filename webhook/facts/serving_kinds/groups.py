"""The group of rules about kinds that serve models."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.rules.rule import RuleGroup

SERVING_KIND: Final = RuleGroup(
    "serving-kind",
    refused_by="KServe's webhook",
    source="kserve/kserve@aaac4e294 pkg/apis/serving/v1beta1/inference_service_validation.go",
    level="warn",
    fails="create",
)
"""Settings that webhooks and controllers of kinds that serve models refuse, and settings with an unexpected effect."""


class Refusal(NamedTuple):
    """One reason for a refusal: the path, the message, the fix, and the value that the message shows, or None."""

    at: FieldPath
    message: str
    fix: str
    value: Any = None
