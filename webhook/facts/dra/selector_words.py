"""The messages about selectors that the API server rejects, in claims and in classes."""

from __future__ import annotations

from webhook.facts.dra.requests import JudgedSelector


def describe_refusal(selector: JudgedSelector) -> tuple[str, str]:
    """Return the message and the fix for a selector that the API server rejects in any case."""
    return f"{_first_line(selector.judged.problem)}, so no device is ever selected", "correct the expression"


def describe_feature_gate(selector: JudgedSelector) -> tuple[str, str]:
    """Return the message and the fix for a selector that the API server rejects without a feature gate."""
    message = (
        "needs the feature gate DRAListTypeAttributes, which is off by default and cannot be seen from here; where it "
        f'is off, the API server refuses the expression, which then "{_first_line(selector.judged.gated)}"'
    )
    return message, "correct the expression, or ask the administrator of the cluster to turn the gate on"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
