"""The text of a denial: messageExpression, else message, else the expression itself.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/validator.go (Validate).
"""

from __future__ import annotations

from webhook.policy.compiled import Validation
from webhook.problems.declarations import Listed, listed

MAX_BYTES = 5 * 1024
"""MaxEvaluatedMessageExpressionSizeBytes (pkg/apis/cel/config.go)."""

_SPACE = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
"""What Go's strings.TrimSpace trims (unicode.IsSpace); Python's strip takes four control characters more."""


def trim(text: str) -> str:
    """Text without the blanks around it, as Go's strings.TrimSpace."""
    return text.strip(_SPACE)


def usable(evaluated: object) -> str:
    """The trimmed value of a messageExpression, or "" where it cannot be a message: blank, several lines, too long."""
    if not isinstance(evaluated, str):
        return ""
    text = trim(evaluated)
    return "" if "\n" in text or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES else text


def listed_problems(rule: Validation, evaluated: object) -> tuple[Listed, ...]:
    """The problems that a failed rule lists; () for one that gives a text, and where the list could not be made."""
    return listed(evaluated) if rule.lists_problems and isinstance(evaluated, list) else ()


def message(rule: Validation, evaluated: object) -> str:
    """What a failed rule says. `evaluated` is the messageExpression's value, None where it failed or there is none."""
    return usable(evaluated) or rule.message or f"failed expression: {trim(rule.expression.source)}"
